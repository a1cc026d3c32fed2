//! Document 003's benchmark of `pthread_cond_signal`: a signaller and a waiter that take turns.
//!
//! | what | where |
//! |---|---|
//! | what the two threads do, where they run, on whose condition variables | [`alternation`] |
//! | futex calls, word by word | `counted` |
//! | its table, ours next to it | `table` |

pub mod alternation;
mod counted;
mod table;

use std::collections::BTreeMap;

use spinpark_lockbench::locks::definitions::Implementation;
use spinpark_lockbench::locks::implementations;

use self::alternation::{Cpus, Done, Setting};
use crate::workloads::experiment::{Cell, Configuration};
use crate::workloads::job::{Figure, Job, JobError, Report};
use crate::workloads::locks;
use crate::workloads::resources::Requirements;
use crate::workloads::workload::{Column, Kind, Workload};

/// Futex calls are counted in a second, shorter alternation: one signal for ten of the first.
const COUNTED_SHARE: u64 = 10;

pub static WORKLOAD: Workload = Workload {
    name: "condvar",
    about: "a signaller and a waiter take turns, for a fixed number of signals",
    source: "003: Jakub Jelinek's benchmark of pthread_cond_signal on one CPU",
    variants: "--cpus one|all, --signal under-lock|after-unlock, --waiter-first",
    tasks: "threads",
    thread_counts: &[2],
    figure: Figure::Elapsed,
    uses_directory: false,
    columns: &COLUMNS,
    table: Some(table::render),
    run,
};

const USER: &str = "user_s";
const SYSTEM: &str = "system_s";
/// Context switches per signal.
const SWITCHES: &str = "switches";
/// Futex calls per signal.
pub const FUTEX_CALLS: &str = "futex_calls";
/// Those on the words of the condition variable.
const CONDVAR_CALLS: &str = "futex_calls_on_condvar";

static COLUMNS: [Column; 5] = [
    Column { key: USER, header: "user", kind: Kind::Seconds },
    Column { key: SYSTEM, header: "sys", kind: Kind::Seconds },
    Column { key: SWITCHES, header: "switches/signal", kind: Kind::Number },
    Column { key: FUTEX_CALLS, header: "futex/signal", kind: Kind::Number },
    Column { key: CONDVAR_CALLS, header: "on the condvar", kind: Kind::Number },
];

/// What is measured by default. The first one is the baseline.
pub const DEFAULT: &str = "classic-condvar-orig,classic-condvar-requeue,classic-condvar-wake-op,glibc,std,parking_lot,spinpark,drop-in";

/// The implementations that `words` mean.
pub fn parse(words: &[String]) -> Result<Vec<Implementation>, String> {
    locks::each(words, |definitions, word| {
        let implementation = implementations::not_recorded(implementations::parse(definitions, word)?)?;
        match alternation::by_name(&implementation.adapter) {
            Some(_) => Ok(implementation),
            None => Err(format!("`{word}` has no condition variable that this workload can use")),
        }
    })
}

/// The cells for a request: one for each of `cpus`. `setting` says the rest.
pub fn cells(setting: &Setting, cpus: &[Cpus], locks: &[Implementation]) -> Vec<Cell> {
    let cell = |&cpus: &Cpus| {
        // Elsewhere than on one CPU no thread is to run before the signaller goes on.
        let waiter_first = setting.waiter_first && cpus == Cpus::One;
        let setting = Setting { cpus, waiter_first, ..setting.clone() };
        let first = if waiter_first { ", waiter first" } else { "" };
        let configuration =
            |lock: &Implementation| Configuration::new(lock.name.clone(), &setting).with_lock(lock);
        Cell {
            variant: match cpus {
                Cpus::One => format!("one CPU{first}"),
                Cpus::All => String::from("all CPUs"),
            },
            tasks: 2,
            configurations: locks.iter().map(configuration).collect(),
            needs: Requirements { processes: 2, threads: 2, ..Requirements::default() },
        }
    };
    cpus.iter().map(cell).collect()
}

fn run(job: &Job) -> Result<Report, JobError> {
    let setting: Setting = job.parameters()?;
    let refused = || JobError::Refused(String::from("these locks have no condition variable here"));
    let alternate = job.adapter.and_then(|adapter| alternation::by_name(adapter.name)).ok_or_else(refused)?;
    let timed = alternate(&Setting { counts: false, ..setting.clone() })?;
    let iterations = (setting.iterations / COUNTED_SHARE).clamp(1, setting.iterations);
    let counted = alternate(&Setting { counts: true, iterations, ..setting.clone() })?;
    Ok(report(setting.iterations, &timed, iterations, &counted))
}

fn report(operations: u64, timed: &Done, counted_operations: u64, counted: &Done) -> Report {
    let kernel = &timed.kernel;
    let user_s = kernel.user.as_secs_f64();
    let system_s = kernel.cpu.saturating_sub(kernel.user).as_secs_f64();
    let switches = (kernel.voluntary_switches + kernel.involuntary_switches) as f64 / operations as f64;
    let mut columns = BTreeMap::from([(USER, user_s), (SYSTEM, system_s), (SWITCHES, switches)]);
    let per_signal = |calls: u64| calls as f64 / counted_operations as f64;
    let by_kernel = counted.kernel.futex_calls.as_ref().and_then(|calls| calls.as_ref().ok().copied());
    // Where the kernel does not count for us, locks that do it themselves have a number all the same.
    let all = by_kernel.or(counted.calls.map(|calls| calls.all));
    columns.extend(all.map(|calls| (FUTEX_CALLS, per_signal(calls))));
    columns.extend(counted.calls.map(|calls| (CONDVAR_CALLS, per_signal(calls.on_condvars))));
    Report {
        operations,
        elapsed_s: timed.elapsed.as_secs_f64(),
        user_s,
        system_s,
        voluntary_switches: kernel.voluntary_switches,
        involuntary_switches: kernel.involuntary_switches,
        spread: None,
        columns: columns.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
        breakdown: BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &str) -> Result<Vec<Implementation>, String> {
        parse(&words.split(',').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn the_documents_own_and_targets() {
        let found = words("classic-condvar-orig,classic-condvar-wake-op,glibc,drop-in+A=1").unwrap();
        assert_eq!(found.len(), 4);
        assert_eq!(found[1].adapter, "classic-condvar-wake-op");
        assert!(found[3].preload);
        assert_eq!(words(DEFAULT).unwrap().len(), 8);
    }

    #[test]
    fn what_cannot_be_used() {
        assert!(words("usync,glibc,usync").unwrap_err().contains("`usync` twice"));
        let said = words("no-such").unwrap_err();
        assert!(said.contains("`no-such`") && said.contains("spinpark bench list"), "{said}");
        assert!(words("classic-mtx").unwrap_err().contains("no condition variable"));
        assert!(words("glibc-recorded-off").unwrap_err().contains("`bench locks` only"));
        assert!(words("onetbb").unwrap_err().contains("no condition variable"));
    }
}
