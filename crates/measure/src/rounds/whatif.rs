//! One program with delays at a lock, in shuffled rounds: what does a longer section cost?
//!
//! A round has a run without a delay, the same again (A/A), runs with delays of growing length, and controls: the
//! same delays outside of all locks, and at a lock that no thread waits for. Everything is judged as *time*: of a
//! rate, its inverse. A delay adds to time, so time is what a straight line may fit.
//!
//! | estimate | over rounds, the median of                                             |
//! |----------|------------------------------------------------------------------------|
//! | slope    | the least squares line through the run without a delay: time per whole delay, as a part of the time without one |
//! | bend     | how far half of the delay is below half of the effect, twice              |
//! | gap      | the effect at the lock less that of a control                              |

use serde::{Deserialize, Serialize};

use crate::rounds::blocks::each_run;
use crate::rounds::failure::{End, RunError};
use crate::rounds::sample::{Metric, Sample};
use crate::stats::bootstrap::{MIN_BLOCKS, interval, ratio_interval};
use crate::stats::{Estimate, Ratio, median};

/// What a run delays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Arm {
    /// Nothing.
    None,
    /// The same once more (A/A).
    NoneAgain,
    /// The lock, by a quarter of the delay.
    Quarter,
    /// By half of it.
    Half,
    /// By all of it.
    Whole,
    /// As often and as long as `Whole`, but threads that hold no lock.
    Outside,
    /// As long in total as `Whole`, at another lock.
    OtherLock,
}

/// The arms that are the experiment itself, without controls.
pub const LOCK_ARMS: [Arm; 5] = [Arm::None, Arm::NoneAgain, Arm::Quarter, Arm::Half, Arm::Whole];

impl Arm {
    /// The part of the delay that is made at the lock.
    #[must_use]
    pub fn factor(self) -> Option<f64> {
        match self {
            Self::None | Self::NoneAgain => Some(0.0),
            Self::Quarter => Some(0.25),
            Self::Half => Some(0.5),
            Self::Whole => Some(1.0),
            Self::Outside | Self::OtherLock => None,
        }
    }

    /// The name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "0",
            Self::NoneAgain => "0 again",
            Self::Quarter => "1/4",
            Self::Half => "1/2",
            Self::Whole => "1",
            Self::Outside => "1, outside locks",
            Self::OtherLock => "1, other lock",
        }
    }
}

/// A run that was made.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Run {
    /// The round, from 0.
    pub round: usize,
    /// The place in the round, from 0.
    pub order: usize,
    /// What it delays.
    pub arm: Arm,
    /// Bytes of environment that mean nothing.
    pub padding: usize,
    /// What was counted.
    #[serde(flatten)]
    pub made: Made,
}

/// What a run has shown.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Made {
    /// How long one delay was, ns.
    pub delay_ns: u64,
    /// How often the point was reached.
    pub reached: u64,
    /// How many delays were made.
    pub delayed: u64,
    /// What it cost.
    #[serde(flatten)]
    pub sample: Sample,
}

/// Makes one run of an arm, with so much padding.
pub type MakeRun<'a> = &'a mut dyn FnMut(Arm, usize) -> Result<Made, RunError>;

/// Runs `rounds` rounds, each with every one of `arms`.
pub fn measure(arms: &[Arm], rounds: usize, seed: u64, make: MakeRun<'_>) -> (Vec<Run>, End) {
    let mut cells = [Vec::with_capacity(rounds * arms.len())];
    let end = each_run(
        &mut cells,
        rounds,
        seed,
        |_| arms.to_vec(),
        |runs: &mut Vec<Run>, place| {
            let (round, order, arm, padding) = (place.round, place.order, place.configuration, place.padding);
            let made = make(arm, padding)?;
            runs.push(Run { round, order, arm, padding, made });
            Ok(())
        },
    );
    let [runs] = cells;
    (runs, end)
}

/// What follows from the runs.
#[derive(Debug, Clone, Serialize)]
pub struct Effect {
    /// What was measured: the number that the program prints, or wall time.
    pub metric: Metric,
    /// Whether more of it is better; then `slope` and the others are of its inverse.
    pub is_rate: bool,
    /// Rounds that count: every arm ran, and met the lock.
    pub rounds: usize,
    /// Rounds in which a run did not meet the lock: they do not count.
    pub failed: usize,
    /// One row for each arm.
    pub rows: Vec<Row>,
    /// Without a delay again ÷ without: what means nothing.
    pub again: Option<Ratio>,
    /// By which part the time grows with a whole delay.
    pub slope: Option<Estimate>,
    /// See above, as a part of the time without a delay.
    pub bend: Option<Estimate>,
    /// The whole effect, less that of the same delays outside of locks.
    pub over_outside: Option<Estimate>,
    /// The same of the other lock.
    pub over_other: Option<Estimate>,
    /// What may be said.
    pub verdict: Verdict,
    /// Why no more may be said.
    pub reasons: Vec<Doubt>,
}

/// An arm's runs.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// Which.
    pub arm: Arm,
    /// How long one delay was, ns.
    pub delay_ns: u64,
    /// How many were made in a run: the median.
    pub delays: Option<f64>,
    /// The median of the metric.
    pub median: Option<f64>,
    /// The metric ÷ that without a delay, over rounds.
    pub change: Option<Ratio>,
}

/// What may be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Delays there cost time.
    Costs,
    /// They save time.
    Saves,
    /// They change less than matters, whichever it is: the whole interval is within the margin.
    Little,
    /// It is not decided.
    Undecided,
}

/// What keeps an answer from being one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// Fewer rounds count than an interval needs.
    FewRounds,
    /// The interval of the slope contains 0.
    ContainsZero,
    /// The effect does not exceed the noise between runs without a delay.
    WithinNoise,
    /// The effect is not proportional to the delay.
    NotLinear,
    /// The same delays outside of locks may cost as much.
    Outside,
    /// The same delays at a lock that no thread waits for may cost as much.
    OtherLock,
}

/// A bend of more than this part of the slope is no straight line.
const MUCH_BEND: f64 = 0.25;

/// The times of one round, as parts of that without a delay.
struct Round<'a> {
    runs: &'a [Run],
    metric: Metric,
    is_rate: bool,
    base: f64,
}

impl<'a> Round<'a> {
    fn new(runs: &'a [Run], metric: Metric, is_rate: bool) -> Option<Self> {
        let alone = Self { runs, metric, is_rate, base: 1.0 };
        let base = f64::midpoint(alone.time(Arm::None)?, alone.time(Arm::NoneAgain)?);
        (base > 0.0).then_some(Self { base, ..alone })
    }

    fn time(&self, arm: Arm) -> Option<f64> {
        let run = self.runs.iter().find(|run| run.arm == arm)?;
        let value = self.metric.of(&run.made.sample)?;
        Some(if self.is_rate { 1.0 / value } else { value } / self.base)
    }

    /// The least squares line through 1 at no delay.
    fn slope(&self) -> Option<f64> {
        let (mut above, mut below) = (0.0, 0.0);
        for arm in [Arm::Quarter, Arm::Half, Arm::Whole] {
            let factor = arm.factor()?;
            above += factor * (self.time(arm)? - 1.0);
            below += factor * factor;
        }
        Some(above / below)
    }

    fn bend(&self) -> Option<f64> {
        Some(self.time(Arm::Whole)? - 2.0 * self.time(Arm::Half)? + 1.0)
    }

    fn over(&self, control: Arm) -> Option<f64> {
        Some(self.time(Arm::Whole)? - self.time(control)?)
    }
}

impl Effect {
    /// Of `runs` with these `arms`. `seed` makes the intervals reproducible. `is_rate`: more of the metric is better.
    /// `margin`: a slope within ± that is little.
    #[must_use]
    pub fn new(
        (runs, arms): (&[Run], &[Arm]),
        (metric, is_rate): (Metric, bool),
        margin: f64,
        seed: u64,
    ) -> Self {
        let complete = runs.chunk_by(|a, b| a.round == b.round).filter(|round| round.len() == arms.len());
        let has_met = |round: &&[Run]| round.iter().all(|run| run.made.reached > 0);
        let failed = complete.clone().filter(|round| !has_met(round)).count();
        let rounds: Vec<Round<'_>> =
            complete.filter(has_met).filter_map(|runs| Round::new(runs, metric, is_rate)).collect();
        let over_rounds = |of: &dyn Fn(&Round<'_>) -> Option<f64>| {
            let each: Option<Vec<f64>> = rounds.iter().map(of).collect();
            interval(&each?, seed)
        };
        let row = |arm: &Arm| {
            let its = || rounds.iter().flat_map(|round| round.runs).filter(|run| run.arm == *arm);
            let values: Vec<f64> = its().filter_map(|run| metric.of(&run.made.sample)).collect();
            let delays: Vec<f64> = its().map(|run| run.made.delayed as f64).collect();
            let as_metric = |time: f64| if is_rate { 1.0 / time } else { time };
            let ratios: Option<Vec<f64>> =
                rounds.iter().map(|round| round.time(*arm).map(as_metric)).collect();
            Row {
                arm: *arm,
                delay_ns: its().map(|run| run.made.delay_ns).next().unwrap_or_default(),
                delays: median(&delays),
                median: median(&values),
                change: ratios
                    .filter(|_| !matches!(arm, Arm::None | Arm::NoneAgain))
                    .and_then(|each| ratio_interval(&each, seed)),
            }
        };
        let again: Option<Vec<f64>> =
            rounds.iter().map(|round| Some(round.time(Arm::NoneAgain)? / round.time(Arm::None)?)).collect();
        let with = |control: Arm| arms.contains(&control);
        let mut effect = Self {
            metric,
            is_rate,
            rounds: rounds.len(),
            failed,
            rows: arms.iter().map(row).collect(),
            again: again.and_then(|each| ratio_interval(&each, seed)),
            slope: over_rounds(&|round| round.slope()),
            bend: over_rounds(&|round| round.bend()),
            over_outside: with(Arm::Outside)
                .then(|| over_rounds(&|round| round.over(Arm::Outside)))
                .flatten(),
            over_other: with(Arm::OtherLock)
                .then(|| over_rounds(&|round| round.over(Arm::OtherLock)))
                .flatten(),
            verdict: Verdict::Undecided,
            reasons: Vec::new(),
        };
        let is_little = |slope: &Estimate| -margin < slope.low && slope.high < margin;
        effect.reasons = match effect.slope {
            Some(slope) if is_little(&slope) => Vec::new(),
            _ => effect.doubts(),
        };
        effect.verdict = match effect.slope {
            Some(slope) if is_little(&slope) => Verdict::Little,
            Some(slope) if effect.reasons.is_empty() && slope.median > 0.0 => Verdict::Costs,
            Some(_) if effect.reasons.is_empty() => Verdict::Saves,
            _ => Verdict::Undecided,
        };
        effect
    }

    fn doubts(&self) -> Vec<Doubt> {
        let (Some(slope), Some(again)) = (self.slope, self.again) else { return vec![Doubt::FewRounds] };
        debug_assert!(self.rounds >= MIN_BLOCKS);
        if slope.contains(0.0) {
            return vec![Doubt::ContainsZero];
        }
        let mut doubts = Vec::new();
        if slope.median.abs() <= again.reach() {
            doubts.push(Doubt::WithinNoise);
        }
        let is_bent =
            |bend: &Estimate| !bend.contains(0.0) && bend.median.abs() > MUCH_BEND * slope.median.abs();
        if self.bend.is_some_and(|bend| is_bent(&bend)) {
            doubts.push(Doubt::NotLinear);
        }
        // The lock's effect must be the larger one, in its own direction.
        let moves_as_much = |over: Option<Estimate>| {
            over.is_some_and(|over| if slope.median > 0.0 { over.low <= 0.0 } else { over.high >= 0.0 })
        };
        if moves_as_much(self.over_outside) {
            doubts.push(Doubt::Outside);
        }
        if moves_as_much(self.over_other) {
            doubts.push(Doubt::OtherLock);
        }
        doubts
    }

    /// The row of an arm.
    #[must_use]
    pub fn row(&self, arm: Arm) -> Option<&Row> {
        self.rows.iter().find(|row| row.arm == arm)
    }

    /// The part of the delays of the control outside of locks that were made: the others were owed when their
    /// threads, or the program, ended.
    #[must_use]
    pub fn paid(&self) -> Option<f64> {
        let made = |arm| self.row(arm).and_then(|row| row.delays).filter(|made| *made > 0.0);
        Some(made(Arm::Outside)? / made(Arm::Whole)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Arm; 7] =
        [Arm::None, Arm::NoneAgain, Arm::Quarter, Arm::Half, Arm::Whole, Arm::Outside, Arm::OtherLock];

    /// A program whose time depends on the arm, on a machine that becomes slower from run to run.
    fn effect(rounds: usize, is_rate: bool, time: &dyn Fn(Arm) -> f64) -> Effect {
        effect_within(0.0, rounds, is_rate, time)
    }

    fn effect_within(margin: f64, rounds: usize, is_rate: bool, time: &dyn Fn(Arm) -> f64) -> Effect {
        let mut count = 0;
        let (runs, end) = measure(&ALL, rounds, 1, &mut |arm, _| {
            count += 1;
            // Noise of 1 %, that the seed does not know.
            let noise = 1.0 + 0.01 * (f64::from(count * 37 % 11) / 5.0 - 1.0);
            let wall_s = (1.0 + 0.002 * f64::from(count / 7)) * noise * time(arm);
            let sample = Sample { wall_s, printed: Some(1.0 / wall_s), ..Sample::default() };
            Ok(Made { delay_ns: 100, reached: 7, delayed: 7, sample })
        });
        assert!(matches!(end, End::Complete));
        let metric = if is_rate { Metric::Printed } else { Metric::Wall };
        Effect::new((&runs, &ALL), (metric, is_rate), margin, 1)
    }

    fn line(slope: f64, control: f64) -> impl Fn(Arm) -> f64 {
        move |arm| 1.0 + arm.factor().map_or(control, |factor| factor * slope)
    }

    #[test]
    fn a_line_has_its_slope_as_a_time_and_as_a_rate() {
        for is_rate in [false, true] {
            let effect = effect(20, is_rate, &line(0.4, 0.0));
            assert_eq!((effect.verdict, effect.rounds), (Verdict::Costs, 20), "{effect:?}");
            let slope = effect.slope.unwrap();
            assert!((slope.median - 0.4).abs() < 0.02 && slope.low < 0.4 && 0.4 < slope.high, "{slope:?}");
            let change = effect.row(Arm::Whole).unwrap().change.unwrap().median;
            let wanted = if is_rate { 1.0 / 1.4 } else { 1.4 };
            assert!((change - wanted).abs() < 0.03, "{change}");
            assert!(effect.row(Arm::None).unwrap().change.is_none());
        }
        assert_eq!(effect(20, false, &line(-0.2, 0.0)).verdict, Verdict::Saves);
        let little = effect_within(0.02, 20, false, &line(0.0, 0.0));
        assert_eq!((little.verdict, little.reasons), (Verdict::Little, vec![]));
        assert_eq!(effect_within(0.02, 20, false, &line(0.4, 0.0)).verdict, Verdict::Costs);
    }

    #[test]
    fn what_is_undecided_says_why() {
        let reasons = |rounds, time: &dyn Fn(Arm) -> f64| {
            let found = effect(rounds, false, time);
            assert_eq!(found.verdict, Verdict::Undecided, "{found:?}");
            found.reasons
        };
        assert_eq!(reasons(5, &line(0.4, 0.0)), [Doubt::FewRounds]);
        assert_eq!(reasons(20, &line(0.0, 0.0)), [Doubt::ContainsZero]);
        assert_eq!(reasons(20, &line(0.4, 0.4)), [Doubt::Outside, Doubt::OtherLock]);
        let late = |arm: Arm| 1.0 + if arm == Arm::Whole { 0.4 } else { 0.0 };
        assert_eq!(reasons(20, &late), [Doubt::NotLinear]);
        // The same program differs from itself by more.
        let noisy = |arm: Arm| if arm == Arm::NoneAgain { 0.7 } else { line(0.1, 0.0)(arm) };
        assert_eq!(reasons(20, &noisy)[0], Doubt::WithinNoise);
    }

    /// A run that did not meet the lock says nothing of it.
    #[test]
    fn rounds_without_the_lock_do_not_count() {
        let mut count = 0;
        let (runs, _) = measure(&LOCK_ARMS, 8, 1, &mut |arm, _| {
            count += 1;
            let wall_s = 1.0 + arm.factor().unwrap_or_default();
            let reached = u64::from(count != 3);
            Ok(Made { delay_ns: 1, reached, delayed: 0, sample: Sample { wall_s, ..Sample::default() } })
        });
        let effect = Effect::new((&runs, &LOCK_ARMS), (Metric::Wall, false), 0.0, 1);
        assert_eq!((effect.rounds, effect.failed), (7, 1));
        assert!((effect.slope.unwrap().median - 1.0).abs() < 1e-9);
    }
}
