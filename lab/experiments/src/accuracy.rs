//! How far the simulator is from the machine at hand: the same locks under the same loads, measured and
//! simulated.
//!
//! In this order: what is compared ([`cases`]), a run here in a process of its own, bound to its CPUs
//! ([`Native`]), the same run simulated ([`simulate`]), how far apart they are ([`Compared`], [`Summary`]).
//!
//! The machine file knows primitives only, and no lock: what the simulator says is a prediction.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::thread::{CpuSet, sched_setaffinity};
use serde::Serialize;
use spinpark_lockbench::locks::definitions::Definitions;
use spinpark_lockbench::locks::load::{Load, PingPong, Placement, Primitive};
use spinpark_lockbench::locks::worker::Request;
use spinpark_lockbench::locks::workers::SUBCOMMAND;
use spinpark_lockbench::locks::workloads::Report;
use spinpark_measure::process::Interrupt;
use spinpark_measure::report::{Style, table, text};
use spinpark_measure::rounds::configuration::prepare;
use spinpark_measure::rounds::failure::RunError;
use spinpark_measure::rounds::worker::Worker;
use spinpark_measure::text::units;
use spinpark_measure::text::units::counted;

use crate::calibrate::Spread;
use spinpark_sim::machine::Machine;
use spinpark_sim::parallel::run_all;
use spinpark_sim::workload::{Setting, SettingError};

/// The shapes.
pub const SHAPES: [&str; 9] = [
    "pair-threaded",
    "saturated",
    "hot-lock",
    "five-lines",
    "medium",
    "long",
    "random-32",
    "mixed-10",
    "condvar-ping-pong",
];

/// Threads and CPUs.
const PLACES: [(usize, usize); 4] = [(1, 1), (2, 1), (2, 2), (4, 2)];

const MUTEXES: [&str; 4] = ["spinpark", "classic-mutex-2003", "classic-mutex-fixed", "classic-tas-backoff"];

const RW_LOCKS: [&str; 4] = ["spinpark", "classic-rwsem-3.12", "classic-rwsem-nospin", "classic-rwsem-full"];

const CONDVARS: [&str; 4] =
    ["spinpark", "classic-condvar-orig", "classic-condvar-requeue", "classic-condvar-wake-op"];

/// One lock under one load, with a number of threads and of CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Case {
    /// The name of the shape, on both sides.
    pub shape: String,
    /// The lock, which has one name on both sides.
    pub lock: String,
    /// The family that is the same lock here.
    pub family: String,
    /// How many threads.
    pub threads: usize,
    /// How many CPUs they share.
    pub cpus: usize,
    /// What they do.
    #[serde(skip)]
    pub load: Load,
}

impl Case {
    /// Whether the bounds are on it: one thread on one CPU, or two on two. Those with more threads than CPUs
    /// are shown besides; there the scheduler decides, too.
    #[must_use]
    pub fn is_bound(&self) -> bool {
        self.threads == self.cpus
    }

    /// `hot-lock, 2 threads on 1 CPU, spinpark`.
    #[must_use]
    pub fn words(&self) -> String {
        let Self { shape, lock, threads, cpus, .. } = self;
        format!("{shape}, {} on {}, {lock}", counted(*threads, "thread"), counted(*cpus, "CPU"))
    }
}

/// All that can be compared with this number of CPUs.
///
/// # Errors
///
/// If the definitions lack a shape.
pub fn cases(definitions: &Definitions, cpus: usize) -> Result<Vec<Case>, String> {
    let mut cases = Vec::new();
    for name in SHAPES {
        let shape = definitions.workload(name)?;
        let locks = match shape.load.needs() {
            Primitive::RwLock => RW_LOCKS,
            Primitive::Condvar => CONDVARS,
            _ => MUTEXES,
        };
        for (threads, needed) in PLACES {
            if needed > cpus || !fits(&shape.load, threads) {
                continue;
            }
            cases.extend(locks.map(|lock| Case {
                shape: name.to_owned(),
                lock: lock.to_owned(),
                family: lock.to_owned(),
                threads,
                cpus: needed,
                load: placed(&shape.load),
            }));
        }
    }
    Ok(cases)
}

fn fits(load: &Load, threads: usize) -> bool {
    load.check(threads).is_ok()
}

/// The whole process is bound to its CPUs; within them, the kernel places the threads.
fn placed(load: &Load) -> Load {
    match load {
        Load::PingPong(PingPong { signal, .. }) => {
            Load::PingPong(PingPong { signal: *signal, cpus: Placement::Any })
        }
        other => other.clone(),
    }
}

/// A worker that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(600);

/// Starts workers.
#[derive(Debug)]
pub struct Native<'a> {
    /// This command.
    pub own: PathBuf,
    /// The CPUs that may be used; a case takes the last ones, as the first often serves more interrupts.
    pub cpus: Vec<usize>,
    /// Length of a counted phase, in milliseconds.
    pub millis: u64,
    /// Set by Ctrl-C.
    pub interrupt: &'a Interrupt,
}

impl Native<'_> {
    /// Operations per second.
    ///
    /// # Errors
    ///
    /// If the run yields no report.
    pub fn run(&self, case: &Case) -> Result<f64, RunError> {
        let worker = Worker { cell: case.words(), configuration: case.lock.clone() };
        let output = worker.run(&mut self.command(case), PATIENCE, self.interrupt)?;
        let report = worker.report(&output, Report::parse)?;
        Ok(report.operations as f64 / report.elapsed_s)
    }

    fn command(&self, case: &Case) -> Command {
        let request = Request {
            adapter: case.family.clone(),
            load: case.load.clone(),
            threads: case.threads,
            cpus: Placement::Any,
            millis: self.millis,
            count_futex_calls: false,
            untimed: true,
        };
        let mut command = Command::new(&self.own);
        // Cannot fail: a request has only strings and numbers in it.
        command.arg(SUBCOMMAND).arg(serde_json::to_string(&request).unwrap_or_default());
        command.stdin(Stdio::null()).env_remove("LD_PRELOAD");
        prepare(&mut command, 0);
        let mut set = CpuSet::new();
        self.cpus.iter().rev().take(case.cpus).for_each(|&cpu| set.set(cpu));
        let bind = move || sched_setaffinity(None, &set).map_err(io::Error::from);
        // SAFETY: the closure runs between fork and exec and only makes a system call: no allocation, no
        // lock.
        unsafe { command.pre_exec(bind) };
        command
    }
}

/// How much is simulated.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Runs of each case, with a seed each.
    pub runs: u64,
    /// Length of a run in the machine's time, ns.
    pub for_ns: u64,
}

/// Operations per second of each of `cases` on `machine`, run by run. `done` is called after each run, on
/// some thread.
///
/// # Errors
///
/// As [`Setting::run`]; or a run that failed.
pub fn simulate(
    cases: &[Case],
    machine: &Machine,
    effort: Effort,
    done: impl Fn() + Sync,
) -> Result<Vec<Vec<f64>>, SettingError> {
    let of_case = |case: &Case| {
        let machine = machine.clone().limited_to(case.cpus as u32);
        let setting = Setting::new(machine, &case.lock, &case.shape, case.threads as u32);
        let setting = Setting { for_ns: effort.for_ns, ..setting };
        (0..effort.runs).map(move |seed| Setting { seed, ..setting.clone() })
    };
    let settings: Vec<Setting> = cases.iter().flat_map(of_case).collect();
    let reports = run_all(&settings, |_| done())?;
    if let Some(failed) = reports.iter().find(|report| report.outcome.failure.is_some()) {
        let failure = failed.outcome.failure.as_ref().map_or_else(String::new, ToString::to_string);
        return Err(SettingError::Unfit(format!("{} on {}: {failure}", failed.workload, failed.lock)));
    }
    let throughputs: Vec<f64> = reports.iter().map(spinpark_sim::workload::Report::throughput).collect();
    Ok(throughputs.chunks(effort.runs.max(1) as usize).map(<[f64]>::to_vec).collect())
}

/// What the median of all errors may be.
pub const MEDIAN_BOUND: f64 = 0.2;
/// What the worst error may be.
pub const WORST_BOUND: f64 = 0.5;

/// A case with its results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// Which.
    #[serde(flatten)]
    pub case: Case,
    /// Operations per second here, run by run.
    pub native: Vec<f64>,
    /// Operations per second simulated, run by run.
    pub simulated: Vec<f64>,
}

impl Compared {
    /// Median of the native runs, operations per second.
    #[must_use]
    pub fn measured(&self) -> f64 {
        median(&self.native)
    }

    /// Median of the simulated runs, operations per second.
    #[must_use]
    pub fn predicted(&self) -> f64 {
        median(&self.simulated)
    }

    /// Simulated ÷ measured − 1.
    #[must_use]
    pub fn error(&self) -> f64 {
        self.predicted() / self.measured() - 1.0
    }
}

fn median(values: &[f64]) -> f64 {
    Spread::of(values).map_or(f64::NAN, |spread| spread.median)
}

/// Some cases together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Summary {
    /// Median of the errors' sizes.
    pub median: f64,
    /// The largest.
    pub worst: f64,
    /// How many cases are farther off than the worst may be.
    pub beyond: usize,
    /// How many there are.
    pub cases: usize,
}

impl Summary {
    /// Of those of `all` on which the bounds are, and of the others.
    #[must_use]
    pub fn both(all: &[Compared]) -> (Self, Self) {
        let of = |bound| Self::of(all.iter().filter(move |one| one.case.is_bound() == bound));
        (of(true), of(false))
    }

    /// Of all these; a case without a result counts as one that is off without end.
    #[must_use]
    pub fn of<'a>(all: impl IntoIterator<Item = &'a Compared>) -> Self {
        let size = |one: &Compared| {
            let error = one.error().abs();
            if error.is_finite() { error } else { f64::MAX }
        };
        let errors: Vec<f64> = all.into_iter().map(size).collect();
        Self {
            median: median(&errors),
            worst: errors.iter().copied().fold(0.0, f64::max),
            beyond: errors.iter().filter(|&&error| error > WORST_BOUND).count(),
            cases: errors.len(),
        }
    }

    /// Whether both bounds hold.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.median <= MEDIAN_BOUND && self.worst <= WORST_BOUND
    }

    /// `median error 12.3 %, worst 81.2 %, 5 of 60 cases beyond 50 %`.
    #[must_use]
    pub fn figures(&self) -> String {
        format!(
            "median error {:.1} %, worst {:.1} %, {} of {} cases beyond {:.0} %",
            100.0 * self.median,
            100.0 * self.worst,
            self.beyond,
            self.cases,
            100.0 * WORST_BOUND,
        )
    }

    /// `median error 12.3 % (bound 20 %), worst 41.2 % (bound 50 %, 0 of 124 cases beyond it)`.
    #[must_use]
    pub fn words(&self) -> String {
        format!(
            "median error {:.1} % (bound {:.0} %), worst {:.1} % (bound {:.0} %; {} of {} cases beyond it)",
            100.0 * self.median,
            100.0 * MEDIAN_BOUND,
            100.0 * self.worst,
            100.0 * WORST_BOUND,
            self.beyond,
            self.cases,
        )
    }
}

/// The columns.
const HEADER: [&str; 7] = ["shape", "threads", "CPUs", "lock", "measured /s", "simulated /s", "error"];

/// One row for each case. Where it is narrow, a table for each shape.
#[must_use]
pub fn render(all: &[Compared], style: Style) -> String {
    if !style.is_narrow() {
        let mut rows = table(style, &HEADER);
        rows.add_rows(all.iter().map(row));
        return text(&rows);
    }
    let of_shape = |these: &[Compared]| {
        let mut rows = table(style, &HEADER[1..]);
        rows.add_rows(these.iter().map(|one| row(one).into_iter().skip(1)));
        let shape = these.first().map_or("", |one| &one.case.shape);
        format!("{shape}\n{}", text(&rows))
    };
    all.chunk_by(|a, b| a.case.shape == b.case.shape).map(of_shape).collect()
}

fn row(one: &Compared) -> [String; 7] {
    let Case { shape, threads, cpus, lock, .. } = &one.case;
    [
        shape.clone(),
        threads.to_string(),
        cpus.to_string(),
        lock.clone(),
        units::number(one.measured().round()),
        units::number(one.predicted().round()),
        format!("{:+.0} %", 100.0 * one.error()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use spinpark_lockbench::locks::adapters::{ADAPTERS, by_name};
    use spinpark_lockbench::locks::load::Section;

    #[test]
    fn both_sides_have_every_case() {
        let cases = cases(&Definitions::built_in().unwrap(), 2).unwrap();
        assert_eq!(cases.len(), 4 * (1 + 6 * 4 + 4 + 2));
        for cpus in [1, 2] {
            // Eight shapes, four locks.
            let bound = cases.iter().filter(|case| case.is_bound() && case.cpus == cpus);
            assert_eq!(bound.count(), 8 * 4);
        }
        for case in cases {
            let family = by_name(&ADAPTERS, &case.family).unwrap();
            assert!(family.run(case.load.needs()).is_some(), "{}", case.words());
            let machine = Machine::plain(2).limited_to(case.cpus as u32);
            let setting = Setting::new(machine, &case.lock, &case.shape, case.threads as u32);
            setting.check().unwrap_or_else(|error| panic!("{}: {error}", case.words()));
        }
    }

    #[test]
    fn one_cpu_has_fewer_cases() {
        let cases = cases(&Definitions::built_in().unwrap(), 1).unwrap();
        assert!(cases.iter().all(|case| case.cpus == 1) && !cases.is_empty());
    }

    fn compared(native: &[f64], simulated: &[f64]) -> Compared {
        let case = Case {
            shape: "medium".to_owned(),
            lock: "spinpark".to_owned(),
            family: "spinpark".to_owned(),
            threads: 2,
            cpus: 1,
            load: Load::Section(Section::default()),
        };
        Compared { case, native: native.to_vec(), simulated: simulated.to_vec() }
    }

    #[test]
    fn errors_are_relative_to_what_was_measured() {
        let all = [
            compared(&[90.0, 100.0, 500.0], &[110.0]),
            compared(&[100.0], &[90.0]),
            compared(&[100.0], &[60.0]),
        ];
        let summary = Summary::of(&all);
        assert!((summary.median - 0.1).abs() < 1e-9 && (summary.worst - 0.4).abs() < 1e-9);
        assert!(summary.holds());
        assert!(!Summary::of(&[compared(&[100.0], &[151.0])]).holds());
        assert!(!Summary::of(&[compared(&[100.0], &[])]).holds());
    }

    #[test]
    fn the_bounds_are_on_as_many_threads_as_cpus() {
        let fits = |threads| {
            let mut one = compared(&[100.0], &[100.0 * threads as f64]);
            (one.case.threads, one.case.cpus) = (threads, 1);
            one
        };
        let (bound, further) = Summary::both(&[fits(1), fits(2)]);
        assert!(bound.cases == 1 && bound.holds());
        assert!(further.cases == 1 && !further.holds());
    }

    #[test]
    fn a_table() {
        let shown = render(&[compared(&[1_000_000.0], &[800_000.0])], Style { color: false, width: 100 });
        assert!(shown.contains("1,000,000") && shown.contains("-20 %"), "{shown}");
        assert_eq!(Summary::of(&[compared(&[1.0], &[1.3])]).beyond, 0);
    }

    #[test]
    fn a_narrow_table() {
        let mut all = [compared(&[100_000_000.0], &[80_000_000.0]), compared(&[1.0], &[2.0])];
        all[0].case.lock = "classic-condvar-wake-op".to_owned();
        all[0].case.shape = "condvar-ping-pong".to_owned();
        let shown = render(&all, Style { width: 80, ..Style::PLAIN });
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
        assert!(shown.starts_with("condvar-ping-pong\n") && shown.contains("\nmedium\n"), "{shown}");
        assert!(shown.contains("classic-condvar-wake-op") && shown.contains("100,000,000"), "{shown}");
    }
}
