//! The result of `spinpark-lab documents WORKLOAD` as tables.

use std::collections::BTreeMap;
use std::fmt::Write;

use comfy_table::{Cell, CellAlignment, Table};
use spinpark_lockbench::report::locks::{dash, interval, threads};
use spinpark_measure::report::{self, Goodness, Printed, Style, text, verdict_word};
use spinpark_measure::rounds::sample::Metric;
use spinpark_measure::stats::verdict::Verdict;
use spinpark_measure::text::units::{bytes, change, number, per_operation, percent, seconds};

use crate::registry::WORKLOADS;
use crate::workloads::result::{CellResult, ConfigurationResult};
use crate::workloads::workload::Kind;
use crate::workloads::{Column, Figure, Workload};

/// With at most this many cells, the details are shown without being asked for.
pub const FEW_CELLS: usize = 4;

pub(crate) fn value(figure: Figure, value: f64) -> String {
    match figure {
        Figure::Elapsed => seconds(value),
        Figure::PerSecond(_) | Figure::PerMinute(_) => number(value),
    }
}

/// `±0.9 %`.
fn deviation(fraction: Option<f64>) -> String {
    fraction.map_or_else(dash, |fraction| format!("±{}", percent(fraction)))
}

/// A verdict about the figure: for time, "faster" and "slower".
pub(crate) fn word(figure: Figure, verdict: Option<Verdict>) -> (&'static str, Goodness) {
    let printed = Printed { unit: String::new(), higher_is_better: figure.more_is_better() };
    let metric = if figure.more_is_better() { Metric::Printed } else { Metric::Wall };
    verdict.map_or(("–", Goodness::Neither), |verdict| verdict_word(metric, verdict, &printed))
}

/// An empty table whose second column has names.
fn with_names(style: Style, header: &[&str]) -> Table {
    let mut rows = report::table(style, header);
    if let Some(column) = rows.column_mut(1) {
        column.set_cell_alignment(CellAlignment::Left);
    }
    rows
}

/// The header; the third column is the figure's.
pub fn header(workload: &Workload) -> [String; 8] {
    let figure = workload.figure.header();
    [workload.tasks, "configuration", &figure, "sd", "change", "ratio", "95 % interval", "verdict"]
        .map(str::to_owned)
}

/// The cells of the row of the configuration at `place` of a result, and whether its verdict is good news.
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
pub fn table(workload: &Workload, results: &[CellResult], cpus: usize, style: Style) -> String {
    let header = header(workload);
    let mut rows = with_names(style, &header.each_ref().map(String::as_str));
    for result in results {
        for place in 0..result.configurations.len() {
            let (cells, goodness) = row(workload, result, place, cpus);
            let [cells @ .., verdict] = &cells;
            let mut row: Vec<Cell> = cells.iter().map(Cell::new).collect();
            row.push(style.verdict(verdict, goodness));
            rows.add_row(row);
        }
    }
    text(&rows)
}

/// What the columns mean, given the baseline's name.
pub fn explanation(workload: &Workload, baseline: &str) -> String {
    let direction = if workload.figure.more_is_better() { "more" } else { "less" };
    format!(
        "Means of all runs; sd: standard deviation in % of the mean; change: of the mean, against `{baseline}`. Ratio: within \
         rounds, median; {direction} than 1 is better. Noise: `{baseline}` against itself. * more {} than CPUs.",
        workload.tasks
    )
}

/// What a column needs besides its longest word: blanks, and the deviation.
const BLANKS: usize = 3;
const DEVIATION: usize = 11;

/// Configurations whose columns fit next to each other, with the baseline's.
fn chunks<'a>(names: &[&'a str], baseline: &str, width: usize) -> Vec<Vec<&'a str>> {
    let column = |name: &str| {
        let word = name.split(' ').map(|word| word.chars().count()).max().unwrap_or_default();
        word.max(8) + BLANKS + DEVIATION
    };
    let first = 10 + column(baseline);
    let mut chunks: Vec<Vec<&str>> = Vec::new();
    let mut used = usize::MAX;
    for name in names {
        used = used.saturating_add(column(name));
        match chunks.last_mut().filter(|chunk| used <= width && chunk.len() < CONFIGURATIONS) {
            Some(chunk) => chunk.push(name),
            None => {
                chunks.push(vec![name]);
                used = first + column(name);
            }
        }
    }
    chunks
}

/// No more configurations next to each other: more columns do not fit a line that is read at a glance.
const CONFIGURATIONS: usize = 3;

/// The table of one variant; none if there is nothing to compare.
pub fn matrix(workload: &Workload, results: &[CellResult], cpus: usize, style: Style) -> Option<String> {
    let first = results.first()?;
    let names = first.names();
    let (baseline, others) = names.split_first().filter(|(_, others)| !others.is_empty())?;
    if results.len() < 2 {
        return None;
    }
    let chunks = chunks(others, baseline, usize::from(style.width));
    let tables = chunks.iter().map(|names| part(workload, results, baseline, names, cpus, style));
    Some(tables.collect::<Vec<_>>().join("\n"))
}

fn part(
    workload: &Workload,
    results: &[CellResult],
    baseline: &str,
    names: &[&str],
    cpus: usize,
    style: Style,
) -> String {
    let figure = workload.figure;
    let base = format!("{baseline}, {}", figure.header());
    let mut header = vec![workload.tasks, &base, "sd"];
    for name in names {
        header.extend([name, "sd"]);
    }
    let mut rows = report::table(style, &header);
    for result in results {
        let mut cells = vec![threads(result.tasks, cpus)];
        let base = result.configuration(baseline);
        cells.push(base.map_or_else(dash, |configuration| value(figure, configuration.mean)));
        cells.push(deviation(base.and_then(ConfigurationResult::relative_deviation)));
        for name in names {
            let configuration = result.configuration(name);
            cells.push(configuration.and_then(|of| of.of_means).map_or_else(dash, change));
            cells.push(deviation(configuration.and_then(ConfigurationResult::relative_deviation)));
        }
        rows.add_row(cells);
    }
    text(&rows)
}

/// The workload's own columns that were measured.
pub(crate) fn own_columns(workload: &Workload, results: &[CellResult]) -> Vec<&'static Column> {
    let all = results.iter().flat_map(|result| &result.configurations);
    let is_there = |column: &&Column| all.clone().any(|of| of.columns.contains_key(column.key));
    workload.columns.iter().filter(is_there).collect()
}

/// A row per cell and configuration of one variant.
pub fn details(workload: &Workload, results: &[CellResult], cpus: usize, style: Style) -> String {
    let columns = own_columns(workload, results);
    let has_spread = results.iter().flat_map(|result| &result.configurations).any(|of| of.spread.is_some());
    let mut header = vec![workload.tasks, "configuration", "user/op", "system/op", "switches/op"];
    if has_spread {
        header.extend(["least", "most", "Jain"]);
    }
    header.extend(columns.iter().map(|column| column.header));
    let mut rows = with_names(style, &header);
    for result in results {
        for (place, configuration) in result.configurations.iter().enumerate() {
            let mut cells = vec![
                if place == 0 { threads(result.tasks, cpus) } else { String::new() },
                configuration.configuration.clone(),
                per_operation(configuration.user_s),
                per_operation(configuration.system_s),
                small(configuration.switches),
            ];
            if has_spread {
                cells.extend(spread(configuration));
            }
            cells.extend(columns.iter().map(|column| shown(configuration, column)));
            rows.add_row(cells);
        }
    }
    text(&rows)
}

fn spread(configuration: &ConfigurationResult) -> [String; 3] {
    configuration.spread.map_or_else(
        || [dash(), dash(), dash()],
        |spread| [number(spread.least as f64), number(spread.most as f64), format!("{:.3}", spread.jain)],
    )
}

/// A number of the workload's own.
pub(crate) fn shown(configuration: &ConfigurationResult, column: &Column) -> String {
    let Some(&value) = configuration.columns.get(column.key) else { return dash() };
    match column.kind {
        Kind::Number => number(value),
        Kind::Seconds => seconds(value),
        Kind::Bytes => bytes(value),
        Kind::Share => percent(value),
    }
}

/// A count per operation: mostly far below one.
fn small(count: f64) -> String {
    match count {
        0.0 => String::from("0"),
        c if c < 0.001 => format!("{c:.0e}"),
        c if c < 1.0 => format!("{c:.3}"),
        c => number(c),
    }
}

/// Numbers of tasks that fit next to each other.
const COLUMNS: usize = 8;

/// The table of one variant, for its baseline; none if the workload has no parts. The largest part of the
/// first column is first.
pub fn breakdown(workload: &Workload, results: &[CellResult], cpus: usize, style: Style) -> Option<String> {
    let columns = results.iter().take(COLUMNS);
    let columns =
        columns.filter_map(|result| Some((result.tasks, &result.configurations.first()?.breakdown)));
    let columns: Vec<(usize, &BTreeMap<String, f64>)> = columns.collect();
    let mut parts: Vec<(&String, &f64)> = columns.first()?.1.iter().collect();
    if parts.is_empty() {
        return None;
    }
    parts.sort_by(|a, b| b.1.total_cmp(a.1));
    let mut header = vec![format!("share of time, {}", workload.tasks)];
    header.extend(columns.iter().map(|(tasks, _)| threads(*tasks, cpus)));
    let mut rows = report::table(style, &header.iter().map(String::as_str).collect::<Vec<_>>());
    for (part, _) in parts {
        let share = |(_, shares): &(usize, &BTreeMap<String, f64>)| {
            shares.get(part).map_or_else(dash, |share| percent(*share))
        };
        rows.add_row(std::iter::once(part.clone()).chain(columns.iter().map(share)));
    }
    Some(text(&rows))
}

/// Where texts begin.
const INDENT: usize = 12;

/// All of them: what tasks do, the document that each comes from, numbers of tasks, options.
pub fn list(style: Style) -> String {
    let mut text = String::from("Workloads of the four documents, `spinpark-lab documents NAME`:\n");
    for workload in WORKLOADS {
        let thread_counts: Vec<String> = workload.thread_counts.iter().map(usize::to_string).collect();
        let thread_counts =
            if thread_counts.is_empty() { String::from("one per CPU") } else { thread_counts.join(" ") };
        let first = format!("  {:10}{}", workload.name, workload.about);
        let _ = writeln!(text, "{}", style.wrap(&first, INDENT));
        for line in [workload.source, &format!("{}: {thread_counts}", workload.tasks), workload.variants] {
            let _ = writeln!(text, "{}", style.wrap(&format!("{:INDENT$}{line}", ""), INDENT));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_too_long() {
        for width in [80, 100] {
            let text = list(Style { width, ..Style::PLAIN });
            assert!(text.lines().all(|line| line.chars().count() <= usize::from(width)), "{text}");
            assert!(text.contains("\n  creat     create and close a file"), "{text}");
        }
    }
}
