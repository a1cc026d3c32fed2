//! A plot per workload, as SVG: operations per second over threads, a line per implementation, with 95 %
//! intervals.

use spinpark_charts::plot::{Chart, Line};
use spinpark_measure::report::distinct;

use crate::locks::result::CellResult;
pub use spinpark_charts::plot::Undrawable;

/// The plot of `workload`, whose cells are `cells`, each at another number of threads. `implementations`
/// decides colours, so that an implementation has the same one in every plot.
///
/// # Errors
///
/// If there is nothing to draw.
pub fn render(
    workload: &str,
    cells: &[&CellResult],
    implementations: &[String],
) -> Result<String, Undrawable> {
    let caption = format!("{workload}: operations per second by threads (log, higher is better)");
    let places = cells.iter().map(|cell| cell.threads).collect();
    let lines = lines(cells, implementations);
    Chart { name: workload, caption, tasks: "threads", places, names: implementations.len(), lines }.render()
}

fn lines<'a>(cells: &[&CellResult], implementations: &'a [String]) -> Vec<Line<'a>> {
    let line = |(number, implementation): (usize, &'a String)| {
        let point = |(place, cell): (usize, &&CellResult)| {
            let own = cell.implementations.iter().find(|own| own.implementation == *implementation)?;
            // The axis is logarithmic: nothing has no place on it.
            let own = Some(own).filter(|own| own.throughput[1] > 0.0)?;
            Some((place, own.throughput))
        };
        let points: Vec<_> = cells.iter().enumerate().filter_map(point).collect();
        Line { name: implementation, number, points }
    };
    let lines = implementations.iter().enumerate().map(line);
    lines.filter(|line| !line.points.is_empty()).collect()
}

/// The plots of all workloads: a file name and the SVG.
///
/// # Errors
///
/// The first plot that cannot be drawn.
pub fn render_all(
    results: &[CellResult],
    implementations: &[String],
) -> Result<Vec<(String, String)>, Undrawable> {
    let workloads = distinct(results.iter().map(|result| result.workload.as_str()));
    let plot = |workload: &str| {
        let mut cells: Vec<&CellResult> =
            results.iter().filter(|result| result.workload == workload).collect();
        cells.sort_by_key(|cell| cell.threads);
        Ok((format!("{workload}.svg"), render(workload, &cells, implementations)?))
    };
    workloads.into_iter().map(plot).collect()
}
