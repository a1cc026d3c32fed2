//! Percentile bootstrap of a median over blocks (Efron 1979).
//!
//! The blocks are drawn again with replacement, the median of each drawing is taken, and the middle 95 % of
//! those medians are the interval. Blocks are the unit: they are what was repeated independently. No
//! distribution is assumed.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::{Estimate, Ratio, median, median_in_place, quantile};

/// Drawings per interval. The interval's own error is then far below what 10 or 20 blocks can say.
pub const RESAMPLES: usize = 10_000;

/// The fewest blocks that allow a 95 % interval of a median. With five, all values lie on one side of the
/// true median in 2 × 0.5⁵ = 6.3 % of all cases; with six in 3.1 %.
pub const MIN_BLOCKS: usize = 6;

/// The median of `ratios` with its 95 % interval; `None` if there are fewer than [`MIN_BLOCKS`], or if a
/// ratio is not a positive number.
#[must_use]
pub fn ratio_interval(ratios: &[f64], seed: u64) -> Option<Ratio> {
    ratio_interval_of(RESAMPLES, ratios, seed)
}

/// [`ratio_interval`] with fewer drawings, for thousands of intervals at a time.
#[must_use]
pub fn ratio_interval_of(resamples: usize, ratios: &[f64], seed: u64) -> Option<Ratio> {
    interval_of_ratios(resamples, ratios, seed, ERROR)
}

/// [`ratio_interval`] that misses the true median in a share `error` of cases, not 5 %; `None` also if `ratios` are too
/// few for that.
#[must_use]
pub fn ratio_interval_at(ratios: &[f64], seed: u64, error: f64) -> Option<Ratio> {
    interval_of_ratios(RESAMPLES, ratios, seed, error)
}

/// In so many cases, a 95 % interval does not contain the true median.
pub const ERROR: f64 = 0.05;

fn interval_of_ratios(resamples: usize, ratios: &[f64], seed: u64, error: f64) -> Option<Ratio> {
    // All of them lie on one side of the true median in so many cases.
    let one_sided = 2.0 * 0.5_f64.powi(ratios.len().try_into().unwrap_or(i32::MAX));
    if ratios.len() < MIN_BLOCKS || one_sided > error || ratios.iter().any(|r| !r.is_finite() || *r <= 0.0) {
        return None;
    }
    let logs: Vec<f64> = ratios.iter().map(|r| r.ln()).collect();
    let of_logs = interval_of(resamples, &logs, seed, error)?;
    Some(Ratio { median: of_logs.median.exp(), low: of_logs.low.exp(), high: of_logs.high.exp() })
}

/// The median of `values`, of any sign, with its 95 % interval; `None` if there are fewer than [`MIN_BLOCKS`], or
/// if one is no finite number.
#[must_use]
pub fn interval(values: &[f64], seed: u64) -> Option<Estimate> {
    let is_one = values.len() >= MIN_BLOCKS && values.iter().all(|value| value.is_finite());
    if is_one { interval_of(RESAMPLES, values, seed, ERROR) } else { None }
}

fn interval_of(resamples: usize, values: &[f64], seed: u64, error: f64) -> Option<Estimate> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut drawing = vec![0.0; values.len()];
    let mut medians = Vec::with_capacity(resamples);
    for _ in 0..resamples {
        for slot in &mut drawing {
            *slot = values[rng.random_range(0..values.len())];
        }
        medians.push(median_in_place(&mut drawing)?);
    }
    medians.sort_unstable_by(f64::total_cmp);
    Some(Estimate {
        median: median(values)?,
        low: quantile(&medians, error / 2.0),
        high: quantile(&medians, 1.0 - error / 2.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_ratios_give_a_point() {
        let ratio = ratio_interval(&[0.5; 10], 1).unwrap();
        assert!((ratio.low - 0.5).abs() < 1e-12 && (ratio.high - 0.5).abs() < 1e-12);
    }

    #[test]
    fn same_seed_same_interval_other_seed_nearly_so() {
        let ratios: Vec<f64> = (0..20).map(|i| 0.9 + f64::from(i) * 0.01).collect();
        let first = ratio_interval(&ratios, 7).unwrap();
        assert_eq!(first, ratio_interval(&ratios, 7).unwrap());
        let other = ratio_interval(&ratios, 8).unwrap();
        assert!((first.low - other.low).abs() < 0.01 && (first.high - other.high).abs() < 0.01);
    }

    /// Against the exact distribution: with n = 9 the bootstrap median is the k-th value with binomial
    /// probability; P(median <= x₍₁₎) = 0.2 % and P(median <= x₍₂₎) = 3.0 %, so the 2.5 % quantile is the
    /// second smallest value.
    #[test]
    fn known_interval_of_nine_values() {
        let ratios: Vec<f64> = (1..=9).map(f64::from).collect();
        let ratio = ratio_interval(&ratios, 3).unwrap();
        assert!((ratio.median - 5.0).abs() < 1e-9);
        assert!((ratio.low - 2.0).abs() < 1e-9, "{}", ratio.low);
        assert!((ratio.high - 8.0).abs() < 1e-9, "{}", ratio.high);
    }

    /// Draws many experiments whose true ratio is 1 and counts how often the interval contains it.
    #[test]
    fn coverage_is_near_95_percent() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(42);
        let trials = 60;
        let hits = (0..trials)
            .filter(|&trial| {
                let ratios: Vec<f64> = (0..15).map(|_| 1.0 + rng.random_range(-0.1..0.1)).collect();
                ratio_interval(&ratios, trial).unwrap().contains_one()
            })
            .count();
        assert!((50..=60).contains(&hits), "{hits} of {trials}");
    }

    #[test]
    fn fewer_errors_take_a_wider_interval_and_more_values() {
        let ratios: Vec<f64> = (1..=15).map(f64::from).collect();
        let [usual, rarer] = [0.05, 0.001].map(|error| ratio_interval_at(&ratios, 3, error).unwrap());
        assert!(rarer.low < usual.low && usual.high < rarer.high, "{rarer:?} {usual:?}");
        assert_eq!(Some(usual), ratio_interval(&ratios, 3));
        assert_eq!(ratio_interval_at(&ratios[..6], 3, 0.03), None);
        assert!(ratio_interval_at(&ratios[..7], 3, 0.03).is_some());
    }

    #[test]
    fn values_of_any_sign_have_an_interval() {
        let values: Vec<f64> = (-4..=4).map(f64::from).collect();
        let found = interval(&values, 3).unwrap();
        assert_eq!((found.median, found.low, found.high), (0.0, -3.0, 3.0));
        assert!(found.contains(0.0) && !found.contains(3.5));
        assert_eq!(interval(&values[..5], 3), None);
        assert_eq!(interval(&[f64::NAN; 9], 3), None);
    }

    #[test]
    fn too_few_or_impossible_ratios_have_no_interval() {
        assert_eq!(ratio_interval(&[1.0; 5], 1), None);
        assert_eq!(ratio_interval(&[1.0, 1.0, 1.0, 1.0, 1.0, 0.0], 1), None);
        assert_eq!(ratio_interval(&[1.0, 1.0, 1.0, 1.0, 1.0, f64::NAN], 1), None);
    }
}
