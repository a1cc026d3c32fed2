//! From runs to statements: medians, ratios to the baseline within rounds, intervals, verdicts.

use std::collections::BTreeMap;

use serde::Serialize;
use spinpark_measure::report::front::{Entry, Price, price};
use spinpark_measure::rounds::Cell;
use spinpark_measure::stats::bootstrap::ratio_interval;
use spinpark_measure::stats::paired::{ByRound, paired, ratio};
use spinpark_measure::stats::verdict::{Verdict, judge};
use spinpark_measure::stats::{Ratio, median};

use super::definitions::Figure;
use super::experiment::{Measured, Run, Skipped, quantiles};
use super::workloads::Report;

/// A cell's result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellResult {
    /// The workload's name.
    pub workload: String,
    /// The number of threads.
    pub threads: usize,
    /// Rounds in which every implementation ran.
    pub rounds: usize,
    /// Time per operation, baseline again ÷ baseline: what means nothing.
    pub again: Option<Ratio>,
    /// One entry per implementation; the first is the baseline.
    pub implementations: Vec<ImplementationResult>,
    /// Implementations that cannot run it.
    pub skipped: Vec<Skipped>,
}

/// An implementation's result in one cell: medians over its runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ImplementationResult {
    /// Its name.
    pub implementation: String,
    /// Time per operation of all threads, in nanoseconds: the counted phase ÷ operations. Infinite (in JSON
    /// null) if nothing happened in any run; medians are over the runs in which something did.
    pub time_ns: f64,
    /// Time per operation ÷ the baseline's, within rounds. None for the baseline itself.
    pub ratio: Option<Ratio>,
    /// What follows from the ratio.
    pub verdict: Option<Verdict>,
    /// CPU time of all threads per operation, in nanoseconds; infinite as `time_ns`.
    pub cpu_ns: f64,
    /// That ÷ others' in the cell; none if nothing happened. The sleeper is glibc.
    pub cpu_time: Option<Price>,
    /// Context switches per operation; infinite as `time_ns`.
    pub switches: f64,
    /// Futex calls per operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub futex_calls: Option<f64>,
    /// Jain's index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jain: Option<f64>,
    /// How long threads waited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<WaitSummary>,
    /// Median length of the counted phase, in seconds.
    pub elapsed_s: f64,
    /// The fewest operations of a run.
    pub fewest_operations: u64,
    /// How many runs there are; the baseline's second ones are among them.
    pub runs: usize,
    /// In how many of them nothing happened.
    pub empty_runs: usize,
    /// Operations per second with the 95 % interval of the median: lower end, median, upper end.
    pub throughput: [f64; 3],
}

/// Its mutex sleeps at once.
pub const SLEEPER: &str = "glibc";

/// Waits, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct WaitSummary {
    /// Half of all waits are shorter.
    pub p50: f64,
    /// 90 % are.
    pub p90: f64,
    /// 99 % are.
    pub p99: f64,
    /// 99.9 % are.
    pub p999: f64,
    /// The longest wait of a run: median over runs.
    pub longest: f64,
    /// The longest time of a run that a thread went without the lock: median over runs.
    pub longest_gap: f64,
}

impl Figure {
    /// Reads the figure off a report; none if it has none, or nothing happened.
    #[must_use]
    pub fn of(self, report: &Report) -> Option<f64> {
        let operations = (report.operations > 0).then_some(report.operations as f64)?;
        let value = match self {
            Self::Time => report.elapsed_s * 1e9 / operations,
            Self::Throughput => operations / report.elapsed_s,
            Self::Cpu => report.cpu_s * 1e9 / operations,
            Self::Switches => switches(report) / operations,
            Self::LongestWait => report.waits.as_ref()?.longest_ns as f64,
        };
        value.is_finite().then_some(value)
    }

    /// The figure for a ratio. Switches may be zero, so there is one more.
    #[must_use]
    pub fn of_for_ratio(self, report: &Report) -> Option<f64> {
        match self {
            Self::Switches if report.operations == 0 => None,
            Self::Switches => Some((switches(report) + 1.0) / report.operations as f64),
            _ => self.of(report),
        }
    }

    /// Whether more of it is better.
    #[must_use]
    pub fn more_is_better(self) -> bool {
        self == Self::Throughput
    }
}

fn switches(report: &Report) -> f64 {
    (report.voluntary_switches + report.involuntary_switches) as f64
}

/// The figure of each round of an implementation; `again`: of the baseline's second run.
pub(super) fn by_round(measured: &Measured, implementation: &str, again: bool, figure: Figure) -> ByRound {
    let runs = measured.runs.iter().filter(|run| run.implementation == implementation && run.again == again);
    runs.filter_map(|run| Some((run.round, figure.of_for_ratio(&run.report)?))).collect()
}

impl CellResult {
    /// Compares the runs of a cell. `seed` makes the intervals reproducible. None if nothing was measured.
    #[must_use]
    pub fn new(measured: &Measured, seed: u64) -> Option<Self> {
        let baseline = measured.cell.implementations.first()?;
        let base = by_round(measured, baseline, false, Figure::Time);
        let again = ratio(&paired(&by_round(measured, baseline, true, Figure::Time), &base), seed);
        let of = |implementation: &String| {
            let own = by_round(measured, implementation, false, Figure::Time);
            let change = if implementation == baseline { None } else { ratio(&paired(&own, &base), seed) };
            ImplementationResult::new(measured, implementation, change, again, seed)
        };
        let mut implementations: Vec<_> = measured.cell.implementations.iter().filter_map(of).collect();
        let entries: Vec<Entry<'_>> = implementations.iter().map(ImplementationResult::entry).collect();
        let prices: Vec<Option<Price>> =
            entries.iter().map(|entry| price(&entries, entry.name, Some(SLEEPER))).collect();
        implementations.iter_mut().zip(prices).for_each(|(own, price)| own.cpu_time = price);
        (!implementations.is_empty()).then(|| Self {
            workload: measured.cell.workload.clone(),
            threads: measured.cell.threads,
            rounds: complete_rounds(measured),
            again,
            implementations,
            skipped: measured.cell.skipped.clone(),
        })
    }
}

fn complete_rounds(measured: &Measured) -> usize {
    let mut runs = BTreeMap::<usize, usize>::new();
    for run in &measured.runs {
        *runs.entry(run.round).or_default() += 1;
    }
    runs.values().filter(|&&count| count == measured.runs_per_round()).count()
}

impl ImplementationResult {
    /// Its throughput and CPU time, among those of others.
    #[must_use]
    pub fn entry(&self) -> Entry<'_> {
        Entry { name: &self.implementation, throughput: self.throughput[1], cpu_ns: self.cpu_ns }
    }

    fn new(
        measured: &Measured,
        implementation: &str,
        change: Option<Ratio>,
        again: Option<Ratio>,
        seed: u64,
    ) -> Option<Self> {
        let own = || measured.runs.iter().filter(|run| run.implementation == implementation);
        let runs: Vec<&Run> = own().filter(|run| !run.again).collect();
        let middle =
            |figure: Figure| median(&all(&runs, |report| figure.of(report))).unwrap_or(f64::INFINITY);
        let throughput = all(&runs, |report| Figure::Throughput.of(report));
        let interval = ratio_interval(&throughput, seed);
        let throughput = median(&throughput).unwrap_or_default();
        (!runs.is_empty()).then_some(Self {
            implementation: implementation.to_owned(),
            time_ns: middle(Figure::Time),
            ratio: change,
            verdict: change.zip(again).map(|(change, again)| judge(&change, &again)),
            cpu_ns: middle(Figure::Cpu),
            cpu_time: None,
            switches: middle(Figure::Switches),
            futex_calls: measured.futex_calls.get(implementation).copied(),
            jain: median(&all(&runs, |report| report.jain)),
            waits: waits(measured, implementation, &runs),
            elapsed_s: median(&all(&runs, |report| Some(report.elapsed_s))).unwrap_or_default(),
            fewest_operations: own().map(|run| run.report.operations).min().unwrap_or_default(),
            runs: own().count(),
            empty_runs: own().filter(|run| run.report.operations == 0).count(),
            throughput: interval.map_or([throughput; 3], |i| [i.low, throughput, i.high]),
        })
    }
}

/// A number of each run that has it.
fn all(runs: &[&Run], of: impl Fn(&Report) -> Option<f64>) -> Vec<f64> {
    runs.iter().filter_map(|run| of(&run.report)).collect()
}

fn waits(measured: &Measured, implementation: &str, runs: &[&Run]) -> Option<WaitSummary> {
    let [p50, p90, p99, p999] = quantiles(measured.waits.get(implementation)?, [0.5, 0.9, 0.99, 0.999])?;
    let longest = median(&all(runs, |report| Some(report.waits.as_ref()?.longest_ns as f64)))?;
    let longest_gap = median(&all(runs, |report| Some(report.waits.as_ref()?.longest_gap_ns as f64)))?;
    Some(WaitSummary { p50, p90, p99, p999, longest, longest_gap })
}
