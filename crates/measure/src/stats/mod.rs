//! The statistics of a paired comparison: medians, bootstrap intervals over blocks, verdicts.
//!
//! Ratios are handled as logarithms, so that "twice as fast" and "half as fast" are equally far from "no
//! change".

pub mod bootstrap;
pub mod paired;
pub mod verdict;

use serde::{Deserialize, Serialize};

/// A ratio between two configurations with its 95 % interval. 1.0 means "no change".
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The median over blocks.
    pub median: f64,
    /// The lower end of the 95 % interval.
    pub low: f64,
    /// The upper end of the 95 % interval.
    pub high: f64,
}

impl Ratio {
    /// The farthest distance of the interval from "no change", as a fraction: `[0.96, 1.02]` gives about
    /// 0.042.
    #[must_use]
    pub fn reach(&self) -> f64 {
        self.low.ln().abs().max(self.high.ln().abs()).exp_m1()
    }

    /// How far the median is from "no change", in the smaller of the two readings new ÷ old and old ÷ new:
    /// 0.75 and 1.333 give 0.25.
    #[must_use]
    pub fn least_change(&self) -> f64 {
        -(-self.median.ln().abs()).exp_m1()
    }

    /// Half the width of the interval, as a fraction.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        ((self.high.ln() - self.low.ln()) / 2.0).exp_m1()
    }

    /// Whether the interval contains "no change".
    #[must_use]
    pub fn contains_one(&self) -> bool {
        self.low <= 1.0 && 1.0 <= self.high
    }
}

/// A number of any sign with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The median over blocks.
    pub median: f64,
    /// The lower end of the 95 % interval.
    pub low: f64,
    /// The upper end of the 95 % interval.
    pub high: f64,
}

impl Estimate {
    /// Whether the interval contains `value`.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Times a number above 0.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self { median: self.median * factor, low: self.low * factor, high: self.high * factor }
    }
}

/// The median; `None` without values.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    median_in_place(&mut sorted)
}

/// [`median`] that may reorder its argument.
pub(crate) fn median_in_place(values: &mut [f64]) -> Option<f64> {
    let middle = values.len() / 2;
    if values.is_empty() {
        return None;
    }
    let upper = *values.select_nth_unstable_by(middle, f64::total_cmp).1;
    if values.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = values[..middle].iter().copied().max_by(f64::total_cmp);
    lower.map(|lower| f64::midpoint(lower, upper))
}

/// The geometric mean; `None` without values.
#[must_use]
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    mean(&logs).map(f64::exp)
}

/// The arithmetic mean; `None` without values.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The standard deviation of the population that `values` are a sample of (n − 1); `None` for fewer than two.
#[must_use]
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values).filter(|_| values.len() > 1)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// The value below which the fraction `q` of `sorted` lies, linearly interpolated. `sorted` must not be
/// empty.
#[must_use]
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let position = q.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let below = position.floor() as usize;
    let above = position.ceil() as usize;
    let share = position - below as f64;
    sorted[below] * (1.0 - share) + sorted[above] * share
}

/// The bin below whose end the fraction `q` of all counted values lies; `None` without values.
#[must_use]
pub fn quantile_bin(counts: &[u64], q: f64) -> Option<usize> {
    let rank = (counts.iter().sum::<u64>() as f64 * q).ceil().max(1.0) as u64;
    let mut below = 0;
    counts.iter().position(|count| {
        below += count;
        below >= rank
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_odd_even_and_none() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn mean_and_standard_deviation() {
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert_eq!(mean(&values), Some(5.0));
        assert!((standard_deviation(&values).unwrap() - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
        assert_eq!((mean(&[]), standard_deviation(&[1.0])), (None, None));
    }

    #[test]
    fn quantile_interpolates() {
        let sorted = [0.0, 1.0, 2.0, 3.0, 4.0];
        assert_eq!(quantile(&sorted, 0.0), 0.0);
        assert_eq!(quantile(&sorted, 0.5), 2.0);
        assert_eq!(quantile(&sorted, 0.125), 0.5);
        assert_eq!(quantile(&sorted, 1.0), 4.0);
    }

    #[test]
    fn quantiles_of_bins() {
        let counts = [0, 1, 0, 2, 1];
        assert_eq!([0.0, 0.25, 0.5, 0.76, 1.0].map(|q| quantile_bin(&counts, q)), [1, 1, 3, 4, 4].map(Some));
        assert_eq!(quantile_bin(&[0, 0], 0.5), None);
    }

    #[test]
    fn reach_is_the_same_in_both_directions() {
        let up = Ratio { median: 1.0, low: 1.0, high: 1.25 };
        let down = Ratio { median: 1.0, low: 0.8, high: 1.0 };
        assert!((up.reach() - 0.25).abs() < 1e-12);
        assert!((down.reach() - 0.25).abs() < 1e-12);
        assert!(up.contains_one() && !Ratio { median: 1.1, low: 1.01, high: 1.2 }.contains_one());
    }
}
