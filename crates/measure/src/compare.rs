//! From runs to statements: medians, paired changes, noise floors and verdicts per metric.

use serde::Serialize;

use crate::configuration::Configuration;
use crate::measure::Run;
use crate::sample::{Metric, Sample};
use crate::stats::bootstrap::{MIN_BLOCKS, ratio_interval};
use crate::stats::verdict::{Verdict, judge};
use crate::stats::{Ratio, median};

/// One metric, compared.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// Which.
    pub metric: Metric,
    /// Median over the runs of configuration `glibc`.
    pub glibc: Option<f64>,
    /// Median over the runs of configuration `spinpark`.
    pub spinpark: Option<f64>,
    /// `spinpark / glibc` over blocks; none with fewer than six complete blocks, or if there is nothing to
    /// divide by.
    pub change: Option<Ratio>,
    /// `glibc again / glibc` over blocks: what means nothing.
    pub again: Option<Ratio>,
    /// What follows.
    pub verdict: Verdict,
}

/// A whole comparison.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// Blocks in which every configuration ran.
    pub blocks: usize,
    /// One entry per metric; the first is the one that the comparison is about.
    pub metrics: Vec<Summary>,
    /// Median wall time of a run, in seconds.
    pub run_s: f64,
}

impl Comparison {
    /// Compares `metrics` over `runs`. `seed` makes the intervals reproducible.
    #[must_use]
    pub fn new(runs: &[Run], metrics: &[Metric], seed: u64) -> Self {
        let blocks = complete_blocks(runs);
        let walls: Vec<f64> = runs.iter().map(|run| run.sample.wall_s).collect();
        Self {
            blocks: blocks.len(),
            metrics: metrics.iter().map(|&metric| summarise(runs, &blocks, metric, seed)).collect(),
            run_s: median(&walls).unwrap_or_default(),
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
    glibc: &'a Sample,
    again: &'a Sample,
    spinpark: &'a Sample,
}

fn complete_blocks(runs: &[Run]) -> Vec<Block<'_>> {
    let blocks = runs.chunk_by(|a, b| a.plan.block == b.plan.block);
    blocks
        .filter_map(|block| {
            let of = |configuration| {
                block.iter().find(|run| run.plan.configuration == configuration).map(|run| &run.sample)
            };
            Some(Block {
                glibc: of(Configuration::Glibc)?,
                again: of(Configuration::GlibcAgain)?,
                spinpark: of(Configuration::Spinpark)?,
            })
        })
        .collect()
}

fn summarise(runs: &[Run], blocks: &[Block<'_>], metric: Metric, seed: u64) -> Summary {
    let median_of = |configuration| {
        let values = runs
            .iter()
            .filter(|run| run.plan.configuration == configuration)
            .filter_map(|run| metric.of(&run.sample));
        median(&values.collect::<Vec<_>>())
    };
    let ratios = |new: for<'b> fn(&Block<'b>) -> &'b Sample| {
        let each =
            blocks.iter().map(|block| Some(metric.ratio(metric.of(new(block))?, metric.of(block.glibc)?)));
        let each: Option<Vec<f64>> = each.collect();
        ratio_interval(&each?, seed)
    };
    let change = ratios(|block| block.spinpark);
    let again = ratios(|block| block.again);
    let verdict = match (&change, &again) {
        (Some(change), Some(again)) => judge(change, again),
        _ => Verdict::Undecided,
    };
    Summary {
        metric,
        glibc: median_of(Configuration::Glibc),
        spinpark: median_of(Configuration::Spinpark),
        change,
        again,
        verdict,
    }
}
