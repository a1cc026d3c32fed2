//! From runs to statements: medians, paired changes, noise floors and verdicts per metric.

use serde::Serialize;

use crate::rounds::configuration::{Configuration, Subject};
use crate::rounds::measure::Run;
use crate::rounds::sample::{Metric, Sample};
use crate::stats::bootstrap::{ERROR, MIN_BLOCKS, ratio_interval_at};
use crate::stats::verdict::{Verdict, judge};
use crate::stats::{Ratio, median};

/// One metric, compared.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// Which.
    pub metric: Metric,
    /// Medians over the runs of baseline and candidate.
    #[serde(flatten)]
    pub medians: Medians,
    /// Candidate ÷ baseline over blocks; none with fewer than six complete blocks, or if there is nothing to
    /// divide by.
    pub change: Option<Ratio>,
    /// The baseline again ÷ the baseline over blocks: what means nothing.
    pub again: Option<Ratio>,
    /// What follows.
    pub verdict: Verdict,
}

/// Medians of a baseline and a candidate, under the names that they have in data.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Medians {
    /// One program on two kinds of locks.
    Locks {
        /// On glibc's.
        glibc: Option<f64>,
        /// On spinpark's.
        spinpark: Option<f64>,
    },
    /// Two programs.
    Programs {
        /// The one to compare with.
        before: Option<f64>,
        /// The other one.
        after: Option<f64>,
    },
}

impl Medians {
    /// Those of `baseline` and `candidate`.
    #[must_use]
    pub fn new(subject: Subject, baseline: Option<f64>, candidate: Option<f64>) -> Self {
        match subject {
            Subject::Locks => Self::Locks { glibc: baseline, spinpark: candidate },
            Subject::Programs => Self::Programs { before: baseline, after: candidate },
        }
    }

    /// Baseline and candidate.
    #[must_use]
    pub fn both(self) -> [Option<f64>; 2] {
        match self {
            Self::Locks { glibc, spinpark } => [glibc, spinpark],
            Self::Programs { before, after } => [before, after],
        }
    }
}

/// A whole comparison.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// What it varies.
    #[serde(skip)]
    pub subject: Subject,
    /// Blocks in which every configuration ran.
    pub blocks: usize,
    /// One entry per metric; the first is the one that the comparison is about.
    pub metrics: Vec<Summary>,
    /// Median wall time of a run, in seconds.
    pub run_s: f64,
    /// In so many cases an interval does not contain what it is for.
    #[serde(skip)]
    pub error: f64,
}

impl Comparison {
    /// Compares `metrics` over `runs`. `seed` makes the intervals reproducible.
    #[must_use]
    pub fn new(runs: &[Run], metrics: &[Metric], seed: u64) -> Self {
        Self::with_error(runs, metrics, seed, ERROR)
    }

    /// [`Comparison::new`] with wider intervals, for one of several looks at the same runs.
    #[must_use]
    pub fn with_error(runs: &[Run], metrics: &[Metric], seed: u64, error: f64) -> Self {
        let subject = runs.first().map(|run| run.plan.configuration.subject()).unwrap_or_default();
        let blocks = complete_blocks(runs, subject);
        let walls: Vec<f64> = runs.iter().map(|run| run.sample.wall_s).collect();
        Self {
            subject,
            blocks: blocks.len(),
            metrics: metrics
                .iter()
                .map(|&metric| summarise((runs, subject), &blocks, metric, (seed, error)))
                .collect(),
            run_s: median(&walls).unwrap_or_default(),
            error,
        }
    }

    /// The metric that the comparison is about: the program's own number, or wall time.
    #[must_use]
    pub fn primary(&self) -> Option<&Summary> {
        self.metrics.first()
    }

    /// Whether there are enough blocks for intervals.
    #[must_use]
    pub fn has_intervals(&self) -> bool {
        self.blocks >= MIN_BLOCKS
    }
}

impl Summary {
    /// What the same locks differ by from run to run, as a fraction.
    #[must_use]
    pub fn noise_floor(&self) -> Option<f64> {
        self.again.map(|again| again.reach())
    }
}

/// The samples of a block, one per configuration.
struct Block<'a> {
    baseline: &'a Sample,
    again: &'a Sample,
    candidate: &'a Sample,
}

fn complete_blocks(runs: &[Run], subject: Subject) -> Vec<Block<'_>> {
    let [baseline, again, candidate] = subject.configurations();
    let blocks = runs.chunk_by(|a, b| a.plan.block == b.plan.block);
    blocks
        .filter_map(|block| {
            let of = |configuration| {
                block.iter().find(|run| run.plan.configuration == configuration).map(|run| &run.sample)
            };
            Some(Block { baseline: of(baseline)?, again: of(again)?, candidate: of(candidate)? })
        })
        .collect()
}

fn summarise(
    (runs, subject): (&[Run], Subject),
    blocks: &[Block<'_>],
    metric: Metric,
    (seed, error): (u64, f64),
) -> Summary {
    let median_of = |configuration: Configuration| {
        let values = runs
            .iter()
            .filter(|run| run.plan.configuration == configuration)
            .filter_map(|run| metric.of(&run.sample));
        median(&values.collect::<Vec<_>>())
    };
    let ratios = |new: for<'b> fn(&Block<'b>) -> &'b Sample| {
        let each =
            blocks.iter().map(|block| Some(metric.ratio(metric.of(new(block))?, metric.of(block.baseline)?)));
        let each: Option<Vec<f64>> = each.collect();
        ratio_interval_at(&each?, seed, error)
    };
    let change = ratios(|block| block.candidate);
    let again = ratios(|block| block.again);
    let verdict = match (&change, &again) {
        (Some(change), Some(again)) => judge(change, again),
        _ => Verdict::Undecided,
    };
    let [baseline, _, candidate] = subject.configurations();
    Summary {
        metric,
        medians: Medians::new(subject, median_of(baseline), median_of(candidate)),
        change,
        again,
        verdict,
    }
}
