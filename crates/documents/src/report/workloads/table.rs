//! A row per cell and configuration: mean, standard deviation, change of the mean; and the paired ratio with
//! its verdict.

use spinpark_lockbench::report::locks::{dash, interval, threads};
use spinpark_measure::report::{Goodness, Style, table, text};
use spinpark_measure::units::{change, percent};

use super::{deviation, value, word};
use crate::workloads::Workload;
use crate::workloads::result::CellResult;

/// The header; the third column is the figure's.
#[must_use]
pub fn header(workload: &Workload) -> [String; 8] {
    let figure = workload.figure.header();
    [workload.tasks, "configuration", &figure, "sd", "change", "ratio", "95 % interval", "verdict"]
        .map(str::to_owned)
}

/// The cells of the row of the configuration at `place` of a result, and whether its verdict is good news.
#[must_use]
pub fn row(workload: &Workload, result: &CellResult, place: usize, cpus: usize) -> ([String; 8], Goodness) {
    let (figure, configuration, is_first) = (workload.figure, &result.configurations[place], place == 0);
    let (word, goodness) = word(figure, configuration.verdict);
    let cells = [
        if is_first { threads(result.tasks, cpus) } else { String::new() },
        configuration.configuration.clone(),
        value(figure, configuration.mean),
        deviation(configuration.relative_deviation()),
        configuration.of_means.map_or_else(dash, change),
        configuration.ratio.map_or_else(dash, |ratio| format!("{:.2}", ratio.median)),
        match result.again.filter(|_| is_first) {
            Some(again) => format!("noise ±{}", percent(again.reach())),
            None => configuration.ratio.as_ref().map_or_else(dash, interval),
        },
        word.to_owned(),
    ];
    (cells, goodness)
}

/// The table of one variant. `cpus` decides which rows are oversubscribed.
#[must_use]
pub fn render(workload: &Workload, results: &[&CellResult], cpus: usize, style: Style) -> String {
    let header = header(workload);
    let mut rows = table(style, &header.each_ref().map(String::as_str));
    if let Some(column) = rows.column_mut(1) {
        column.set_cell_alignment(comfy_table::CellAlignment::Left);
    }
    for result in results {
        for place in 0..result.configurations.len() {
            let (cells, goodness) = row(workload, result, place, cpus);
            let [cells @ .., verdict] = &cells;
            let mut row: Vec<comfy_table::Cell> = cells.iter().map(comfy_table::Cell::new).collect();
            row.push(style.verdict(verdict, goodness));
            rows.add_row(row);
        }
    }
    text(&rows)
}

/// What the columns mean, given the baseline's name.
#[must_use]
pub fn explanation(workload: &Workload, baseline: &str) -> String {
    let direction = if workload.figure.more_is_better() { "more" } else { "less" };
    format!(
        "Means of all runs; sd: standard deviation in % of the mean; change: of the mean, against `{baseline}`. Ratio: within \
         rounds, median; {direction} than 1 is better. Noise: `{baseline}` against itself. * more {} than CPUs.",
        workload.tasks
    )
}
