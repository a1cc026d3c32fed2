//! One program at several numbers of threads, in shuffled rounds: how much faster is it with more?

use serde::Serialize;

use crate::rounds::blocks::each_run;
use crate::rounds::failure::{End, RunError};
use crate::rounds::sample::{Metric, Sample};
use crate::stats::paired::{ByRound, paired, ratio_at};
use crate::stats::{Ratio, median};

/// A run that was made.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Run {
    /// The round, from 0.
    pub round: usize,
    /// The place in the round, from 0.
    pub order: usize,
    /// With so many threads.
    pub threads: usize,
    /// Whether it is the first number of threads once more (A/A).
    pub again: bool,
    /// Bytes of environment that mean nothing.
    pub padding: usize,
    /// What it cost.
    #[serde(flatten)]
    pub sample: Sample,
}

/// Makes one run, with so many threads and so much padding.
pub type MakeRun<'a> = &'a mut dyn FnMut(usize, usize) -> Result<Sample, RunError>;

/// Runs `rounds` rounds, each with every number of `threads`, and with the first one again.
pub fn measure(threads: &[usize], rounds: usize, seed: u64, make: MakeRun<'_>) -> (Vec<Run>, End) {
    let again = threads.first().map(|first| (*first, true));
    let configurations: Vec<(usize, bool)> =
        threads.iter().map(|number| (*number, false)).chain(again).collect();
    let mut cells = [Vec::with_capacity(rounds * configurations.len())];
    let end = each_run(
        &mut cells,
        rounds,
        seed,
        |_| configurations.clone(),
        |runs: &mut Vec<Run>, place| {
            let (threads, again) = place.configuration;
            let sample = make(threads, place.padding)?;
            let (round, order, padding) = (place.round, place.order, place.padding);
            runs.push(Run { round, order, threads, again, padding, sample });
            Ok(())
        },
    );
    let [runs] = cells;
    (runs, end)
}

/// What follows from the runs.
#[derive(Debug, Clone, Serialize)]
pub struct Scaling {
    /// What was measured: the number that the program prints, or wall time.
    pub metric: Metric,
    /// Rounds that have both ends.
    pub rounds: usize,
    /// The first number of threads again ÷ the first: what means nothing.
    pub again: Option<Ratio>,
    /// In so many cases an interval does not contain what it is for.
    #[serde(skip)]
    pub error: f64,
    /// One for each number of threads, in the order in which they were asked for.
    pub steps: Vec<Step>,
}

/// A number of threads.
#[derive(Debug, Clone, Serialize)]
pub struct Step {
    /// It.
    pub threads: usize,
    /// The median over its runs.
    pub median: Option<f64>,
    /// How much faster it is than the first number of threads; none for that, and with fewer than six rounds.
    pub speed_up: Option<Ratio>,
}

impl Scaling {
    /// Of `runs` with these `threads`. `seed` makes the intervals reproducible. `is_rate`: more of the metric is
    /// faster. An interval misses in a share `error` of cases.
    #[must_use]
    pub fn new(
        runs: &[Run],
        threads: &[usize],
        metric: Metric,
        is_rate: bool,
        (seed, error): (u64, f64),
    ) -> Self {
        let values = |threads: usize, again: bool| -> ByRound {
            let of_them = runs.iter().filter(|run| run.threads == threads && run.again == again);
            of_them.filter_map(|run| Some((run.round, metric.of(&run.sample)?))).collect()
        };
        let first = threads.first().map(|first| values(*first, false)).unwrap_or_default();
        let faster = |new: &ByRound| if is_rate { paired(new, &first) } else { paired(&first, new) };
        let again = threads.first().and_then(|first| ratio_at(&faster(&values(*first, true)), seed, error));
        let step = |(at, number): (usize, &usize)| {
            let own = values(*number, false);
            Step {
                threads: *number,
                median: median(&own.values().copied().collect::<Vec<_>>()),
                speed_up: (at > 0).then(|| ratio_at(&faster(&own), seed, error)).flatten(),
            }
        };
        let last = threads.last().map(|last| values(*last, false)).unwrap_or_default();
        Self {
            metric,
            rounds: paired(&last, &first).len(),
            again,
            error,
            steps: threads.iter().enumerate().map(step).collect(),
        }
    }

    /// The first and the last step.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[must_use]
    pub fn ends(&self) -> (&Step, &Step) {
        let ends = self.steps.first().zip(self.steps.last());
        ends.expect("a number of threads was measured")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Work of 1 s, of which a fifth is serial, on a machine that becomes slower from round to round.
    fn amdahl(threads: usize, runs: &mut u32) -> Sample {
        *runs += 1;
        let drift = 1.0 + 0.01 * f64::from(*runs / 4);
        let wall_s = drift * (0.2 + 0.8 / threads as f64);
        Sample { wall_s, printed: Some(1.0 / wall_s), ..Sample::default() }
    }

    #[test]
    fn a_time_and_its_rate_have_the_same_speed_up() {
        let (threads, mut count) = ([1, 2, 4], 0);
        let (runs, end) = measure(&threads, 8, 1, &mut |threads, _| Ok(amdahl(threads, &mut count)));
        assert!(matches!(end, End::Complete));
        assert_eq!((runs.len(), runs.iter().filter(|run| run.again).count()), (32, 8));
        for (metric, is_rate) in [(Metric::Wall, false), (Metric::Printed, true)] {
            let scaling = Scaling::new(&runs, &threads, metric, is_rate, (1, 0.05));
            let (first, last) = scaling.ends();
            assert_eq!((first.threads, first.speed_up, last.threads, scaling.rounds), (1, None, 4, 8));
            let speed_up = last.speed_up.unwrap();
            assert!((speed_up.median - 2.5).abs() < 0.03 && speed_up.low <= speed_up.high, "{speed_up:?}");
            assert!(scaling.again.unwrap().reach() < 0.02, "drift cancels: {:?}", scaling.again);
        }
    }
}
