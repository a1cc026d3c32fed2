//! Two implementations: one row per cell.

use spinpark_measure::report::{Goodness, Style, table, text};
use spinpark_measure::text::units::{percent, seconds};

use super::{dash, interval, threads, time, time_verdict};
use crate::locks::result::{CellResult, ImplementationResult};

/// The two implementations of every cell that has both: the baseline, and the other one.
fn pair(result: &CellResult) -> Option<(&ImplementationResult, &ImplementationResult)> {
    match &result.implementations[..] {
        [baseline, other] => Some((baseline, other)),
        _ => None,
    }
}

/// The names of the two implementations, if there are two everywhere.
#[must_use]
pub fn names(results: &[CellResult]) -> Option<[&str; 2]> {
    let mut names = results
        .iter()
        .map(|result| pair(result).map(|(a, b)| [a.implementation.as_str(), b.implementation.as_str()]));
    let first = names.next()??;
    names.all(|pair| pair == Some(first)).then_some(first)
}

/// The header of the table.
pub(super) fn header([baseline, other]: [&str; 2]) -> [&str; 8] {
    ["workload", "threads", baseline, other, "ratio", "95 % interval", "noise", "verdict"]
}

/// The cells of one row as text, and whether the verdict is good.
pub(super) fn row(result: &CellResult, cpus: usize) -> Option<([String; 8], Goodness)> {
    let (baseline, other) = pair(result)?;
    let (word, goodness) = time_verdict(other.verdict);
    let cells = [
        result.workload.clone(),
        threads(result.threads, cpus),
        time(baseline.time_ns),
        time(other.time_ns),
        other.ratio.map_or_else(dash, |ratio| format!("{:.2}", ratio.median)),
        other.ratio.as_ref().map_or_else(dash, interval),
        result.again.map_or_else(dash, |again| format!("±{}", percent(again.reach()))),
        word.to_owned(),
    ];
    Some((cells, goodness))
}

/// Time per operation of every cell. `cpus` decides which rows are oversubscribed.
#[must_use]
pub fn render(results: &[CellResult], names: [&str; 2], cpus: usize, style: Style) -> String {
    let mut rows = table(style, &header(names));
    for (cells, goodness) in results.iter().filter_map(|result| row(result, cpus)) {
        let word = style.verdict(&cells[7], goodness);
        let mut row: Vec<comfy_table::Cell> = cells[..7].iter().map(comfy_table::Cell::new).collect();
        row.push(word);
        rows.add_row(row);
    }
    text(&rows)
}

/// How long threads waited, and how evenly they were served; nothing if no workload says so.
#[must_use]
pub fn render_waits(results: &[CellResult], style: Style) -> Option<String> {
    let header =
        ["waits", "threads", "implementation", "p50", "p99", "p99.9", "longest", "longest gap", "Jain index"];
    let mut rows = table(style, &header);
    for result in results {
        for implementation in &result.implementations {
            let Some(waits) = &implementation.waits else { continue };
            let ns = |ns: f64| seconds(ns * 1e-9);
            rows.add_row([
                result.workload.clone(),
                result.threads.to_string(),
                implementation.implementation.clone(),
                ns(waits.p50),
                ns(waits.p99),
                ns(waits.p999),
                ns(waits.longest),
                ns(waits.longest_gap),
                implementation.jain.map_or_else(dash, |jain| format!("{jain:.3}")),
            ]);
        }
    }
    (!rows.is_empty()).then(|| text(&rows))
}
