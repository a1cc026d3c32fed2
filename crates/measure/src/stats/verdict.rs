//! What an interval allows to say.
//!
//! | verdict | when |
//! |---|---|
//! | equivalent | the whole interval lies within ± margin |
//! | lower / higher | the interval excludes "no change", and the median change exceeds the noise floor |
//! | undecided | anything else: more blocks, or a quieter machine |
//!
//! The *noise floor* is the farthest end of the A/A interval: what the same locks differ by from run to run. The
//! *margin* is 2 %, or the noise floor where that is larger, but never more than 5 %: a machine so noisy that
//! it cannot tell 20 % apart does not make two programs equivalent.

use serde::Serialize;

use super::Ratio;

/// A change smaller than this is called "equivalent" even on a silent machine.
pub const MARGIN: f64 = 0.02;

/// The margin does not grow beyond this, however noisy the machine is.
pub const MAX_MARGIN: f64 = 0.05;

/// Where the new configuration's value stands relative to the baseline's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The value is smaller than the baseline's.
    Lower,
    /// The value is larger than the baseline's.
    Higher,
    /// The values differ by less than the margin.
    Equivalent,
    /// The measurement does not say.
    Undecided,
}

/// The equivalence margin for a noise floor, as a fraction.
#[must_use]
pub fn margin(noise_floor: f64) -> f64 {
    noise_floor.clamp(MARGIN, MAX_MARGIN)
}

/// Judges the ratio `new / baseline`, knowing the ratio `baseline again / baseline`.
#[must_use]
pub fn judge(change: &Ratio, again: &Ratio) -> Verdict {
    let floor = again.reach();
    if change.reach() <= margin(floor) {
        return Verdict::Equivalent;
    }
    let beyond_noise = change.median.ln().abs().exp_m1() > floor;
    match change {
        Ratio { high, .. } if *high < 1.0 && beyond_noise => Verdict::Lower,
        Ratio { low, .. } if *low > 1.0 && beyond_noise => Verdict::Higher,
        _ => Verdict::Undecided,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Ratio = Ratio { median: 1.0, low: 0.995, high: 1.005 };
    const NOISY: Ratio = Ratio { median: 1.0, low: 0.80, high: 1.20 };

    fn ratio(low: f64, median: f64, high: f64) -> Ratio {
        Ratio { median, low, high }
    }

    #[test]
    fn clear_changes() {
        assert_eq!(judge(&ratio(0.78, 0.80, 0.83), &QUIET), Verdict::Lower);
        assert_eq!(judge(&ratio(1.10, 1.20, 1.30), &QUIET), Verdict::Higher);
    }

    #[test]
    fn inside_the_margin_is_equivalent_even_if_the_interval_excludes_one() {
        assert_eq!(judge(&ratio(0.985, 0.99, 0.995), &QUIET), Verdict::Equivalent);
        assert_eq!(judge(&ratio(0.981, 1.0, 1.019), &QUIET), Verdict::Equivalent);
    }

    #[test]
    fn just_outside_the_margin_is_not() {
        assert_eq!(judge(&ratio(0.97, 1.0, 1.02), &QUIET), Verdict::Undecided);
        assert_eq!(judge(&ratio(0.96, 0.975, 0.99), &QUIET), Verdict::Lower);
    }

    #[test]
    fn a_change_below_the_noise_floor_is_undecided() {
        assert_eq!(judge(&ratio(0.85, 0.90, 0.95), &NOISY), Verdict::Undecided);
        assert_eq!(judge(&ratio(0.60, 0.65, 0.70), &NOISY), Verdict::Lower);
    }

    #[test]
    fn noise_does_not_make_equivalent() {
        assert_eq!(judge(&ratio(0.90, 1.0, 1.10), &NOISY), Verdict::Undecided);
        assert!((margin(NOISY.reach()) - MAX_MARGIN).abs() < 1e-12);
        assert_eq!(judge(&ratio(0.96, 1.0, 1.04), &NOISY), Verdict::Equivalent);
    }

    /// The same data in both configurations can never be a difference.
    #[test]
    fn a_configuration_against_itself() {
        for noise in [QUIET, NOISY, ratio(1.01, 1.02, 1.03)] {
            assert!(matches!(judge(&noise, &noise), Verdict::Equivalent | Verdict::Undecided));
        }
    }
}
