//! Ratios of two series of runs, round by round: drift of the machine cancels inside a round.

use std::collections::BTreeMap;

use super::Ratio;
use super::bootstrap::{ERROR, ratio_interval_at};

/// A number for each round.
pub type ByRound = BTreeMap<usize, f64>;

/// New ÷ old, round by round, where both ran.
#[must_use]
pub fn paired(new: &ByRound, old: &ByRound) -> ByRound {
    new.iter().filter_map(|(round, new)| Some((*round, new / old.get(round)?))).collect()
}

/// The median of ratios, with its interval if there are enough.
#[must_use]
pub fn ratio(ratios: &ByRound, seed: u64) -> Option<Ratio> {
    ratio_at(ratios, seed, ERROR)
}

/// [`ratio`] with an interval that misses in a share `error` of cases.
#[must_use]
pub fn ratio_at(ratios: &ByRound, seed: u64, error: f64) -> Option<Ratio> {
    ratio_interval_at(&ratios.values().copied().collect::<Vec<_>>(), seed, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rounds_that_both_have() {
        let new = ByRound::from([(0, 2.0), (1, 3.0), (3, 9.0)]);
        let old = ByRound::from([(0, 1.0), (1, 2.0), (2, 5.0)]);
        assert_eq!(paired(&new, &old), ByRound::from([(0, 2.0), (1, 1.5)]));
        assert_eq!(ratio(&paired(&new, &old), 1), None);
    }
}
