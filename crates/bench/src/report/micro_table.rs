//! The result of `spinpark bench` for people.

use super::{Goodness, Printed, Style, table, text, verdict_word};
use crate::micro::CellResult;
use crate::sample::Metric;
use crate::units::{percent, seconds};

const HEADER: [&str; 8] =
    ["shape", "threads", "glibc", "spinpark", "ratio", "95 % interval", "noise", "verdict"];

/// Time per operation: less is better.
const TIME: Printed = Printed { unit: String::new(), higher_is_better: false };

/// The cells of one row as text, and whether the verdict is good.
pub(super) fn row(result: &CellResult, cpus: usize) -> ([String; 8], Goodness) {
    let dash = || String::from("–");
    let shown = |ns: Option<f64>| ns.map_or_else(dash, |ns| seconds(ns * 1e-9));
    let time = &result.time;
    let mark = if result.threads > cpus { "*" } else { "" };
    let (word, goodness) = match time.change {
        Some(_) => verdict_word(Metric::Wall, time.verdict, &TIME),
        None => ("–", Goodness::Neither),
    };
    let cells = [
        result.shape.to_owned(),
        format!("{}{mark}", result.threads),
        shown(time.glibc),
        shown(time.spinpark),
        time.change.map_or_else(dash, |ratio| format!("{:.2}", ratio.median)),
        time.change.map_or_else(dash, |ratio| format!("[{:.2}, {:.2}]", ratio.low, ratio.high)),
        time.noise_floor().map_or_else(dash, |floor| format!("±{}", percent(floor))),
        word.to_owned(),
    ];
    (cells, goodness)
}

/// Time per operation of every cell. `cpus` decides which rows are oversubscribed.
#[must_use]
pub fn render(results: &[CellResult], cpus: usize, style: Style) -> String {
    let mut rows = table(style, &HEADER);
    for result in results {
        let (cells, goodness) = row(result, cpus);
        let word = style.verdict(&cells[7], goodness);
        let mut row: Vec<comfy_table::Cell> = cells[..7].iter().map(comfy_table::Cell::new).collect();
        row.push(word);
        rows.add_row(row);
    }
    text(&rows)
}

/// How evenly threads were served; nothing if no shape says so.
#[must_use]
pub fn render_fairness(results: &[CellResult], style: Style) -> Option<String> {
    let header = ["fairness", "threads", "longest gap, glibc", "spinpark", "Jain index, glibc", "spinpark"];
    let mut rows = table(style, &header);
    for result in results {
        let Some(fairness) = &result.fairness else { continue };
        let [gap_glibc, gap_spinpark] = fairness.longest_gap_s.map(seconds);
        let [jain_glibc, jain_spinpark] = fairness.jain.map(|index| format!("{index:.3}"));
        let threads = result.threads.to_string();
        rows.add_row([result.shape, &threads, &gap_glibc, &gap_spinpark, &jain_glibc, &jain_spinpark]);
    }
    (!rows.is_empty()).then(|| text(&rows))
}
