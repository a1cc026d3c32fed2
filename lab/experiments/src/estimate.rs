//! How long the rest of many runs takes. Runs differ by factors of thousands, so counting them would say
//! nothing.
//!
//! What a run costs is about its virtual time times the square root of the threads that can do something,
//! times a factor of the lock and the workload, which is learnt from the runs that have ended. Factors of one
//! workload's locks differ by ten, and those that end first are the low ones: so nothing is said before the
//! factors of most of the rest are known.

use std::collections::BTreeMap;

use spinpark_sim::workload::Setting;

/// Some runs: what kind they are, what each weighs.
#[derive(Clone, Debug)]
struct Weighed {
    kind: (String, String),
    weight: f64,
}

/// So much of the rest is of kinds that are known, or nothing is said. With this, the first estimates of
/// sweeps of all locks on 64 CPUs, under five workloads, came after 9 to 28 % of the time, and were off by 8
/// to 24 %.
const KNOWN: f64 = 0.75;

/// How much a run weighs, before anything is known about its lock. The square root is between those workloads
/// whose threads do their own work most of the time (all of them cost something) and those in which they wait
/// for one lock (a waiter costs little); in the sweeps above it is right within 20 % from 2 to 128 threads
/// for the sum over all locks of `hot-lock`.
#[must_use]
pub fn weight(setting: &Setting) -> f64 {
    let (threads, cpus) = (f64::from(setting.threads), f64::from(setting.machine.cpus()));
    // Those without a CPU cost little, apart from their switches.
    let active = threads.min(cpus) + 0.2 * (threads - cpus).max(0.0);
    setting.for_ns as f64 * active.sqrt()
}

/// Seconds that were spent on some weight.
#[derive(Clone, Copy, Debug, Default)]
struct Learnt {
    seconds: f64,
    weight: f64,
}

/// What is known about runs that are under way.
#[derive(Clone, Debug)]
pub struct Estimate {
    waiting: BTreeMap<usize, Weighed>,
    weight: f64,
    all: Learnt,
    by_kind: BTreeMap<(String, String), Learnt>,
    /// How many run at a time.
    side_by_side: f64,
}

impl Estimate {
    /// Before the first run.
    #[must_use]
    pub fn new(settings: &[Setting], side_by_side: usize) -> Self {
        let weighed = |(number, setting): (usize, &Setting)| {
            let kind = (setting.lock.clone(), setting.workload.clone());
            (number, Weighed { kind, weight: weight(setting) })
        };
        Self {
            waiting: settings.iter().enumerate().map(weighed).collect(),
            weight: settings.iter().map(weight).sum(),
            all: Learnt::default(),
            by_kind: BTreeMap::new(),
            side_by_side: side_by_side.max(1) as f64,
        }
    }

    /// Run `number` has ended, after this number of seconds.
    pub fn ended(&mut self, number: usize, seconds: f64) {
        let Some(Weighed { kind, weight }) = self.waiting.remove(&number) else { return };
        for learnt in [&mut self.all, self.by_kind.entry(kind).or_default()] {
            learnt.seconds += seconds;
            learnt.weight += weight;
        }
    }

    /// Which part of the runs has ended, by weight: 0 to 1.
    #[must_use]
    pub fn part(&self) -> f64 {
        if self.weight > 0.0 { self.all.weight / self.weight } else { 0.0 }
    }

    /// Seconds until all have ended, about. None: too little is known yet.
    #[must_use]
    pub fn left(&self) -> Option<f64> {
        let rate = |learnt: &Learnt| (learnt.weight > 0.0).then(|| learnt.seconds / learnt.weight);
        let any = rate(&self.all)?;
        let is_known = |run: &&Weighed| self.by_kind.contains_key(&run.kind);
        let known: f64 = self.waiting.values().filter(is_known).map(|run| run.weight).sum();
        if known < KNOWN * self.waiting.values().map(|run| run.weight).sum::<f64>() {
            return None;
        }
        let seconds = |run: &Weighed| run.weight * self.by_kind.get(&run.kind).and_then(rate).unwrap_or(any);
        let longest = self.waiting.values().map(seconds).fold(0.0, f64::max);
        Some((self.waiting.values().map(seconds).sum::<f64>() / self.side_by_side).max(longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spinpark_sim::machine::Machine;

    #[test]
    fn long_runs_weigh_more_and_locks_are_learnt() {
        let setting = |lock: &str, threads| Setting::new(Machine::plain(16), lock, "saturated", threads);
        let settings = [
            setting("spinpark", 16),
            setting("classic-tas", 16),
            setting("spinpark", 16),
            setting("classic-tas", 16),
        ];
        assert!(weight(&setting("spinpark", 64)) > weight(&settings[0]));
        let mut estimate = Estimate::new(&settings, 1);
        assert_eq!(estimate.left(), None);
        estimate.ended(0, 1.0);
        assert_eq!(estimate.left(), None, "of most of the rest nothing is known");
        assert!((estimate.part() - 0.25).abs() < 1e-9);
        estimate.ended(1, 9.0);
        let left = estimate.left().unwrap();
        assert!((left - 10.0).abs() < 1e-9, "one more of each: {left}");
        estimate.ended(2, 1.0);
        estimate.ended(3, 9.0);
        assert_eq!((estimate.left(), estimate.part()), (Some(0.0), 1.0));
    }

    /// One lock at several numbers of threads: the first run says something about all.
    #[test]
    fn one_kind_is_known_from_its_first_run() {
        let settings =
            [64, 16, 4].map(|threads| Setting::new(Machine::plain(64), "spinpark", "long", threads));
        let mut estimate = Estimate::new(&settings, 1);
        estimate.ended(0, 8.0);
        let left = estimate.left().unwrap();
        assert!((left - 6.0).abs() < 1e-9, "4 s and 2 s: {left}");
    }

    #[test]
    fn the_longest_run_is_not_split() {
        let settings =
            [1, 1, 1000].map(|threads| Setting::new(Machine::plain(1000), "spinpark", "long", threads));
        let mut estimate = Estimate::new(&settings, 100);
        estimate.ended(0, 1.0);
        assert!(estimate.left().unwrap() > 30.0);
    }
}
