//! The documents' tables: published beside simulated.

use std::fmt::Write;

use spinpark_sim::documents::{Bound, Figure, Table, Unit};

use super::figure;
use crate::report::{Goodness, Style, table, text, wrap};

/// The columns.
pub const HEADER: [&str; 8] =
    ["figure", "published", "simulated", "over seeds", "error", "effect", "must be", ""];

/// A table as text.
#[must_use]
pub fn render(name: &str, made: &Table, style: Style) -> String {
    let mut out = wrap(&heading(name, made), 2) + "\n";
    let mut rows = table(style, &HEADER);
    for figure in &made.figures {
        let [name, published, simulated, range, error, effect, bound, verdict] = cells(figure);
        let goodness = match figure.holds() {
            Some(true) => Goodness::Good,
            Some(false) => Goodness::Bad,
            None => Goodness::Neither,
        };
        let plain = [name, published, simulated, range, error, effect, bound].map(comfy_table::Cell::new);
        rows.add_row(plain.into_iter().chain([style.verdict(&verdict, goodness)]).collect::<Vec<_>>());
    }
    out += &text(&rows);
    for sentence in sentences(made) {
        let _ = writeln!(out, "{}", wrap(&sentence, 2));
    }
    out
}

/// `001-v, document 001: what it is about (on nehalem-ex-64)`.
#[must_use]
pub fn heading(name: &str, made: &Table) -> String {
    format!("{name}, document {}: {} (on {})", made.document, made.title, made.machine)
}

/// What stands below a table.
#[must_use]
pub fn sentences(made: &Table) -> Vec<String> {
    let star = made.figures.iter().any(|figure| figure.fitted);
    let fitted = format!("{}Fitted: {}", if star { "* " } else { "" }, made.fitted);
    std::iter::once(fitted).chain(made.notes.iter().map(|note| format!("- {note}"))).collect()
}

/// The cells of a figure, as [`HEADER`] has them.
#[must_use]
pub fn cells(of: &Figure) -> [String; 8] {
    let dash = || String::from("–");
    let (low, high) = of.range;
    let is_one_value = figure(of.unit, low) == figure(of.unit, high);
    [
        row_name(of),
        of.published.map_or_else(dash, |published| figure(of.unit, published)),
        figure(of.unit, of.simulated),
        if is_one_value { dash() } else { format!("{} … {}", figure(of.unit, low), figure(of.unit, high)) },
        of.relative_error().map_or_else(dash, |error| format!("{:+.0} %", error * 100.0)),
        of.same_sign().map_or_else(dash, |same| String::from(if same { "same" } else { "opposite" })),
        of.bound.map_or_else(dash, |bound| in_words(bound, of.unit)),
        of.holds().map_or_else(String::new, |holds| String::from(if holds { "holds" } else { "missed" })),
    ]
}

/// Cycles have no room beside their numbers.
fn row_name(of: &Figure) -> String {
    let unit = if of.unit == Unit::Cycles { ", cycles" } else { "" };
    format!("{}{unit}{}", of.name, if of.fitted { " *" } else { "" })
}

fn in_words(bound: Bound, unit: Unit) -> String {
    match bound {
        Bound::Within(from, to) => format!("{} … {}", figure(unit, from), figure(unit, to)),
        Bound::AtLeast(least) => format!("≥ {}", figure(unit, least)),
        Bound::AtMost(most) => format!("≤ {}", figure(unit, most)),
        Bound::Sign => String::from("same effect"),
        _ => String::from("?"),
    }
}

/// How many bounds hold, and a line for each that does not. None: there are no bounds.
#[must_use]
pub fn verdict(tables: &[(String, Table)]) -> Option<String> {
    let figures =
        || tables.iter().flat_map(|(name, table)| table.figures.iter().map(move |figure| (name, figure)));
    let bounds = figures().filter(|(_, figure)| figure.bound.is_some()).count();
    let missed: Vec<_> = figures().filter(|(_, figure)| figure.holds() == Some(false)).collect();
    if bounds == 0 {
        return None;
    }
    let mut out = format!(
        "{bounds} bound{}: {} hold, {} missed.\n",
        if bounds == 1 { "" } else { "s" },
        bounds - missed.len(),
        missed.len()
    );
    for (name, of) in missed {
        let [row, published, simulated, _, _, _, bound, _] = cells(of);
        let published = if published == "–" { String::new() } else { format!(", published {published}") };
        let line = format!("- {name}: {row}: {simulated}, must be {bound}{published}");
        let _ = writeln!(out, "{}", wrap(&line, 2));
    }
    Some(out)
}

/// Whether a bound is missed.
#[must_use]
pub fn is_missed(tables: &[(String, Table)]) -> bool {
    tables.iter().flat_map(|(_, table)| &table.figures).any(|figure| figure.holds() == Some(false))
}
