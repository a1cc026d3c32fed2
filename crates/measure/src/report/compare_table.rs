//! The result of `spinpark compare` for people.

use std::fmt::Write;

use spinpark_show::units::{change, percent};

use super::{Goodness, Printed, Style, interval, metric_name, table, text, value, verdict_word};
use crate::compare::{Comparison, Summary};
use crate::sample::Metric;
use crate::stats::verdict::Verdict;
use crate::warnings::Warning;

const HEADER: [&str; 7] =
    ["median of runs", "glibc", "spinpark", "change", "95 % interval", "noise", "verdict"];

/// The table, one row per metric. `memory_floor` is the least peak memory that can be seen, in bytes.
#[must_use]
pub fn render(comparison: &Comparison, printed: &Printed, memory_floor: f64, style: Style) -> String {
    let mut rows = table(style, &HEADER);
    for summary in &comparison.metrics {
        let invisible = summary.metric == Metric::Memory && is_below(summary, memory_floor);
        rows.add_row(if invisible { below_row(memory_floor) } else { row(summary, printed, style) });
    }
    text(&rows)
}

fn row(summary: &Summary, printed: &Printed, style: Style) -> Vec<comfy_table::Cell> {
    let metric = summary.metric;
    let shown =
        |number: Option<f64>| number.map_or_else(|| String::from("–"), |number| value(metric, number));
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| String::from("–"));
    let (word, goodness) = match summary.change {
        Some(_) => verdict_word(metric, summary.verdict, printed),
        None => ("–", Goodness::Neither),
    };
    vec![
        metric_name(metric, printed).into(),
        shown(summary.glibc).into(),
        shown(summary.spinpark).into(),
        or_dash(summary.change.map(|ratio| change(ratio.median))).into(),
        or_dash(summary.change.map(|ratio| interval(&ratio))).into(),
        or_dash(summary.noise_floor().map(|floor| format!("±{}", percent(floor)))).into(),
        style.verdict(word, goodness),
    ]
}

/// A child starts as a copy of us, and the kernel counts that copy: smaller programs cannot be told apart.
fn is_below(summary: &Summary, floor: f64) -> bool {
    let visible = |median: Option<f64>| median.is_some_and(|bytes| bytes > floor);
    !visible(summary.glibc) && !visible(summary.spinpark)
}

fn below_row(floor: f64) -> Vec<comfy_table::Cell> {
    let below = format!("< {}", value(Metric::Memory, floor));
    let cells = ["peak memory", &below, &below, "–", "–", "–", "–"];
    cells.map(comfy_table::Cell::new).to_vec()
}

/// One sentence with the answer.
#[must_use]
pub fn conclusion(comparison: &Comparison, printed: &Printed, style: Style) -> Option<String> {
    let primary = comparison.primary()?;
    let ratio = primary.change?;
    let name = metric_name(primary.metric, printed);
    let (word, _) = verdict_word(primary.metric, primary.verdict, printed);
    let numbers = format!("{} {}", change(ratio.median), interval(&ratio));
    let sentence = match primary.verdict {
        Verdict::Lower | Verdict::Higher => format!("On spinpark's locks it is {word}: {name} {numbers}."),
        Verdict::Equivalent => format!("No change on spinpark's locks: {name} {numbers}."),
        Verdict::Undecided => format!("Undecided: {name} {numbers}; noise floor {}.", floor(primary)),
    };
    Some(style.wrap(&sentence, 0))
}

fn floor(summary: &Summary) -> String {
    summary.noise_floor().map_or_else(|| String::from("unknown"), |floor| format!("±{}", percent(floor)))
}

/// The warnings, one paragraph each.
#[must_use]
pub fn warnings(warnings: &[Warning], style: Style) -> String {
    let mut text = String::new();
    for warning in warnings {
        let _ = writeln!(text, "{}", style.wrap(&format!("Warning: {warning}"), 2));
    }
    text
}
