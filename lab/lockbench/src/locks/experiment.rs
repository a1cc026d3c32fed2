//! Cells of locks: a workload at a number of threads, perhaps at a place in a plane, its implementations and
//! its runs. [`cells`] orders them.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use spinpark_measure::rounds::cells;
use spinpark_measure::rounds::failure::RunError;
use spinpark_measure::rounds::measure::End;

use super::ideal::Calibration;
use super::load::{Load, Placement};
use super::workloads::Report;

pub use spinpark_measure::rounds::cells::Plan;

/// A workload at a number of threads, with the implementations that can run it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The workload's name; in a plane, it is made of the place.
    pub workload: String,
    /// Where it is in a plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// What threads do.
    pub load: Load,
    /// The number of threads.
    pub threads: usize,
    /// Where they run.
    #[serde(default, skip_serializing_if = "Placement::is_any")]
    pub cpus: Placement,
    /// The shortest run that shows something, in milliseconds.
    pub at_least_millis: u64,
    /// The names of the implementations; the first one runs twice.
    pub implementations: Vec<String>,
    /// Implementations that cannot run it, and why not.
    pub skipped: Vec<Skipped>,
}

/// Where a cell is: in a table of a plane, in a row and a column.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The plane.
    pub plane: String,
    /// The table: "16 threads"; empty if the plane has only one.
    pub table: String,
    /// The row.
    pub row: String,
    /// The column.
    pub column: String,
}

/// An implementation that is not measured.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Skipped {
    /// Its name.
    pub implementation: String,
    /// Why.
    pub why: String,
}

/// A run that was made. Its report has no buckets: they are in [`Measured::waits`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The round, from 0.
    pub round: usize,
    /// The place in the block, from 0.
    pub order: usize,
    /// The implementation's name.
    pub implementation: String,
    /// Whether it is the baseline once more (A/A).
    pub again: bool,
    /// Bytes of environment that mean nothing.
    pub padding: usize,
    /// What it did.
    #[serde(flatten)]
    pub report: Report,
}

/// A cell with its runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Which.
    #[serde(flatten)]
    pub cell: Cell,
    /// Futex calls per operation, by implementation, counted in a run of their own.
    pub futex_calls: BTreeMap<String, f64>,
    /// Waits of all runs of an implementation: `[nanoseconds, how many]`.
    pub waits: BTreeMap<String, Vec<(u64, u64)>>,
    /// The runs, in order.
    pub runs: Vec<Run>,
}

/// Makes one run of one cell.
pub trait CellExecutor {
    /// Makes the run of `plan` in `cell`.
    ///
    /// # Errors
    ///
    /// [`RunError::Interrupted`] if the user does not want to wait any longer; anything else if the run is
    /// worthless.
    fn execute(&mut self, cell: &Cell, plan: &Plan) -> Result<Report, RunError>;

    /// Measures how fast this machine is, at the beginning of a round.
    fn calibrate(&mut self) -> Calibration {
        Calibration::measure()
    }
}

/// Hears what happens, between runs.
pub trait CellObserver {
    /// A run is about to start.
    fn starting(&mut self, _cell: &Cell, _implementation: &str) {}
    /// A run has ended.
    fn finished(&mut self) {}
}

impl CellObserver for () {}

impl Measured {
    /// A cell without runs.
    #[must_use]
    pub fn new(cell: Cell) -> Self {
        Self { cell, futex_calls: BTreeMap::new(), waits: BTreeMap::new(), runs: Vec::new() }
    }

    /// The plane that it is in; nothing for a workload.
    #[must_use]
    pub fn plane(&self) -> &str {
        self.cell.place.as_ref().map_or("", |place| &place.plane)
    }

    /// Its table in the plane; nothing if there is only one.
    #[must_use]
    pub fn table(&self) -> &str {
        self.cell.place.as_ref().map_or("", |place| &place.table)
    }

    /// "30/300, 16 threads": the cell within its plane; "saturated, 16 threads": a workload.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.cell.place {
            Some(Place { table, row, column, .. }) if table.is_empty() => format!("{row} {column}"),
            Some(Place { table, row, column, .. }) => format!("{row}/{column}, {table}"),
            None => format!("{}, {} threads", self.cell.workload, self.cell.threads),
        }
    }

    /// Writes in a thousand operations, of a read-write lock.
    #[must_use]
    pub fn writes(&self) -> Option<u16> {
        match &self.cell.load {
            Load::Shared(shared) => Some(shared.per_thousand()),
            _ => None,
        }
    }
}

impl cells::Cell for Measured {
    type Report = Report;

    fn configurations(&self) -> Vec<String> {
        self.cell.implementations.clone()
    }

    /// The buckets of the report are added to those of its implementation; in a plane they are dropped, since
    /// it has too many cells. Each run has its quantile.
    fn add(&mut self, plan: Plan, mut report: Report) {
        if let Some(waits) = &mut report.waits {
            let buckets = std::mem::take(&mut waits.buckets);
            if self.cell.place.is_none() {
                merge(self.waits.entry(plan.configuration.clone()).or_default(), &buckets);
            }
        }
        let Plan { round, order, configuration: implementation, again, padding } = plan;
        self.runs.push(Run { round, order, implementation, again, padding, report });
    }
}

/// Adds buckets to buckets; both are in the order of their values.
fn merge(all: &mut Vec<(u64, u64)>, more: &[(u64, u64)]) {
    for &(value, count) in more {
        match all.binary_search_by_key(&value, |bucket| bucket.0) {
            Ok(place) => all[place].1 += count,
            Err(place) => all.insert(place, (value, count)),
        }
    }
}

/// The values in nanoseconds below which the fractions `quantiles` of all waits lie.
#[must_use]
pub fn quantiles<const N: usize>(buckets: &[(u64, u64)], quantiles: [f64; N]) -> Option<[f64; N]> {
    let mut histogram = Histogram::<u64>::new(3).ok()?;
    for &(value, count) in buckets {
        histogram.record_n(value, count).ok()?;
    }
    (!histogram.is_empty()).then(|| quantiles.map(|q| histogram.value_at_quantile(q) as f64))
}

/// Runs `rounds` rounds over `cells`, with a calibration at the beginning of each.
pub fn measure(
    cells: Vec<Measured>,
    rounds: usize,
    seed: u64,
    executor: &mut dyn CellExecutor,
    observer: &mut dyn CellObserver,
) -> (Vec<Measured>, Vec<Calibration>, End) {
    let mut calibrations: Vec<Calibration> = Vec::new();
    let (cells, end) = cells::measure(cells, rounds, seed, &mut |measured: &Measured, plan| {
        if calibrations.len() <= plan.round {
            calibrations.push(executor.calibrate());
        }
        observer.starting(&measured.cell, &plan.configuration);
        let report = executor.execute(&measured.cell, plan)?;
        observer.finished();
        Ok(report)
    });
    (cells, calibrations, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_merged_in_order() {
        let mut all = vec![(1, 1), (5, 2)];
        merge(&mut all, &[(1, 1), (3, 4), (9, 1)]);
        assert_eq!(all, [(1, 2), (3, 4), (5, 2), (9, 1)]);
    }

    #[test]
    fn quantiles_of_buckets() {
        let buckets = [(10, 90), (100, 9), (1000, 1)];
        assert_eq!(quantiles(&buckets, [0.5, 0.99, 1.0]), Some([10.0, 100.0, 1000.0]));
        assert_eq!(quantiles(&[], [0.5]), None);
    }
}
