//! How long an iteration of work takes on this machine, and a section without any: one thread, no lock.

use std::hint::black_box;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use spinpark_measure::stats::median;

use crate::locks::workloads::work::Random;

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

#[cfg(test)]
mod tests {
    use super::*;

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
