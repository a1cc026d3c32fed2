//! From runs to statements: mean and standard deviation as in the documents, and the paired ratio with its
//! verdict.
//!
//! Also all data of a workload as one JSON document, and what makes a result weak.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use spinpark_measure::report::{Head, reading};
use spinpark_measure::rounds::cells::Cell as _;
use spinpark_measure::rounds::machine::Noise;
use spinpark_measure::rounds::warnings::{FEW_OPERATIONS, SHORT_RUN_S, Warning, empty_runs};
use spinpark_measure::stats::bootstrap::MIN_BLOCKS;
use spinpark_measure::stats::paired::{ByRound, paired, ratio};
use spinpark_measure::stats::verdict::{MAX_MARGIN, Verdict, judge};
use spinpark_measure::stats::{Ratio, mean, median, standard_deviation};

use super::experiment::{Measured, Run};
use super::job::{Figure, Report, Spread};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellResult {
    pub variant: String,
    pub tasks: usize,
    /// Rounds in which every configuration ran.
    pub rounds: usize,
    /// Baseline again ÷ baseline: what means nothing.
    pub again: Option<Ratio>,
    /// One entry per configuration; the first is the baseline.
    pub configurations: Vec<ConfigurationResult>,
}

/// A configuration's result in one cell.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ConfigurationResult {
    pub configuration: String,
    /// The mean of the workload's figure over all runs, of the baseline: without its second ones.
    pub mean: f64,
    /// The standard deviation over these runs; none if there is only one.
    pub standard_deviation: Option<f64>,
    pub of_means: Option<f64>,
    /// The figure ÷ the baseline's within rounds: the median, with its interval. None for the baseline
    /// itself.
    pub ratio: Option<Ratio>,
    /// What follows from the ratio.
    pub verdict: Option<Verdict>,
    /// Length of the counted phase, or of all work, in seconds: median.
    pub elapsed_s: f64,
    /// User time per operation, in seconds: median.
    pub user_s: f64,
    /// System time per operation, in seconds: median.
    pub system_s: f64,
    /// Context switches per operation: median.
    pub switches: f64,
    /// Operations of the tasks: medians over runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
    /// The workload's own columns: means.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub columns: BTreeMap<String, f64>,
    /// The same: standard deviations, if there is more than one run.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub column_deviations: BTreeMap<String, f64>,
    /// Shares of the time of all tasks, by what they did: means.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub breakdown: BTreeMap<String, f64>,
    /// The fewest operations of a run.
    pub fewest_operations: u64,
    /// How many runs there are; the baseline's second ones are among them.
    pub runs: usize,
    /// In how many of them nothing happened. They count in means, but have no ratio.
    pub empty_runs: usize,
}

impl ConfigurationResult {
    /// The standard deviation as a fraction of the mean.
    pub fn relative_deviation(&self) -> Option<f64> {
        self.standard_deviation.map(|deviation| deviation / self.mean).filter(|share| share.is_finite())
    }
}

impl CellResult {
    pub fn configuration(&self, name: &str) -> Option<&ConfigurationResult> {
        self.configurations.iter().find(|configuration| configuration.configuration == name)
    }

    /// Names of the configurations.
    pub fn names(&self) -> Vec<&str> {
        self.configurations.iter().map(|configuration| configuration.configuration.as_str()).collect()
    }

    /// Compares the runs of a cell by `figure`. `seed` makes the intervals reproducible. None if nothing was
    /// measured.
    pub fn new(measured: &Measured, figure: Figure, seed: u64) -> Option<Self> {
        let names = measured.configurations();
        let baseline = names.first()?;
        let base = by_round(measured, baseline, false, figure);
        let again = ratio(&paired_above_zero(&by_round(measured, baseline, true, figure), &base), seed);
        let values = |by_round: &ByRound| by_round.values().copied().collect::<Vec<_>>();
        let base_mean = mean(&values(&base));
        let of = |name: &String| {
            let own = by_round(measured, name, false, figure);
            let is_baseline = name == baseline;
            let change = if is_baseline { None } else { ratio(&paired_above_zero(&own, &base), seed) };
            let own = values(&own);
            let of_means = mean(&own).zip(base_mean).map(|(own, base)| own / base);
            let all = || measured.runs.iter().filter(|run| run.configuration == *name);
            let runs = all().filter(|run| !run.again).collect::<Vec<_>>();
            Some(ConfigurationResult {
                configuration: name.clone(),
                mean: mean(&own)?,
                standard_deviation: standard_deviation(&own),
                of_means: of_means.filter(|of_means| !is_baseline && of_means.is_finite()),
                ratio: change,
                verdict: change.zip(again).map(|(change, again)| judge(&change, &again)),
                elapsed_s: median(&runs.iter().map(|run| run.report.elapsed_s).collect::<Vec<_>>())?,
                user_s: per_operation(&runs, |report| report.user_s),
                system_s: per_operation(&runs, |report| report.system_s),
                switches: per_operation(&runs, |report| {
                    (report.voluntary_switches + report.involuntary_switches) as f64
                }),
                spread: spread(&runs),
                columns: named(&runs, |report| &report.columns, mean),
                column_deviations: named(&runs, |report| &report.columns, standard_deviation),
                breakdown: named(&runs, |report| &report.breakdown, mean),
                fewest_operations: all().map(|run| run.report.operations).min().unwrap_or_default(),
                runs: all().count(),
                empty_runs: all().filter(|run| run.report.operations == 0).count(),
            })
        };
        let configurations: Vec<_> = names.iter().filter_map(of).collect();
        (!configurations.is_empty()).then(|| Self {
            variant: measured.cell.variant.clone(),
            tasks: measured.cell.tasks,
            rounds: complete_rounds(measured),
            again,
            configurations,
        })
    }
}

/// The figure of each round of a configuration; `again`: of the baseline's second run.
fn by_round(measured: &Measured, configuration: &str, again: bool, figure: Figure) -> ByRound {
    let runs = measured.runs.iter().filter(|run| run.configuration == configuration && run.again == again);
    runs.filter_map(|run| Some((run.round, figure.of(&run.report)?))).collect()
}

/// New ÷ old, round by round, where something happened in both.
fn paired_above_zero(new: &ByRound, old: &ByRound) -> ByRound {
    paired(new, old).into_iter().filter(|(_, ratio)| ratio.is_finite() && *ratio > 0.0).collect()
}

fn complete_rounds(measured: &Measured) -> usize {
    let mut runs = BTreeMap::<usize, usize>::new();
    for run in &measured.runs {
        *runs.entry(run.round).or_default() += 1;
    }
    runs.values().filter(|&&count| count == measured.runs_per_round()).count()
}

fn per_operation(runs: &[&Run], of: impl Fn(&Report) -> f64) -> f64 {
    let happened = runs.iter().filter(|run| run.report.operations > 0);
    let each: Vec<f64> = happened.map(|run| of(&run.report) / run.report.operations as f64).collect();
    median(&each).unwrap_or_default()
}

fn spread(runs: &[&Run]) -> Option<Spread> {
    let spreads: Vec<Spread> = runs.iter().filter_map(|run| run.report.spread).collect();
    let middle = |of: fn(&Spread) -> f64| median(&spreads.iter().map(of).collect::<Vec<_>>());
    Some(Spread {
        least: middle(|spread| spread.least as f64)? as u64,
        most: middle(|spread| spread.most as f64)? as u64,
        jain: middle(|spread| spread.jain)?,
    })
}

/// A statistic of each number that reports have by name.
fn named(
    runs: &[&Run],
    of: fn(&Report) -> &BTreeMap<String, f64>,
    statistic: fn(&[f64]) -> Option<f64>,
) -> BTreeMap<String, f64> {
    let keys: BTreeSet<&String> = runs.iter().flat_map(|run| of(&run.report).keys()).collect();
    let of_key = |key: &String| {
        let values: Vec<f64> = runs.iter().filter_map(|run| of(&run.report).get(key).copied()).collect();
        Some((key.clone(), statistic(&values)?))
    };
    keys.into_iter().filter_map(of_key).collect()
}

/// The version of the document's structure. It grows when a field changes its meaning or goes.
pub const SCHEMA: u32 = 2;

/// What the document is called in its field `format`.
pub const FORMAT: &str = "spinpark bench workload";

#[derive(Debug, Serialize)]
pub struct Document<'a> {
    /// What was measured, and how.
    #[serde(flatten)]
    pub record: &'a Record,
    pub noise: &'a Noise,
    /// What makes the results weak.
    pub warnings: &'a [Warning],
    /// What follows from the runs.
    pub results: &'a [CellResult],
}

/// What is enough to say everything again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// Of [`FORMAT`] and [`SCHEMA`].
    #[serde(flatten)]
    pub head: Head,
    pub workload: String,
    /// What is compared: "ops/s".
    pub figure: String,
    /// The file system that was written to, if files were written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_system: Option<String>,
    pub cells: Vec<Measured>,
}

impl Record {
    /// Reads a document.
    pub fn parse(text: &str) -> Result<Self, String> {
        reading::parse(text, FORMAT, SCHEMA)
    }
}

/// Everything that is weak about the cells of a workload. `is_timed`: runs count for a time, and do not do a
/// fixed amount of work.
pub fn of_workload(workload: &str, results: &[CellResult], is_timed: bool, cpus: usize) -> Vec<Warning> {
    let named = |result: &CellResult| format!("{} at {}", result.variant, result.tasks).trim().to_owned();
    let cells = |is_meant: &dyn Fn(&CellResult) -> bool| -> Vec<String> {
        results.iter().filter(|result| is_meant(result)).map(named).collect()
    };
    let any = |result: &CellResult, is_meant: fn(&ConfigurationResult) -> bool| {
        result.configurations.iter().any(is_meant)
    };
    let few = cells(&|result| any(result, |of| (1..FEW_OPERATIONS).contains(&of.fewest_operations)));
    let short = cells(&|result| any(result, |of| of.elapsed_s < SHORT_RUN_S));
    let empty = results.iter().flat_map(|result| {
        let cell = format!("{} {}", workload, named(result)).replace("  ", " ");
        let empty =
            move |of: &ConfigurationResult| empty_runs(&of.configuration, &cell, of.empty_runs, of.runs);
        result.configurations.iter().filter_map(empty)
    });
    let empty: Vec<String> = empty.collect();
    /// The baseline, if it did nothing and there are others to compare with it.
    fn idle(result: &CellResult) -> Option<&ConfigurationResult> {
        let [baseline, _, ..] = &result.configurations[..] else { return None };
        Some(baseline).filter(|baseline| baseline.empty_runs == baseline.runs)
    }
    let baseline = results.iter().find_map(idle).map(|baseline| baseline.configuration.clone());
    let (baseline, idle) = (baseline.unwrap_or_default(), cells(&|result| idle(result).is_some()));
    let noisy = results.iter().filter(|r| r.again.is_some_and(|again| again.reach() > MAX_MARGIN)).count();
    let ratios = results.iter().flat_map(|result| &result.configurations).filter_map(|of| of.ratio);
    let ratios: Vec<Ratio> = ratios.collect();
    let is_wide = |ratio: &&Ratio| ratio.contains_one() && ratio.reach() > MAX_MARGIN;
    let wide = ratios.iter().filter(is_wide).count();
    let blocks = results.iter().map(|result| result.rounds).min().unwrap_or_default();
    let oversubscribed = results.iter().any(|result| result.tasks > cpus);
    let (cells, ratios) = (results.len(), ratios.len());
    let candidates = [
        (cells > 0 && blocks < MIN_BLOCKS, Warning::TooFewBlocks { blocks }),
        (oversubscribed, Warning::Oversubscribed { cpus }),
        // Where the amount of work is fixed, it is what was asked for.
        (is_timed && !few.is_empty(), Warning::FewOperations { cells: few }),
        (!empty.is_empty(), Warning::NoOperations { runs: empty }),
        (!idle.is_empty(), Warning::BaselineDidNothing { cells: idle, baseline }),
        (!is_timed && !short.is_empty(), Warning::LittleWork { cells: short }),
        (noisy > 0, Warning::NoisyCells { noisy, cells }),
        (wide > 0, Warning::WideCells { wide, ratios }),
    ];
    candidates.into_iter().filter_map(|(applies, warning)| applies.then_some(warning)).collect()
}
