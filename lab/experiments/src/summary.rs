//! Several runs of one setting, which differ by their seeds: what they say together, and what makes that
//! weak.

use serde::Serialize;
use spinpark_charts::front::Entry;
use spinpark_measure::stats::{mean, standard_deviation};
use spinpark_measure::text::units::number;

use crate::formats::for_option;
use spinpark_sim::machine::Machine;
use spinpark_sim::workload::{Place, Report};
use spinpark_sim::{Counts, Failure, ThreadTimes};

/// A figure over seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The lowest.
    pub low: f64,
    /// The highest.
    pub high: f64,
    /// The standard deviation of the seeds; none for a single one.
    pub deviation: Option<f64>,
}

impl Spread {
    /// Of at least one value.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        Self {
            mean: mean(values).unwrap_or_default(),
            low: values.iter().copied().fold(f64::INFINITY, f64::min),
            high: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            deviation: standard_deviation(values),
        }
    }

    /// The standard deviation as a part of the mean.
    #[must_use]
    pub fn relative(&self) -> Option<f64> {
        self.deviation.filter(|_| self.mean > 0.0).map(|deviation| deviation / self.mean)
    }
}

/// Where the time of all threads went: parts of it, which add up to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Shares {
    /// On a CPU, and not polling. It takes in waits for cache lines.
    pub working: f64,
    /// On a CPU, polling.
    pub spinning: f64,
    /// Waiting for a CPU.
    pub runnable: f64,
    /// Asleep.
    pub asleep: f64,
}

/// How even it is: operations of threads within one run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fairness {
    /// Jain's index, the mean over seeds: 1 if all threads did the same, 1/n if one did everything.
    pub jain: f64,
    /// The fewest operations of a thread in a run.
    pub fewest: u64,
    /// The most.
    pub most: u64,
}

/// What some runs say together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The machine.
    pub machine: String,
    /// Its CPUs.
    pub cpus: u32,
    /// Its clock rate, GHz.
    pub ghz: f64,
    /// The lock.
    pub lock: String,
    /// The workload.
    pub workload: String,
    /// Threads.
    pub threads: u32,
    /// Virtual time of a run, ns.
    pub for_ns: u64,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// Operations per second.
    pub throughput: Spread,
    /// CPU time of all threads, polling and all, an operation, ns; infinite (in JSON null) without one.
    pub cpu_ns: f64,
    /// Operations of threads.
    pub fairness: Fairness,
    /// Where the threads' time went.
    pub time: Shares,
    /// Which part of the CPUs' time they had something to do.
    pub utilisation: f64,
    /// Virtual time of all runs together, ns: until the last thread of each ended.
    pub elapsed_ns: u64,
    /// As much of that as was the runs' time, ns: what all shares are of.
    pub measured_ns: u64,
    /// What happened at each lock, in all runs.
    pub places: Vec<Place>,
    /// What the machine counted, in all runs.
    pub counts: Counts,
    /// The first run that failed, by its seed.
    pub failure: Option<(u64, Failure)>,
}

impl Summary {
    /// Of runs on `machine` that differ by nothing but their seeds. None: there are no runs.
    #[must_use]
    pub fn of(machine: &Machine, reports: &[Report]) -> Option<Self> {
        let first = reports.first()?;
        let mut counts = Counts::default();
        reports.iter().for_each(|report| counts.merge(&report.outcome.counts));
        let failure = |report: &Report| Some((report.seed, report.outcome.failure.clone()?));
        let throughputs: Vec<f64> = reports.iter().map(Report::throughput).collect();
        let utilisation = reports.iter().map(|report| report.outcome.utilisation()).sum::<f64>();
        Some(Self {
            machine: machine.name.clone(),
            cpus: machine.cpus(),
            ghz: machine.ghz,
            lock: first.lock.clone(),
            workload: first.workload.clone(),
            threads: first.threads,
            for_ns: first.for_ns,
            seeds: reports.iter().map(|report| report.seed).collect(),
            throughput: Spread::of(&throughputs),
            cpu_ns: cpu_ns(reports),
            fairness: fairness(reports),
            time: shares(reports),
            utilisation: utilisation / reports.len() as f64,
            elapsed_ns: reports.iter().map(|report| report.outcome.elapsed_ns).sum(),
            measured_ns: reports.iter().map(|report| report.outcome.measured_ns).sum(),
            places: Place::by_name(reports.iter().flat_map(|report| report.places.clone()), Place::add),
            counts,
            failure: reports.iter().find_map(failure),
        })
    }

    /// Its throughput and CPU time, among those of others.
    #[must_use]
    pub fn entry(&self) -> Entry<'_> {
        Entry { name: &self.lock, throughput: self.throughput.mean, cpu_ns: self.cpu_ns }
    }

    /// Acquisitions at all places.
    #[must_use]
    pub fn acquisitions(&self) -> u64 {
        self.places.iter().map(|place| place.acquisitions).sum()
    }

    /// How often something happened, for each acquisition.
    #[must_use]
    pub fn per_acquisition(&self, count: u64) -> f64 {
        count as f64 / self.acquisitions().max(1) as f64
    }

    /// The longest wait at any place, ns.
    #[must_use]
    pub fn longest_wait_ns(&self) -> f64 {
        self.places.iter().map(|place| place.longest_wait_ns).fold(0.0, f64::max)
    }

    /// The mean wait over all places, ns.
    #[must_use]
    pub fn mean_wait_ns(&self) -> f64 {
        self.places.iter().map(|place| place.wait_ns).sum::<f64>() / self.acquisitions().max(1) as f64
    }
}

fn fairness(reports: &[Report]) -> Fairness {
    let jain = |report: &Report| {
        let each = || report.operations.iter().map(|&operations| operations as f64);
        let (sum, squares) = (each().sum::<f64>(), each().map(|operations| operations.powi(2)).sum::<f64>());
        if squares == 0.0 { 1.0 } else { sum * sum / (squares * report.operations.len() as f64) }
    };
    let all = || reports.iter().flat_map(|report| report.operations.iter().copied());
    Fairness {
        jain: reports.iter().map(jain).sum::<f64>() / reports.len() as f64,
        fewest: all().min().unwrap_or_default(),
        most: all().max().unwrap_or_default(),
    }
}

/// Of all runs together.
fn cpu_ns(reports: &[Report]) -> f64 {
    let on_cpu: u64 = reports.iter().map(Report::on_cpu_ns).sum();
    let operations: u64 = reports.iter().map(|report| report.in_time).sum();
    on_cpu as f64 / operations as f64
}

fn shares(reports: &[Report]) -> Shares {
    let threads = || reports.iter().flat_map(|report| &report.outcome.threads);
    let sum = |of: fn(&ThreadTimes) -> u64| threads().map(of).sum::<u64>() as f64;
    let times = [
        sum(|times| times.on_cpu_ns.saturating_sub(times.spinning_ns)),
        sum(|times| times.spinning_ns),
        sum(|times| times.runnable_ns),
        sum(|times| times.asleep_ns),
    ];
    let all = times.iter().sum::<f64>().max(1.0);
    let [working, spinning, runnable, asleep] = times.map(|time| time / all);
    Shares { working, spinning, runnable, asleep }
}

/// Fewer operations than this in a run say little about throughput.
const OF_A_RUN: f64 = 100.0;
/// Fewer operations than this of a thread say little about fairness.
const OF_A_THREAD: f64 = 10.0;
/// The longest time that a run may be given, ns.
const LONGEST_NS: f64 = 1e12;

/// Something that makes figures weak. Operations are those of the mean run within its time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Weak {
    /// All figures rest on few operations.
    FewOperations {
        /// Of all threads.
        operations: f64,
        /// The run's time that would do, ns.
        try_for_ns: u64,
    },
    /// Throughput does not, but what is said of single threads does.
    FewOfEachThread {
        /// Of each thread.
        operations: f64,
        /// The run's time that would do, ns.
        try_for_ns: u64,
    },
    /// A wait was as long as the run: how long it would have been cannot be said.
    WaitedAllAlong {
        /// A longer time, ns.
        try_for_ns: u64,
    },
}

impl Weak {
    /// All of a summary's weaknesses. None, where nothing was done at all, or a run failed: that is said
    /// elsewhere.
    #[must_use]
    pub fn of(summary: &Summary) -> Vec<Self> {
        let operations = operations(summary);
        if operations == 0.0 || summary.failure.is_some() {
            return Vec::new();
        }
        let each = operations / f64::from(summary.threads.max(1));
        let try_for_ns = |factor: f64| round(summary.for_ns as f64 * factor);
        let needed = f64::max(OF_A_RUN / operations, OF_A_THREAD / each);
        let mut all = Vec::new();
        if operations < OF_A_RUN {
            all.push(Self::FewOperations { operations, try_for_ns: try_for_ns(needed) });
        } else if each < OF_A_THREAD {
            all.push(Self::FewOfEachThread { operations: each, try_for_ns: try_for_ns(needed) });
        }
        if waited_all_along(summary) {
            all.push(Self::WaitedAllAlong { try_for_ns: try_for_ns(needed.max(10.0)) });
        }
        all
    }

    /// What makes the figures weak, and what to do about it.
    #[must_use]
    pub fn sentence(&self) -> String {
        match *self {
            Self::FewOperations { operations, try_for_ns } => format!(
                "Few operations: {} in a run, so all figures are rough. --duration {} gives more.",
                number(operations),
                for_option(try_for_ns)
            ),
            Self::FewOfEachThread { operations, try_for_ns } => format!(
                "Few operations of each thread: {} in a run, so fairness and the longest waits are chance. --duration {} gives more.",
                number(operations),
                for_option(try_for_ns)
            ),
            Self::WaitedAllAlong { try_for_ns } => format!(
                "A thread waited as long as the run: too short to judge fairness. Try --duration {}.",
                for_option(try_for_ns)
            ),
        }
    }
}

/// Operations of the mean run, within its time.
fn operations(summary: &Summary) -> f64 {
    summary.throughput.mean * summary.for_ns as f64 * 1e-9
}

/// Whether a wait was as long as the run, or longer.
#[must_use]
pub fn waited_all_along(summary: &Summary) -> bool {
    summary.longest_wait_ns() >= summary.for_ns as f64
}

/// A round time, not below `ns`, but for the longest one that there is.
fn round(ns: f64) -> u64 {
    let unit = 10f64.powf(ns.max(1.0).log10().floor());
    let round = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * unit).into_iter().find(|round| *round >= ns);
    round.unwrap_or(ns).min(LONGEST_NS) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use spinpark_sim::workload::Setting;

    #[test]
    fn spreads() {
        let spread = Spread::of(&[1.0, 2.0, 3.0]);
        assert_eq!((spread.mean, spread.low, spread.high, spread.deviation), (2.0, 1.0, 3.0, Some(1.0)));
        assert_eq!((spread.relative(), Spread::of(&[5.0]).relative()), (Some(0.5), None));
    }

    #[test]
    fn runs_add_up() {
        let machine = Machine::plain(2);
        let report = |seed| {
            let mut setting = Setting::new(machine.clone(), "classic-mutex-2003", "hot-lock", 4);
            (setting.seed, setting.for_ns) = (seed, 400_000);
            setting.run().unwrap()
        };
        let reports = [report(1), report(2)];
        let summary = Summary::of(&machine, &reports).unwrap();
        assert_eq!(summary.seeds, [1, 2]);
        assert_eq!(summary.acquisitions(), reports[0].total() + reports[1].total());
        assert_eq!(summary.places.len(), 1);
        assert_eq!(summary.places[0].locks, 1);
        assert_eq!(
            summary.counts.switches,
            reports[0].outcome.counts.switches + reports[1].outcome.counts.switches
        );
        let Shares { working, spinning, runnable, asleep } = summary.time;
        assert!((working + spinning + runnable + asleep - 1.0).abs() < 1e-9);
        assert!((0.25..=1.0).contains(&summary.fairness.jain));
        assert!(Summary::of(&machine, &[]).is_none());
    }

    impl Summary {
        /// Of one run, which is made.
        pub(crate) fn of_run(setting: &Setting) -> Self {
            Self::of(&setting.machine, &[setting.run().unwrap()]).unwrap()
        }
    }

    fn weak(workload: &str, threads: u32, for_ns: u64) -> Vec<Weak> {
        let setting = Setting::new(Machine::plain(4), "classic-mutex-nospin", workload, threads);
        Weak::of(&Summary::of_run(&Setting { for_ns, ..setting }))
    }

    #[test]
    fn what_is_proposed_is_enough() {
        let few = weak("long", 4, 400_000);
        let [Weak::FewOperations { operations, try_for_ns }] = few[..] else { panic!("{few:?}") };
        assert!((1.0..100.0).contains(&operations), "{operations}");
        assert_eq!(weak("long", 4, try_for_ns), []);
    }

    #[test]
    fn few_of_each_thread() {
        let few = weak("long", 64, 3_000_000);
        let Weak::FewOfEachThread { operations, try_for_ns } = few[0] else { panic!("{few:?}") };
        assert!(operations < 10.0 && try_for_ns > 3_000_000, "{few:?}");
        assert!(!matches!(weak("long", 64, try_for_ns)[..], [Weak::FewOfEachThread { .. }, ..]));
    }

    #[test]
    fn nothing_at_all_is_said_elsewhere() {
        assert_eq!(weak("long", 4, 10), []);
    }

    #[test]
    fn proposals_are_round() {
        let rounded = [1.0, 1.1, 19_000_000.0, 20_000_000.0, 5.1e8, 3e12].map(round);
        assert_eq!(rounded, [1, 2, 20_000_000, 20_000_000, 1_000_000_000, 1_000_000_000_000]);
    }
}
