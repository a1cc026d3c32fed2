//! Document 003's benchmark of `pthread_cond_signal`: a signaller and a waiter in strict alternation under
//! one mutex, for a fixed number of signals. Futex calls are counted word by word (`counted`); its table has
//! the document's figures next to ours (`table`).
//!
//! ```text
//! signaller                                          waiter
//! lock; while it is not my turn, wait for an answer  lock; while it is not my turn, wait for a signal
//! turn over; unlock; signal                          turn over; unlock; answer
//! ```
//!
//! Document 003's own benchmark is lost; this is what its text describes. If the waiter runs as soon as it is
//! signalled, it has answered before the signaller looks: then the waiter waits each time and the signaller
//! never, and each iteration is one signal that wakes a waiter.

mod counted;
mod table;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use std::{io, thread};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};
use spinpark_classics::condvar_2003::Signalling;
use spinpark_classics::designs::{self, Use};
use spinpark_linux::Linux;
use spinpark_lockbench::locks::adapters::classics::Condvar2003;
use spinpark_lockbench::locks::adapters::{UseCondvar, with_condvar};
use spinpark_lockbench::locks::counters::{Counters, Counts};
use spinpark_lockbench::locks::definitions::Implementation;
use spinpark_lockbench::locks::implementations;
use spinpark_lockbench::locks::load::Signal;
use spinpark_lockbench::locks::primitives::{Apart, BenchCondvar, Guarded};
use spinpark_measure::process::start_gate::{self, NoThread, StartGate};

use self::counted::Counted;
use crate::workloads::locks;
use crate::workloads::workload::Kind;
use crate::workloads::{
    Cell, Column, Configuration, Figure, Job, JobError, Report, Requirements, Workload, expect,
};

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
        match by_name(&implementation.adapter) {
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
    let alternate = job.adapter.and_then(|adapter| by_name(adapter.name)).ok_or_else(refused)?;
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    pub iterations: u64,
    pub cpus: Cpus,
    pub signal: Signal,
    /// Whether the waiter, once woken, runs before the signaller goes on.
    pub waiter_first: bool,
    /// Whether futex calls are counted; then nothing is worth timing.
    #[serde(default)]
    pub counts: bool,
}

#[derive(Debug, Clone, PartialEq)]
struct Done {
    /// From when both threads were there to when both were through.
    elapsed: Duration,
    /// What the kernel counted meanwhile.
    kernel: Counts,
    /// Futex calls of locks that count them themselves.
    calls: Option<Calls>,
}

/// Futex calls, counted where they are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Calls {
    all: u64,
    /// On words of condition variables; the others are the mutex'.
    on_condvars: u64,
}

/// Whose turn it is: the signaller's (0) if `turns` is even, the waiter's (1) if it is odd.
#[derive(Debug, Default)]
struct Table {
    turns: u64,
    /// Turns that were not taken in order.
    wrong: u64,
}

struct Player<'a, C: BenchCondvar> {
    me: u64,
    table: &'a Guarded<C::Mutex, Table>,
    /// What it waits for, and what it signals.
    mine: &'a C,
    other: &'a C,
}

impl<C: BenchCondvar> Player<'_, C> {
    #[inline]
    fn play(&self, setting: &Setting) {
        for iteration in 0..setting.iterations {
            let mut table = self.table.lock();
            while table.turns % 2 != self.me {
                table = table.wait(self.mine);
            }
            table.wrong += u64::from(table.turns != 2 * iteration + self.me);
            table.turns += 1;
            if setting.signal == Signal::UnderLock {
                self.other.signal();
                drop(table);
            } else {
                drop(table);
                self.other.signal();
            }
        }
    }
}

/// Takes turns on condition variables of the type `C`.
fn alternate<C: BenchCondvar>(setting: &Setting) -> Result<Done, JobError> {
    let table = Guarded::<C::Mutex, Table>::new(Table::default());
    let [signalled, answered] = [Apart(C::default()), Apart(C::default())];
    let signaller = Player { me: 0, table: &table, mine: &answered.0, other: &signalled.0 };
    let waiter = Player { me: 1, table: &table, mine: &signalled.0, other: &answered.0 };
    let counters = Counters::open(setting.counts);
    let (players, gate) = ([&waiter, &signaller], StartGate::default());
    let (players, gate) = (&players, &gate);
    let work = move |number: usize| {
        let player = players[number];
        let placed = place(setting.cpus, setting.waiter_first && player.me == 0);
        // Both come here, or the other one would wait for ever.
        let plays = gate.pass();
        if plays { placed.map(|()| player.play(setting)) } else { placed }
    };
    let (elapsed, kernel, played) = thread::scope(|scope| {
        let threads = start_gate::start(scope, gate, 2, work)?;
        gate.wait_for(2);
        counted::start();
        let running = counters.start();
        gate.open();
        let start = Instant::now();
        let played: Vec<_> = (threads.into_iter())
            .map(|thread| thread.join().unwrap_or_else(|_| std::process::abort()))
            .collect();
        let elapsed = start.elapsed();
        Ok::<_, NoThread>((elapsed, running.stop(), played))
    })
    .map_err(|error| JobError::Refused(error.to_string()))?;
    played.into_iter().collect::<Result<(), JobError>>()?;
    let calls = counted::all().map(|all| {
        let on_condvars = [&signalled, &answered].map(counted::inside).iter().sum();
        Calls { all, on_condvars }
    });
    let Table { turns, wrong } = table.into_inner();
    expect(turns == 2 * setting.iterations && wrong == 0, || {
        format!("{turns} turns, {wrong} of them out of order: the lock under test does not exclude")
    })?;
    Ok(Done { elapsed, kernel, calls })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cpus {
    /// Both on one CPU: the document's machine has no other.
    One,
    /// Where the kernel puts them.
    All,
}

/// Puts the calling thread where it belongs. With `lets_others`, a thread that it wakes on its CPU runs at
/// once.
fn place(cpus: Cpus, lets_others: bool) -> Result<(), JobError> {
    if cpus == Cpus::One {
        let allowed = sched_getaffinity(None).map_err(JobError::failed("cannot ask for the allowed CPUs"))?;
        let first = (0..CpuSet::MAX_CPU).find(|&cpu| allowed.is_set(cpu)).unwrap_or_default();
        let mut one = CpuSet::new();
        one.set(first);
        sched_setaffinity(None, &one).map_err(JobError::failed("cannot bind a thread to a CPU"))?;
    }
    if lets_others {
        let parameters = libc::sched_param { sched_priority: 0 };
        // SAFETY: the parameters live; the call changes the class of this thread only.
        if unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) } != 0 {
            return Err(JobError::failed("cannot use SCHED_IDLE")(io::Error::last_os_error()));
        }
    }
    Ok(())
}

/// Takes turns on one kind of condition variable.
type Alternate = fn(&Setting) -> Result<Done, JobError>;

/// The one for the condition variables of an adapter; none if it has none, or none in this process.
fn by_name(adapter: &str) -> Option<Alternate> {
    let of_today = || with_condvar(adapter, TakeTurns);
    designs::with::<Linux, _>(adapter, TakeTurns).unwrap_or_else(of_today)
}

struct TakeTurns;

impl UseCondvar for TakeTurns {
    type Output = Alternate;

    fn with<C: BenchCondvar>(self) -> Alternate {
        alternate::<C>
    }
}

impl Use<Linux> for TakeTurns {
    type Output = Option<Alternate>;

    fn otherwise(self) -> Option<Alternate> {
        None
    }

    fn condvar_2003<S: Signalling + 'static>(self) -> Option<Alternate> {
        Some(of_2003::<S>)
    }
}

/// What is timed runs on Linux as it is.
fn of_2003<S: Signalling>(setting: &Setting) -> Result<Done, JobError> {
    match setting.counts {
        true => alternate::<Condvar2003<Counted<Linux>, S>>(setting),
        false => alternate::<Condvar2003<Linux, S>>(setting),
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
        assert!(said.contains("`no-such`") && said.contains("spinpark-lab bench list"), "{said}");
        assert!(words("classic-mtx").unwrap_err().contains("no condition variable"));
        assert!(words("glibc-recorded-off").unwrap_err().contains("`bench locks` only"));
        assert!(words("onetbb").unwrap_err().contains("no condition variable"));
    }
}
