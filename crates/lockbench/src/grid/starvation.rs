//! Read-write locks that starve writers: fast readers are no merit then, so such a lock is no peer in that
//! cell.

use serde::Serialize;
use spinpark_measure::stats::median;

use super::cells::GridCell;

/// A writer that waits longer than this part of a run starves.
pub const LONG_WAIT: f64 = 0.25;
/// Writers that get less than this part of their share starve.
pub const SMALL_SHARE: f64 = 0.1;
/// With fewer writes expected, their share says nothing.
const FEW_WRITES: f64 = 20.0;

/// How an implementation starves its writers: medians over runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Starvation {
    /// Which implementation.
    pub implementation: String,
    /// The longest wait of a writer, as a part of the run.
    pub longest_wait: f64,
    /// Writes that were made, as a part of those that the load asks for; none if these are too few.
    pub share: Option<f64>,
}

impl Starvation {
    /// Whether, and how, `implementation` starves writers in a cell.
    #[must_use]
    pub fn of(cell: &GridCell, implementation: &str) -> Option<Self> {
        let writes = f64::from(cell.writes().filter(|writes| *writes > 0)?) / 1000.0;
        let runs = || {
            cell.measured
                .runs
                .iter()
                .filter(|run| run.implementation == implementation)
                .map(|run| &run.report)
        };
        let waits = runs().filter_map(|report| {
            Some(report.waits.as_ref()?.longest_write_ns.unwrap_or(0) as f64 * 1e-9 / report.elapsed_s)
        });
        let shares = runs().filter(|report| report.operations as f64 * writes >= FEW_WRITES);
        let shares = shares.filter_map(|report| Some(report.writes? / writes));
        let longest_wait = median(&waits.collect::<Vec<_>>()).unwrap_or_default();
        let share = median(&shares.collect::<Vec<_>>());
        let starves = longest_wait > LONG_WAIT || share.is_some_and(|share| share < SMALL_SHARE);
        starves.then(|| Self { implementation: implementation.to_owned(), longest_wait, share })
    }
}
