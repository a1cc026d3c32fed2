//! How numbers are written in all reports.

use spinpark_measure::report::{Style, length};
use spinpark_measure::text::units;
pub(super) use spinpark_measure::text::units::percent as share;
use spinpark_measure::text::units::three_digits;

use spinpark_sim::table::Unit;

/// A bar of this length. Anything has a mark.
pub(super) fn bar(length: f64) -> String {
    "█".repeat(length.round().max(f64::from(length > 0.0)) as usize)
}

/// How much room bars have beside these columns, of which those of bars are empty in `header`.
pub(super) fn bar_room<'a>(
    style: Style,
    header: &[&str],
    rows: impl Iterator<Item = &'a [String]> + Clone,
) -> usize {
    let (mut texts, mut bars) = (0, 0);
    let mut column = 0;
    for title in header {
        // Two blanks, and what parts columns.
        texts += 3;
        if title.is_empty() {
            bars += 1;
            continue;
        }
        let cells = rows.clone().map(|row| length(&row[column]));
        texts += cells.fold(length(title), usize::max);
        column += 1;
    }
    (usize::from(style.width).saturating_sub(texts + 1) / bars.max(1)).max(4)
}

/// A time in nanoseconds.
pub(super) fn ns(value: f64) -> String {
    units::seconds(value * 1e-9)
}

/// A time as `--duration` takes it: `20ms`.
pub(super) fn for_option(ns: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
    let unit = units.into_iter().find(|(unit, _)| ns >= *unit && ns.is_multiple_of(*unit));
    let (unit, name) = unit.unwrap_or((1, "ns"));
    format!("{}{name}", ns / unit)
}

/// A rate: `1.23 M`.
pub(super) fn rate(per_second: f64) -> String {
    match per_second {
        v if v >= 1e9 => format!("{} G", three_digits(v / 1e9)),
        v if v >= 1e6 => format!("{} M", three_digits(v / 1e6)),
        v if v >= 1e4 => format!("{} k", three_digits(v / 1e3)),
        v => units::number(v),
    }
}

/// A figure of a table, as its unit says.
pub(super) fn figure(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Ratio => format!("{value:.2}"),
        Unit::Percent => format!("{value:+.1} %"),
        Unit::PerSecond => rate(value) + "/s",
        Unit::Nanoseconds => ns(value),
        _ => units::number(value),
    }
}

/// Puts the words of these columns at their left.
pub(super) fn align_left(table: &mut comfy_table::Table, columns: &[usize]) {
    for &column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(comfy_table::CellAlignment::Left);
        }
    }
}
