//! What limits a run: the answer that stands above all figures.
//!
//! It is found from where the threads' time went. A lock limits if a good part of their time is waiting for it. If it
//! is held nearly all of that time, the sections themselves are the limit; if not, the way from one owner to the next is.

use serde::Serialize;
use spinpark_sim::workload::Place;

use super::summary::Summary;

/// Who waits for less than this part of its time is not limited by locks.
const WAITS: f64 = 0.15;
/// A lock at which fewer acquisitions than this find it taken is not contended.
const CONTENDED: f64 = 0.1;
/// A lock that is held for this part of the time has hardly anything to gain.
const HELD: f64 = 0.75;
/// If so many acquisitions do not wait though others do, those who are awake keep the lock to themselves.
const BARGING: f64 = 0.8;
/// Those who are awake keep a lock to themselves only if others sleep for this part of the time.
const OTHERS_SLEEP: f64 = 0.1;
/// CPUs that are busy for this part of the time are the limit, if threads wait for them.
const BUSY: f64 = 0.9;

/// What limits.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "limit", rename_all = "snake_case")]
pub enum Limit {
    /// The run failed.
    Failure {
        /// Of which seed.
        seed: u64,
        /// How.
        what: String,
    },
    /// Nothing can be said: no operation ended within the run's time.
    TooShort {
        /// The run's time, ns.
        for_ns: u64,
    },
    /// A lock, by the sections under it.
    Held {
        /// Which place.
        place: String,
        /// For which part of the time it was held.
        held: f64,
        /// Which part of the acquisitions found it taken, or others waiting for it.
        contended: f64,
        /// Mean wait, ns.
        wait_ns: f64,
    },
    /// A lock, by the way from one owner to the next.
    HandOver {
        /// Which place.
        place: String,
        /// For which part of the time it was held.
        held: f64,
        /// Which part of the acquisitions found it taken, or others waiting for it.
        contended: f64,
        /// Mean time between two holds, ns.
        gap_ns: f64,
        /// Mean hold, ns.
        hold_ns: f64,
    },
    /// Nothing but the few threads that are awake: they come back for a lock before the others have woken up.
    Barging {
        /// Which place.
        place: String,
        /// For which part of the time it was held.
        held: f64,
        /// Which part of the acquisitions took it at once, though others waited.
        at_once: f64,
        /// Which part of the threads' time they sleep.
        asleep: f64,
    },
    /// Readers wait for writers.
    Readers {
        /// Which place.
        place: String,
        /// Which part of the acquisitions found it taken, or others waiting for it.
        contended: f64,
        /// Mean wait, ns.
        wait_ns: f64,
    },
    /// The lock is free, but its cache lines have to come from other cores.
    Lines {
        /// Which place.
        place: String,
        /// Mean time of an acquisition, ns.
        wait_ns: f64,
        /// Lines moved for each acquisition.
        moves: f64,
    },
    /// The CPUs.
    Cpus {
        /// Which part of their time they are busy.
        busy: f64,
        /// Which part of the threads' time is waiting for a CPU.
        runnable: f64,
        /// Which part is polling.
        spinning: f64,
    },
    /// Nothing but the work.
    Work {
        /// Which part of the threads' time is work.
        working: f64,
    },
    /// Threads sleep for other reasons than a lock: in a condition variable, for example.
    Sleep {
        /// Which part of the threads' time they sleep.
        asleep: f64,
    },
}

impl Limit {
    /// What limits these runs.
    #[must_use]
    pub fn of(summary: &Summary) -> Self {
        if let Some((seed, failure)) = &summary.failure {
            return Self::Failure { seed: *seed, what: failure.to_string() };
        }
        if summary.throughput.high == 0.0 {
            return Self::TooShort { for_ns: summary.for_ns };
        }
        let threads_ns = summary.measured_ns as f64 * f64::from(summary.threads);
        let waits = |place: &Place| place.in_time.wait_ns / threads_ns.max(1.0);
        let worst = summary.places.iter().max_by(|a, b| a.in_time.wait_ns.total_cmp(&b.in_time.wait_ns));
        if let Some(place) = worst.filter(|place| waits(place) >= WAITS) {
            let limit = of_place(summary, place);
            if let Some(limit) = limit {
                return limit;
            }
        }
        let time = &summary.time;
        if summary.utilisation >= BUSY && time.runnable >= CONTENDED {
            let (runnable, spinning) = (time.runnable, time.spinning);
            return Self::Cpus { busy: summary.utilisation, runnable, spinning };
        }
        if time.asleep < 0.5 {
            return Self::Work { working: time.working };
        }
        // If it is a lock on which they sleep, they have no other reason.
        match worst.filter(|place| waits(place) >= time.asleep / 2.0) {
            Some(place) => of_owners(summary, place),
            None => Self::Sleep { asleep: time.asleep },
        }
    }
}

fn of_place(summary: &Summary, place: &Place) -> Option<Limit> {
    let acquisitions = place.acquisitions.max(1) as f64;
    let contended = place.contended as f64 / acquisitions;
    let wait_ns = place.wait_ns / acquisitions;
    let name = place.name.clone();
    if contended < CONTENDED {
        let moves = summary.per_acquisition(summary.counts.moves());
        return (moves >= 0.5).then_some(Limit::Lines { place: name, wait_ns, moves });
    }
    if name.ends_with("(read)") {
        return Some(Limit::Readers { place: name, contended, wait_ns });
    }
    Some(of_owners(summary, place))
}

/// A lock that limits, by what its owners do or by what passes between two.
fn of_owners(summary: &Summary, place: &Place) -> Limit {
    let acquisitions = place.acquisitions.max(1) as f64;
    let contended = place.contended as f64 / acquisitions;
    let wait_ns = place.wait_ns / acquisitions;
    let name = place.name.clone();
    // Of each of the locks of that name.
    let all_ns = summary.measured_ns as f64 * place.locks.max(1) as f64;
    let held = place.in_time.hold_ns / all_ns.max(1.0);
    let at_once = place.in_time.part_at_once();
    let asleep = summary.time.asleep;
    if held < HELD && at_once >= BARGING && asleep >= OTHERS_SLEEP {
        Limit::Barging { place: name, held, at_once, asleep }
    } else if held >= HELD {
        Limit::Held { place: name, held, contended, wait_ns }
    } else {
        let hold_ns = place.hold_ns / acquisitions;
        let gap_ns = (all_ns - place.in_time.hold_ns).max(0.0) / place.in_time.acquisitions.max(1) as f64;
        Limit::HandOver { place: name, held, contended, gap_ns, hold_ns }
    }
}

#[cfg(test)]
mod tests {
    use spinpark_sim::machine::Machine;
    use spinpark_sim::workload::Setting;

    use super::*;

    fn limit(machine: Machine, lock: &str, workload: &str, threads: u32) -> Limit {
        let mut setting = Setting::new(machine.clone(), lock, workload, threads);
        setting.for_ns = 3_000_000;
        let report = setting.run().unwrap();
        Limit::of(&Summary::of(&machine, &[report]).unwrap())
    }

    #[test]
    fn limits_of_plain_cases() {
        let of = |cpus, lock, workload, threads| limit(Machine::plain(cpus), lock, workload, threads);
        let is = |limit: Limit, expected: &str| {
            let json = serde_json::to_value(&limit).unwrap();
            assert_eq!(json["limit"], expected, "{limit:?}");
        };
        is(of(4, "spinpark", "long", 1), "work");
        is(of(4, "classic-mutex-fixed", "long", 4), "held");
        is(of(8, "classic-mutex-2.6.34", "hot-lock", 8), "hand_over");
        is(of(2, "classic-rwsem-full", "mixed-10", 16), "readers");
        is(of(64, "classic-rwsem-3.12", "readers", 64), "lines");
        is(of(1, "classic-mutex-nospin", "long", 8), "cpus");
    }

    /// At the end those who sleep are woken one by one, which takes as long as the run: that is no time in which the lock
    /// could have been held.
    #[test]
    fn what_comes_after_the_run_is_in_no_share() {
        let machine = Machine::choose("big-512:64").unwrap();
        let limit = |for_ns| {
            let mut setting = Setting::new(machine.clone(), "spinpark", "long", 64);
            setting.for_ns = for_ns;
            let report = setting.run().unwrap();
            let outcome = &report.outcome;
            assert!(outcome.measured_ns == for_ns && outcome.elapsed_ns > for_ns, "{}", outcome.elapsed_ns);
            for times in &outcome.threads {
                let all = times.on_cpu_ns + times.runnable_ns + times.asleep_ns;
                assert!(times.spinning_ns <= times.on_cpu_ns && all <= for_ns, "{times:?}");
            }
            assert!(outcome.busy_ns.iter().all(|busy| *busy <= for_ns));
            Limit::of(&Summary::of(&machine, &[report]).unwrap())
        };
        for for_ns in [5_000_000, 20_000_000] {
            let Limit::Held { held, .. } = limit(for_ns) else { panic!("{:?}", limit(for_ns)) };
            assert!((0.75..=1.0).contains(&held), "{held}");
        }
    }

    /// Where there is nothing but a lock to sleep on, it is said; and nobody is awake alone if nobody sleeps.
    #[test]
    fn sleep_has_a_reason() {
        let limit = |machine: &str, lock: &str, threads, for_ns| {
            let machine = Machine::choose(machine).unwrap();
            let mut setting = Setting::new(machine.clone(), lock, "hot-lock", threads);
            setting.for_ns = for_ns;
            Limit::of(&Summary::of(&machine, &[setting.run().unwrap()]).unwrap())
        };
        let many = limit("big-512", "spinpark", 2048, 300_000);
        assert!(!matches!(many, Limit::Sleep { .. } | Limit::Work { .. }), "{many:?}");
        let two = limit("this-2", "classic-mutex-2003", 2, 5_000_000);
        assert!(!matches!(two, Limit::Barging { .. } | Limit::Sleep { .. }), "{two:?}");
        assert_eq!(limit("this-2", "spinpark", 2, 1), Limit::TooShort { for_ns: 1 });
    }

    #[test]
    fn a_failure_comes_first() {
        let machine = Machine::plain(2);
        let mut setting = Setting::new(machine.clone(), "spinpark", "saturated", 2);
        setting.most_steps = 100;
        let report = setting.run().unwrap();
        let limit = Limit::of(&Summary::of(&machine, &[report]).unwrap());
        assert!(matches!(limit, Limit::Failure { seed: 0, .. }), "{limit:?}");
    }
}
