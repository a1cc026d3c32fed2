//! A plot per shape, as SVG: operations per second over threads, a line per target, with 95 % intervals.

use spinpark_measure::report::plot::{Chart, Line};

use crate::locks::result::CellResult;
pub use spinpark_measure::report::plot::Undrawable;

/// The plot of `shape`, whose cells are `cells`, each at another number of threads. `targets` decides colours, so that
/// a target has the same one in every plot.
///
/// # Errors
///
/// If there is nothing to draw.
pub fn render(shape: &str, cells: &[&CellResult], targets: &[String]) -> Result<String, Undrawable> {
    let caption = format!("{shape}: operations per second by threads (log, higher is better)");
    let places = cells.iter().map(|cell| cell.threads).collect();
    let lines = lines(cells, targets);
    Chart { name: shape, caption, tasks: "threads", places, names: targets.len(), lines }.render()
}

fn lines<'a>(cells: &[&CellResult], targets: &'a [String]) -> Vec<Line<'a>> {
    let line = |(number, target): (usize, &'a String)| {
        let point = |(place, cell): (usize, &&CellResult)| {
            let own = cell.targets.iter().find(|own| own.target == *target)?;
            // The axis is logarithmic: nothing has no place on it.
            let own = Some(own).filter(|own| own.throughput[1] > 0.0)?;
            Some((place, own.throughput))
        };
        let points: Vec<_> = cells.iter().enumerate().filter_map(point).collect();
        Line { name: target, number, points }
    };
    let lines = targets.iter().enumerate().map(line);
    lines.filter(|line| !line.points.is_empty()).collect()
}

/// The plots of all shapes: a file name and the SVG.
///
/// # Errors
///
/// The first plot that cannot be drawn.
pub fn render_all(results: &[CellResult], targets: &[String]) -> Result<Vec<(String, String)>, Undrawable> {
    let mut shapes: Vec<&str> = Vec::new();
    for result in results {
        if !shapes.contains(&result.shape.as_str()) {
            shapes.push(&result.shape);
        }
    }
    let plot = |shape: &str| {
        let mut cells: Vec<&CellResult> = results.iter().filter(|result| result.shape == shape).collect();
        cells.sort_by_key(|cell| cell.threads);
        Ok((format!("{shape}.svg"), render(shape, &cells, targets)?))
    };
    shapes.into_iter().map(plot).collect()
}
