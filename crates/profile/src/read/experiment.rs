//! What the recorder's spans have measured (the recorder's `spans`): the cost of recording, as a ratio with
//! its interval.
//!
//! Each cycle has a recorded span and light ones. Of both the file has time, CPU time and uses of contended
//! locks, as sums and sums of products over the cycles. A ratio of ratios of sums has the variance of its
//! linear approximation (the delta method): cycles are alike and independent, spans of one cycle are not.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use spinpark_recorder::format::{self, EXPERIMENT};

use super::Clock;
use super::sampled_time::student;
use crate::model::Experiment;

/// Fewer cycles, or uses of locks in the recorded spans, tell nothing: threads report uses by 64.
const LEAST_CYCLES: u64 = 8;
const LEAST_USES: f64 = 2_000.0;

/// Places of the sums.
const TIME: usize = 0;
const CPU_TIME: usize = 1;
const USES: usize = 2;
/// Those of the light spans come after those of the recorded ones.
const LIGHT: usize = 3;

/// Sums over cycles.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    cycles: u64,
    sums: [f64; EXPERIMENT],
    products: [f64; EXPERIMENT * (EXPERIMENT + 1) / 2],
}

impl Sums {
    /// Time or CPU time for a use, of recorded ÷ light spans: the 95 % interval.
    fn ratio(&self, which: usize) -> Option<(f64, f64)> {
        let (sums, n) = (&self.sums, self.cycles as f64);
        let parts = [(which, 1.0), (USES, -1.0), (LIGHT + which, -1.0), (LIGHT + USES, 1.0)];
        let is_whole = parts.iter().all(|(at, _)| sums[*at].is_finite() && sums[*at] > 0.0);
        if self.cycles < LEAST_CYCLES || !is_whole || sums[USES] < LEAST_USES {
            return None;
        }
        let log: f64 = parts.iter().map(|(at, sign)| sign * sums[*at].ln()).sum();
        let product = |a: usize, b: usize| {
            let (high, low) = (a.max(b), a.min(b));
            self.products[high * (high + 1) / 2 + low]
        };
        let mut variance = 0.0;
        for (a, of_a) in parts {
            for (b, of_b) in parts {
                variance += of_a * of_b * (product(a, b) / (sums[a] * sums[b]) - 1.0 / n);
            }
        }
        let error = student(self.cycles - 1) * (variance.max(0.0) * n / (n - 1.0)).sqrt();
        error.is_finite().then(|| ((log - error).exp(), (log + error).exp()))
    }
}

/// What the experiment of a recording has found.
pub(super) fn experiment(found: &format::Experiment, clock: Clock) -> Option<Experiment> {
    let float = |sum: &AtomicU64| f64::from_bits(sum.load(Relaxed));
    let sums = Sums {
        cycles: found.cycles.load(Relaxed),
        sums: found.sums.each_ref().map(float),
        products: found.products.each_ref().map(float),
    };
    let light = found.light.load(Relaxed);
    (sums.cycles > 0 || light > 0).then(|| Experiment {
        spans: sums.cycles,
        recorded: clock.ns(sums.sums[TIME].max(0.0) as u64),
        light: clock.ns(light),
        time: sums.ratio(TIME),
        cpu_time: sums.ratio(CPU_TIME),
    })
}

/// By how much what the records stand for differs from the time that they are of, as a part of it: a run ends
/// within a cycle, and spans end late.
pub(super) fn missed(found: &format::Experiment) -> f64 {
    let (covered, stands_for) = (found.covered.load(Relaxed), found.stands_for.load(Relaxed));
    if found.light.load(Relaxed) == 0 {
        return 0.0;
    }
    (stands_for as f64 - covered as f64).abs() / (covered as f64).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Random numbers in [0, 1).
    struct Lot(u64);

    impl Lot {
        fn next(&mut self) -> f64 {
            self.0 ^= self.0 >> 12;
            self.0 ^= self.0 << 25;
            self.0 ^= self.0 >> 27;
            (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1_u64 << 53) as f64
        }
    }

    /// A program that recording makes slower by `cost`, and faster and slower by itself by up to `noise`, over
    /// `cycles` cycles.
    fn program(cycles: u64, cost: f64, noise: f64, lot: &mut Lot) -> Sums {
        let mut all = Sums { cycles, ..Sums::default() };
        for _ in 0..cycles {
            // A phase of the program lasts for the whole cycle.
            let pace = 1.0 + noise * (lot.next() - 0.5);
            let mut one = [0.0; EXPERIMENT];
            for (at, time, cost) in [(0, 2_000.0, cost), (LIGHT, 14_000.0, 1.0)] {
                let pace = pace * (1.0 + noise * (lot.next() - 0.5));
                let cpus = 1.0 + lot.next();
                one[at + TIME] = time;
                one[at + CPU_TIME] = time * cpus;
                one[at + USES] = time * cpus / (cost * pace);
            }
            let mut at = 0;
            for row in 0..EXPERIMENT {
                all.sums[row] += one[row];
                for other in 0..=row {
                    all.products[at] += one[row] * one[other];
                    at += 1;
                }
            }
        }
        all
    }

    #[test]
    fn the_cost_of_a_program_is_in_the_interval() {
        let mut lot = Lot(7);
        for (cycles, cost, noise) in [(8, 1.3, 0.2), (20, 1.05, 0.5), (200, 1.0, 0.8), (60, 1.8, 0.3)] {
            let mut inside = 0;
            for _ in 0..1_000 {
                let (low, high) =
                    program(cycles, cost, noise, &mut lot).ratio(CPU_TIME).expect("an interval");
                inside += u32::from(low <= cost && cost <= high);
            }
            assert!(inside >= 900, "{cycles} {cost} {noise}: {inside} of 1000");
        }
        let (low, high) = program(400, 1.25, 0.2, &mut lot).ratio(CPU_TIME).expect("an interval");
        assert!(low > 1.2 && high < 1.3, "{low} {high}");
    }

    #[test]
    fn too_little_tells_nothing() {
        let mut lot = Lot(7);
        assert_eq!(program(LEAST_CYCLES - 1, 1.3, 0.2, &mut lot).ratio(TIME), None);
        let mut few = program(20, 1.3, 0.2, &mut lot);
        few.sums[USES] = LEAST_USES - 1.0;
        assert_eq!(few.ratio(TIME), None);
        let mut damaged = program(20, 1.3, 0.2, &mut lot);
        damaged.products[3] = f64::NAN;
        assert!(damaged.ratio(TIME).is_none_or(|(low, high)| low <= high));
        damaged.sums[LIGHT] = 0.0;
        assert_eq!(damaged.ratio(TIME), None);
    }
}
