//! What a lock that costs nothing would do: bounded by the sections that exclude each other, and by the CPUs.
//!
//! How long an iteration of work takes on this machine, and a section without any, is measured by one thread
//! without a lock.

use std::hint::black_box;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use spinpark_measure::stats::median;

use super::load::{Load, Queue, Section, Shared};
use super::workloads::work::Random;

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Time of an iteration of work, in nanoseconds.
    pub iteration_ns: f64,
    /// Time of a section that changes one cache line and does no work, in nanoseconds.
    pub empty_section_ns: f64,
}

impl Calibration {
    /// Measures, for some milliseconds.
    #[must_use]
    pub fn measure() -> Self {
        const STEPS: u32 = 20_000;
        const SECTIONS: u32 = 20_000;
        let mut random = Random::new(0);
        let iteration_ns = shortest(|| random.work(STEPS)) / f64::from(STEPS);
        let mut line = [0_u64; 2];
        let sections = || {
            for _ in 0..SECTIONS {
                for counter in black_box(&mut line) {
                    *counter += 1;
                }
            }
        };
        Self { iteration_ns, empty_section_ns: shortest(sections) / f64::from(SECTIONS) }
    }

    /// The medians of several; none of none.
    #[must_use]
    pub fn middle(all: &[Self]) -> Option<Self> {
        let of = |figure: fn(&Self) -> f64| median(&all.iter().map(figure).collect::<Vec<_>>());
        Some(Self {
            iteration_ns: of(|one| one.iteration_ns)?,
            empty_section_ns: of(|one| one.empty_section_ns)?,
        })
    }
}

/// The time of the shortest of many tries, in nanoseconds: the one that was disturbed least.
fn shortest(mut what: impl FnMut()) -> f64 {
    const TRIES: usize = 50;
    let times = (0..TRIES).map(|_| {
        let start = Instant::now();
        what();
        start.elapsed().as_secs_f64() * 1e9
    });
    times.fold(f64::INFINITY, f64::min)
}

/// Operations a second of an ideal lock; none where that is no question of the lock's time only (a hand-over
/// without work).
#[must_use]
pub fn throughput(load: &Load, threads: usize, cpus: usize, calibration: &Calibration) -> Option<f64> {
    let steps = |steps: u32| f64::from(steps) * calibration.iteration_ns;
    let empty = calibration.empty_section_ns;
    let at_once = threads.min(cpus) as f64;
    let ns = match load {
        Load::Section(Section { locks, lines, inside, outside, leaves_ms, .. }) => {
            let section = steps(*inside) + empty * *lines as f64;
            let cycle = section + steps(*outside);
            // A thread that leaves for as long as it works asks for the lock half of the time.
            let asked = if *leaves_ms > 0 { 2.0 * cycle / threads as f64 } else { 0.0 };
            (section / *locks as f64).max(cycle / at_once).max(asked)
        }
        Load::Shared(shared) if !shared.one_writer => {
            let Shared { inside, outside, .. } = shared;
            let section = steps(*inside) + empty;
            let writes = f64::from(shared.per_thousand()) / 1000.0;
            // Writes are alone, reads share the CPUs.
            let held = section * (writes + (1.0 - writes) / at_once);
            held.max((section + steps(*outside)) / at_once)
        }
        // A push or a pop; the items of a second pass both sides.
        Load::Queue(queue @ Queue { work, .. }) if *work > 0 => {
            let cycle = empty + steps(*work);
            let producers = queue.producers_of(threads);
            let narrow = producers.min(threads - producers) as f64;
            empty.max(cycle / at_once).max(cycle / (2.0 * narrow))
        }
        Load::Pool(pool) if pool.work > 0 => {
            let workers = (threads - 1).min(cpus) as f64;
            (empty + steps(pool.work)) / workers
        }
        Load::Barrier(barrier) if barrier.work > 0 => {
            // All work of a generation, in as many turns as the CPUs need.
            let turns = threads.div_ceil(cpus) as f64;
            turns * steps(barrier.work) / threads as f64
        }
        _ => return None,
    };
    Some(1e9 / ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locks::load::{Barrier, Pool};

    const CALIBRATION: Calibration = Calibration { iteration_ns: 2.0, empty_section_ns: 1.0 };

    fn per_operation(load: &Load, threads: usize, cpus: usize) -> f64 {
        1e9 / throughput(load, threads, cpus, &CALIBRATION).unwrap()
    }

    fn section(inside: u32, outside: u32) -> Section {
        Section { inside, outside, ..Section::default() }
    }

    #[test]
    fn a_mutex_is_bound_by_its_section_or_by_the_cpus() {
        let of = |section: Section, threads| per_operation(&Load::Section(section), threads, 2);
        let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found}");
        close(of(section(100, 0), 16), 201.0);
        close(of(section(0, 100), 16), 100.5);
        close(of(section(0, 100), 1), 201.0);
        close(of(section(100, 100), 2), 201.0);
        close(of(Section { locks: 8, ..section(100, 0) }, 16), 100.5);
        close(of(Section { lines: 5, ..section(100, 0) }, 16), 205.0);
        close(of(Section { leaves_ms: 1, ..section(0, 100) }, 2), 201.0);
    }

    #[test]
    fn writes_are_alone_and_reads_are_not() {
        let of = |writes, outside| {
            let shared =
                Shared { writes_per_thousand: Some(writes), inside: 100, outside, ..Shared::default() };
            per_operation(&Load::Shared(shared), 4, 2)
        };
        assert!((of(0, 0) - 100.5).abs() < 1e-9);
        assert!((of(1000, 0) - 201.0).abs() < 1e-9);
        assert!((of(500, 0) - 150.75).abs() < 1e-9);
        assert!((of(0, 100) - 200.5).abs() < 1e-9);
    }

    #[test]
    fn a_queue_is_bound_by_its_narrow_side() {
        let of = |producers, threads| {
            let text = format!(r#"{{"queue":{{"capacity":4,"producers":{producers},"work":100}}}}"#);
            per_operation(&serde_json::from_str(&text).unwrap(), threads, 4)
        };
        assert!((of(4, 8) - 50.25).abs() < 1e-9);
        assert!((of(1, 8) - 100.5).abs() < 1e-9);
    }

    #[test]
    fn a_hand_over_without_work_has_no_ideal() {
        let of = |load: &Load| throughput(load, 3, 2, &CALIBRATION);
        assert_eq!(of(&Load::Barrier(Barrier { work: 0 })), None);
        assert_eq!(of(&Load::Pool(Pool { batch: 4, work: 0 })), None);
        let barrier = of(&Load::Barrier(Barrier { work: 300 })).unwrap();
        assert!((1e9 / barrier - 400.0).abs() < 1e-9);
        assert!(of(&Load::Pool(Pool { batch: 4, work: 100 })).is_some());
    }

    #[test]
    fn this_machine() {
        let Calibration { iteration_ns, empty_section_ns } = Calibration::measure();
        assert!(
            iteration_ns > 0.0
                && iteration_ns.is_finite()
                && empty_section_ns > 0.0
                && empty_section_ns.is_finite()
        );
    }

    #[test]
    fn the_middle() {
        let one = |iteration_ns| Calibration { iteration_ns, empty_section_ns: 1.0 };
        assert_eq!(Calibration::middle(&[one(9.0), one(2.0), one(3.0)]), Some(one(3.0)));
        assert_eq!(Calibration::middle(&[]), None);
    }
}
