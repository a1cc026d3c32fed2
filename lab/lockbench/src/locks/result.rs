//! From runs to statements: medians, ratios to the baseline within rounds, intervals, verdicts; in planes,
//! also ratios of our locks to peers.

use std::collections::BTreeMap;

use serde::Serialize;
use spinpark_charts::front::{self, Entry, Front, Price, price};
use spinpark_measure::report::distinct;
use spinpark_measure::rounds::cells::Cell;
use spinpark_measure::stats::bootstrap::ratio_interval_of;
use spinpark_measure::stats::paired::{ByRound, paired};
use spinpark_measure::stats::verdict::{Verdict, judge};
use spinpark_measure::stats::{Ratio, bootstrap, median};

use super::comparison::{Compared, Context, RESAMPLES, Starvation, figure_of};
use super::experiment::{Measured, Place, Run, Skipped, quantiles};
use super::figure::{Against, Figure};
use super::workloads::Report;

/// A cell's result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellResult {
    /// The workload's name.
    pub workload: String,
    /// Where it is in a plane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
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
    /// In planes: ratios of our locks, by implementation and figure.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub ratios: BTreeMap<String, BTreeMap<Figure, Ratios>>,
    /// In planes: read-write locks that starve writers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub starving: Vec<Starvation>,
}

/// One figure of our lock against others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ratios {
    /// Against the best peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best: Option<Compared>,
    /// Against glibc.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub glibc: Option<Compared>,
    /// As a share of the ideal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ideal: Option<Compared>,
}

/// Throughput and CPU time of all implementations, of one plane or of all workloads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlaneFront {
    /// The plane, if it is one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub plane: String,
    /// Implementations that ran in the same cells.
    #[serde(flatten)]
    pub front: Front,
}

/// The fronts of all planes, or of all workloads together, in the cells of several threads: a single one
/// waits for no other.
#[must_use]
pub fn fronts(results: &[CellResult]) -> Vec<PlaneFront> {
    let plane = |result: &CellResult| result.place.as_ref().map_or_else(String::new, |at| at.plane.clone());
    let of_plane = |name: String| {
        let own = results.iter().filter(|result| result.threads > 1 && plane(result) == name);
        let cells: Vec<Vec<Entry<'_>>> = own
            .map(|result| result.implementations.iter().map(ImplementationResult::entry).collect())
            .collect();
        let fronts = front::fronts(&cells, &[SLEEPER]);
        fronts.into_iter().map(|front| PlaneFront { plane: name.clone(), front }).collect::<Vec<_>>()
    };
    distinct(results.iter().map(plane)).into_iter().flat_map(of_plane).collect()
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
    /// How long threads waited; not in planes, which have the figures only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<WaitSummary>,
    /// In planes: medians of all figures.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<Figure, f64>,
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

/// A figure of a run in which something happened.
fn of_run(report: &Report, figure: Figure) -> Option<f64> {
    if report.operations > 0 { figure.of(report) } else { None }
}

/// The time per operation of each round of an implementation; `again`: of the baseline's second run.
fn time_by_round(measured: &Measured, implementation: &str, again: bool) -> ByRound {
    let runs = measured.runs.iter().filter(|run| run.implementation == implementation && run.again == again);
    runs.filter_map(|run| Some((run.round, of_run(&run.report, Figure::Time)?))).collect()
}

/// Intervals of a cell's medians. A plane has thousands of them, so there each has fewer drawings.
#[derive(Clone, Copy)]
struct Intervals {
    resamples: usize,
    seed: u64,
}

impl Intervals {
    fn of(self, values: &[f64]) -> Option<Ratio> {
        ratio_interval_of(self.resamples, values, self.seed)
    }

    fn ratio(self, new: &ByRound, old: &ByRound) -> Option<Ratio> {
        self.of(&paired(new, old).into_values().collect::<Vec<_>>())
    }
}

impl CellResult {
    /// Compares the runs of a cell. `seed` makes the intervals reproducible. None if nothing was measured.
    #[must_use]
    pub fn new(measured: &Measured, seed: u64) -> Option<Self> {
        let baseline = measured.cell.implementations.first()?;
        let resamples = if measured.cell.place.is_some() { RESAMPLES } else { bootstrap::RESAMPLES };
        let intervals = Intervals { resamples, seed };
        let base = time_by_round(measured, baseline, false);
        let again = intervals.ratio(&time_by_round(measured, baseline, true), &base);
        let of = |implementation: &String| {
            let own = time_by_round(measured, implementation, false);
            let change = if implementation == baseline { None } else { intervals.ratio(&own, &base) };
            ImplementationResult::new(measured, implementation, change, again, intervals)
        };
        let mut implementations: Vec<_> = measured.cell.implementations.iter().filter_map(of).collect();
        let entries: Vec<Entry<'_>> = implementations.iter().map(ImplementationResult::entry).collect();
        let prices: Vec<Option<Price>> =
            entries.iter().map(|entry| price(&entries, entry.name, Some(SLEEPER))).collect();
        implementations.iter_mut().zip(prices).for_each(|(own, price)| own.cpu_time = price);
        (!implementations.is_empty()).then(|| Self {
            workload: measured.cell.workload.clone(),
            place: measured.cell.place.clone(),
            threads: measured.cell.threads,
            rounds: complete_rounds(measured),
            again,
            implementations,
            skipped: measured.cell.skipped.clone(),
            ratios: BTreeMap::new(),
            starving: Vec::new(),
        })
    }

    /// All cells of a record; those of planes with the ratios of our locks.
    #[must_use]
    pub fn all(context: &Context<'_>, cells: &[Measured]) -> Vec<Self> {
        let one = |cell: &Measured| {
            let mut result = Self::new(cell, context.seed)?;
            if cell.cell.place.is_some() {
                let ratios = |ours: &str| (ours.to_owned(), ratios(context, cell, ours));
                result.ratios = context.ours([cell]).map(ratios).collect();
                let all = cell.cell.implementations.iter();
                result.starving = all.filter_map(|name| Starvation::of(cell, name)).collect();
            }
            Some(result)
        };
        cells.iter().filter_map(one).collect()
    }
}

fn ratios(context: &Context<'_>, cell: &Measured, ours: &str) -> BTreeMap<Figure, Ratios> {
    let of = |figure| {
        let against = |against| context.compare(cell, ours, figure, &against);
        let ratios = match figure {
            Figure::Ideal => Ratios { best: None, glibc: None, ideal: against(Against::Ideal) },
            _ => Ratios {
                best: against(Against::Best),
                glibc: against(Against::Implementation(SLEEPER.to_owned())),
                ideal: None,
            },
        };
        let is_empty = ratios.best.is_none() && ratios.glibc.is_none() && ratios.ideal.is_none();
        (!is_empty).then_some((figure, ratios))
    };
    // Time is the inverse of throughput, and most switches are voluntary.
    let shown = Figure::ALL.into_iter().filter(|it| !matches!(it, Figure::Time | Figure::AllSwitches));
    shown.filter_map(of).collect()
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
        intervals: Intervals,
    ) -> Option<Self> {
        let own = || measured.runs.iter().filter(|run| run.implementation == implementation);
        let runs: Vec<&Run> = own().filter(|run| !run.again).collect();
        let middle = |figure| median(&all(&runs, |report| of_run(report, figure))).unwrap_or(f64::INFINITY);
        let switches = |report: &Report| {
            let switches = (report.voluntary_switches + report.involuntary_switches) as f64;
            (report.operations > 0).then_some(switches / report.operations as f64)
        };
        let throughput = all(&runs, |report| of_run(report, Figure::Throughput));
        let interval = intervals.of(&throughput);
        let figure = |figure| Some((figure, figure_of(measured, implementation, figure)?));
        let figures = Figure::ALL.into_iter().filter(|figure| *figure != Figure::Ideal).filter_map(figure);
        let throughput = median(&throughput).unwrap_or_default();
        (!runs.is_empty()).then_some(Self {
            implementation: implementation.to_owned(),
            time_ns: middle(Figure::Time),
            ratio: change,
            verdict: change.zip(again).map(|(change, again)| judge(&change, &again)),
            cpu_ns: middle(Figure::Cpu),
            cpu_time: None,
            switches: median(&all(&runs, switches)).unwrap_or(f64::INFINITY),
            futex_calls: measured.futex_calls.get(implementation).copied(),
            jain: median(&all(&runs, |report| report.jain)),
            waits: waits(measured, implementation, &runs),
            figures: if measured.cell.place.is_some() { figures.collect() } else { BTreeMap::new() },
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
