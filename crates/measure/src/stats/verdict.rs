//! What an interval allows to say.
//!
//! | verdict | when |
//! |---|---|
//! | equivalent | the whole interval lies within ± margin |
//! | lower / higher | the interval excludes "no change", and the median change exceeds the noise floor |
//! | undecided | anything else: more blocks, or a quieter machine |
//!
//! One change has two percentages: a time of −23.5 % is a rate of +30.7 %. The reading that is harder to pass
//! counts: the larger one of noise and of intervals ([`Ratio::reach`]), the smaller one of the change
//! ([`Ratio::least_change`]). So a change up, the same change down, a time and its rate get the same verdict,
//! and none that is printed as smaller than the noise is called a difference.
//!
//! The *noise floor* is the farthest end of the A/A interval: what the same locks differ by from run to run.
//! The *margin* is 2 %, or the noise floor where that is larger, but never more than 5 %: a machine so noisy
//! that it cannot tell 20 % apart does not make two programs equivalent.

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
    let beyond_noise = change.least_change() > floor;
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

    /// As a table shows it: −23.5 % beside ±29.6 %, and +30.7 % for the rate.
    #[test]
    fn a_time_and_its_rate_get_the_same_verdict() {
        let noise = ratio(1.0 / 1.296, 1.0, 1.1);
        let time = ratio(0.72, 0.765, 0.81);
        assert_eq!(judge(&time, &noise), Verdict::Undecided);
        assert_eq!(judge(&inverse(&time), &noise), Verdict::Undecided);
        for (median, noise) in [(0.70, &noise), (0.5, &QUIET), (0.979, &QUIET), (0.98, &QUIET), (0.9, &NOISY)]
        {
            let time = ratio(median * 0.999, median, median * 1.001);
            let mirrored = match judge(&time, noise) {
                Verdict::Lower => Verdict::Higher,
                other => other,
            };
            assert_eq!(judge(&inverse(&time), &inverse(noise)), mirrored, "{median}");
            assert_eq!(judge(&inverse(&time), noise), mirrored, "{median}");
        }
    }

    /// The change must exceed the floor, in the reading that is smaller.
    #[test]
    fn at_the_noise_floor() {
        let noise = ratio(0.8, 1.0, 1.0);
        assert!((noise.reach() - 0.25).abs() < 1e-12);
        let of = |median: f64| judge(&ratio(median * 0.99, median, median * 1.01), &noise);
        assert_eq!([of(0.749), of(0.751)], [Verdict::Lower, Verdict::Undecided]);
        assert_eq!([of(1.0 / 0.749), of(1.0 / 0.751)], [Verdict::Higher, Verdict::Undecided]);
        assert_eq!(of(1.26), Verdict::Undecided, "−20.6 % the other way round");
    }

    fn inverse(ratio: &Ratio) -> Ratio {
        Ratio { median: 1.0 / ratio.median, low: 1.0 / ratio.high, high: 1.0 / ratio.low }
    }

    /// The same data in both configurations can never be a difference.
    #[test]
    fn a_configuration_against_itself() {
        for noise in [QUIET, NOISY, ratio(1.01, 1.02, 1.03)] {
            assert!(matches!(judge(&noise, &noise), Verdict::Equivalent | Verdict::Undecided));
        }
    }
}
