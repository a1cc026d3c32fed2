//! Several variants of one program against the first: rounds, shuffled, and each variant's change.
//!
//! Variant 0 is the baseline, variant 1 the same again: what those differ by is noise.

use serde::Serialize;

use crate::rounds::blocks::{Place, each_run};
use crate::rounds::failure::{End, RunError};
use crate::rounds::sample::{Metric, Sample};
use crate::stats::Ratio;
use crate::stats::bootstrap::ratio_interval;
use crate::stats::verdict::{Verdict, judge};

/// One run.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The round, from 0.
    pub round: usize,
    /// Which variant ran.
    pub variant: usize,
    /// What it cost.
    pub sample: Sample,
}

/// What the trials say about a variant and a metric.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Judged {
    /// The variant ÷ the baseline, over rounds.
    pub change: Option<Ratio>,
    /// The baseline again ÷ the baseline.
    pub again: Option<Ratio>,
    /// What follows.
    pub verdict: Verdict,
}

/// Makes `rounds` rounds of all `variants`, in shuffled order. `run` gets the variant and bytes of padding.
pub fn trials(
    variants: usize,
    rounds: usize,
    seed: u64,
    mut run: impl FnMut(usize, usize) -> Result<Sample, RunError>,
) -> (Vec<Trial>, End) {
    let mut cells = [Vec::with_capacity(variants * rounds)];
    let end = each_run(
        &mut cells,
        rounds,
        seed,
        |_| (0..variants).collect(),
        |made, Place { round, configuration: variant, padding, .. }| {
            let sample = run(variant, padding)?;
            made.push(Trial { round, variant, sample });
            Ok(())
        },
    );
    let [made] = cells;
    (made, end)
}

/// Judges `variant` by `metric`. `seed` makes the intervals reproducible.
#[must_use]
pub fn judged(trials: &[Trial], variant: usize, metric: Metric, seed: u64) -> Judged {
    let value = |round, variant| {
        let trial = trials.iter().find(|trial| trial.round == round && trial.variant == variant)?;
        metric.of(&trial.sample)
    };
    let rounds = trials.iter().map(|trial| trial.round).max().map_or(0, |last| last + 1);
    let ratios = |variant| {
        let each =
            (0..rounds).filter_map(|round| Some(metric.ratio(value(round, variant)?, value(round, 0)?)));
        ratio_interval(&each.collect::<Vec<_>>(), seed)
    };
    let (change, again) = (ratios(variant), ratios(1));
    let verdict = match (&change, &again) {
        (Some(change), Some(again)) => judge(change, again),
        _ => Verdict::Undecided,
    };
    Judged { change, again, verdict }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(walls: [f64; 4]) -> Vec<Trial> {
        let mut orders = Vec::new();
        let (trials, end) = trials(4, 8, 7, |variant, _| {
            orders.push(variant);
            // Drifts, as a machine does.
            Ok(Sample { wall_s: walls[variant] * (1.0 + orders.len() as f64 / 1e4), ..Sample::default() })
        });
        assert!(matches!(end, End::Complete));
        assert_eq!(orders.len(), 32);
        let first: Vec<_> = orders.chunks(4).map(|round| round[0]).collect();
        assert!(first.iter().any(|variant| *variant != first[0]), "shuffled: {first:?}");
        trials
    }

    #[test]
    fn a_variant_is_judged_against_the_baseline() {
        let trials = made([1.0, 1.0, 0.7, 1.0]);
        let verdict = |variant| judged(&trials, variant, Metric::Wall, 1).verdict;
        assert_eq!(verdict(2), Verdict::Lower);
        assert_eq!(verdict(3), Verdict::Equivalent);
        let change = judged(&trials, 2, Metric::Wall, 1).change.unwrap();
        assert!((change.median - 0.7).abs() < 0.01, "{change:?}");
    }

    #[test]
    fn what_lies_within_the_noise_is_no_difference() {
        assert_eq!(judged(&made([1.0, 1.3, 0.9, 1.0]), 2, Metric::Wall, 1).verdict, Verdict::Undecided);
    }

    #[test]
    fn an_interrupt_ends_the_rounds() {
        let (trials, end) = trials(2, 8, 7, |_, _| Err(RunError::Interrupted));
        assert!(trials.is_empty() && matches!(end, End::Interrupted));
        assert_eq!(judged(&trials, 1, Metric::Wall, 1).verdict, Verdict::Undecided);
    }
}
