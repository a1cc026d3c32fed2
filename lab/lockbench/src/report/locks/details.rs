//! One cell with all its figures: what an operation costs, and how long it waits.

use spinpark_measure::report::{Style, table, text};
use spinpark_measure::text::units::{number, per_operation, percent, seconds};

use super::{dash, interval, threads, time, time_verdict};
use crate::locks::experiment::Skipped;
use crate::locks::result::CellResult;

/// The tables of a cell. `cpus` decides whether it is oversubscribed.
#[must_use]
pub fn render(result: &CellResult, cpus: usize, style: Style) -> String {
    let noise = result.again.map_or_else(String::new, |again| format!(", noise ±{}", percent(again.reach())));
    let plural = if result.threads == 1 { "" } else { "s" };
    let baseline = result.implementations.first().map_or("", |implementation| &implementation.implementation);
    let title = format!(
        "{}, {} thread{plural}; ratios to {baseline}{noise}\n",
        result.workload,
        threads(result.threads, cpus)
    );
    title + &costs(result, style) + &waits(result, style) + &left_out(&result.skipped, style)
}

fn left_out(skipped: &[Skipped], style: Style) -> String {
    if skipped.is_empty() {
        return String::new();
    }
    let each: Vec<String> = skipped.iter().map(|s| format!("{} ({})", s.implementation, s.why)).collect();
    style.wrap(&format!("Left out: {}", each.join("; ")), 2) + "\n"
}

fn costs(result: &CellResult, style: Style) -> String {
    let header =
        ["per operation", "time", "ratio", "95 % interval", "verdict", "CPU time", "switches", "futex calls"];
    let mut rows = table(style, &header);
    for implementation in &result.implementations {
        let (word, goodness) = time_verdict(implementation.verdict);
        let cells = [
            implementation.implementation.clone(),
            time(implementation.time_ns),
            implementation.ratio.map_or_else(dash, |ratio| format!("{:.2}", ratio.median)),
            implementation.ratio.as_ref().map_or_else(dash, interval),
            String::new(),
            cpu(implementation.cpu_ns),
            small(implementation.switches),
            implementation.futex_calls.map_or_else(dash, small),
        ];
        let mut cells: Vec<comfy_table::Cell> = cells.iter().map(comfy_table::Cell::new).collect();
        cells[4] = style.verdict(word, goodness);
        rows.add_row(cells);
    }
    text(&rows)
}

fn waits(result: &CellResult, style: Style) -> String {
    let header = ["waits", "p50", "p90", "p99", "p99.9", "longest", "longest gap", "Jain index"];
    let mut rows = table(style, &header);
    for implementation in &result.implementations {
        let Some(waits) = &implementation.waits else { continue };
        let times = [waits.p50, waits.p90, waits.p99, waits.p999, waits.longest, waits.longest_gap];
        let mut cells = vec![implementation.implementation.clone()];
        cells.extend(times.map(|ns| seconds(ns * 1e-9)));
        cells.push(implementation.jain.map_or_else(dash, |jain| format!("{jain:.3}")));
        rows.add_row(cells);
    }
    if rows.is_empty() { String::new() } else { text(&rows) }
}

/// CPU time per operation.
fn cpu(ns: f64) -> String {
    if ns.is_finite() { per_operation(ns * 1e-9) } else { dash() }
}

/// A count per operation: mostly far below one.
fn small(count: f64) -> String {
    match count {
        0.0 => String::from("0"),
        c if c.is_infinite() => dash(),
        c if c < 0.001 => format!("{c:.0e}"),
        c if c < 1.0 => format!("{c:.3}"),
        c => number(c),
    }
}
