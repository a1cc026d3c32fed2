//! What makes the figures of a run weak, and which time would make them better.

use serde::Serialize;

use super::summary::Summary;

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
    use spinpark_sim::machine::Machine;
    use spinpark_sim::workload::Setting;

    use super::*;

    fn weak(workload: &str, threads: u32, for_ns: u64) -> Vec<Weak> {
        let machine = Machine::plain(4);
        let mut setting = Setting::new(machine.clone(), "classic-mutex-nospin", workload, threads);
        setting.for_ns = for_ns;
        Weak::of(&Summary::of(&machine, &[setting.run().unwrap()]).unwrap())
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
