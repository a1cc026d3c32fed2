//! Histograms with bins of powers of two, as document 001 has them.

use serde::{Deserialize, Serialize};

/// How many bins there are.
const BINS: usize = 64;

/// Counts by size: bin *n* holds what is at least 2^(n−1) and below 2^n; bin 0 holds 0.
///
/// In cycles, document 001's figures agree with this reading of its bins, and not with 2^n ≤ x < 2^(n+1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    bins: Vec<u64>,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { bins: vec![0; BINS] }
    }
}

impl Histogram {
    /// Counts a value.
    pub fn add(&mut self, value: u64) {
        let bin = (u64::BITS - value.leading_zeros()) as usize;
        self.bins[bin.min(BINS - 1)] += 1;
    }

    /// The count of each bin.
    #[must_use]
    pub fn bins(&self) -> &[u64] {
        &self.bins
    }

    /// How many values there are.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.bins.iter().sum()
    }

    /// The bin in which the value lies below which a part `quantile` (0 to 1) of all lies.
    #[must_use]
    pub fn quantile_bin(&self, quantile: f64) -> Option<usize> {
        spinpark_measure::stats::quantile_bin(&self.bins, quantile)
    }

    /// Adds what another one counted.
    pub fn merge(&mut self, other: &Self) {
        self.bins.iter_mut().zip(&other.bins).for_each(|(mine, theirs)| *mine += theirs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bin_ends_at_its_power_of_two() {
        let mut histogram = Histogram::default();
        [0, 1, 2, 3, 4, 1023, 1024, u64::MAX].into_iter().for_each(|value| histogram.add(value));
        let filled: Vec<_> = (0..BINS).filter(|&bin| histogram.bins()[bin] > 0).collect();
        assert_eq!(filled, [0, 1, 2, 3, 10, 11, 63]);
        assert_eq!(
            (histogram.total(), histogram.quantile_bin(0.5), histogram.quantile_bin(1.0)),
            (8, Some(2), Some(63))
        );
    }
}
