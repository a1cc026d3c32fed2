//! The documents' tables: published beside simulated.

use std::fmt::Write;

use serde::Serialize;
use spinpark_measure::report::{Goodness, Style, table, text};
use spinpark_measure::text::units::counted;

use crate::Document;
use crate::formats::{align_left, bar, bar_room, figure};
use spinpark_sim::table::{Bins, Bound, Figure, Table, Unit};

/// The columns.
const HEADER: [&str; 8] = ["figure", "published", "simulated", "± seeds", "error", "effect", "must be", ""];

/// A column that has nothing but this, or nothing, is left out.
const NONE: &str = "–";

/// A table as text.
#[must_use]
pub fn render(name: &str, made: &Table, style: Style) -> String {
    let mut out = style.wrap(&heading(name, made), 2) + "\n";
    let (mut header, cells) = shown(made);
    let is_judged = made.figures.iter().any(|figure| figure.bound.is_some());
    if style.is_narrow() && is_judged {
        header.pop();
    }
    let mut rows = table(style, &header);
    for (figure, mut cells) in made.figures.iter().zip(cells) {
        let goodness = match figure.holds() {
            Some(true) => Goodness::Good,
            Some(false) => Goodness::Bad,
            None => Goodness::Neither,
        };
        let mut verdict = if is_judged { cells.pop() } else { None };
        if style.is_narrow()
            && let Some(verdict) = &mut verdict
        {
            // Below the bound, where there is no room beside it.
            *verdict = format!("{}\n{verdict}", cells.pop().unwrap_or_default()).trim_end().to_owned();
        }
        let verdict = verdict.map(|verdict| style.verdict(&verdict, goodness));
        rows.add_row(cells.into_iter().map(comfy_table::Cell::new).chain(verdict).collect::<Vec<_>>());
    }
    out += &text(&rows);
    if let Some(error) = error(made) {
        let _ = writeln!(out, "{}", style.wrap(error, 2));
    }
    for bins in &made.distributions {
        let _ = write!(out, "\n{}", distribution(bins, style));
    }
    for (title, front) in &made.fronts {
        let _ = writeln!(out, "\n{title}:");
        out += &front.render("lock", style);
    }
    for sentence in sentences(made) {
        let _ = writeln!(out, "{}", style.wrap(&sentence, 2));
    }
    out
}

/// The header and the rows, without columns that say nothing.
#[must_use]
pub fn shown(made: &Table) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let all: Vec<_> = made.figures.iter().map(cells).collect();
    let says = |column: usize| all.iter().any(|row| ![NONE, ""].contains(&row[column].as_str()));
    let columns: Vec<_> = (0..HEADER.len()).filter(|&column| says(column)).collect();
    let header = columns.iter().map(|&column| HEADER[column]).collect();
    let row = |row: &[String; 8]| columns.iter().map(|&column| row[column].clone()).collect();
    (header, all.iter().map(row).collect())
}

/// Its bins, from the first to the last that has anything: `2^20 cycles`, published, simulated, %.
#[must_use]
pub fn bins(of: &Bins) -> Vec<(String, f64, f64)> {
    let both = of.published.iter().zip(&of.simulated);
    let all: Vec<_> = (of.first..)
        .zip(both)
        .map(|(bin, (&theirs, &ours))| (format!("2^{bin} {}", of.of), theirs, ours))
        .collect();
    let is_some = |(_, theirs, ours): &&(String, f64, f64)| *theirs > 0.0 || *ours > 0.0;
    let before = all.iter().take_while(|bin| !is_some(bin)).count();
    let after = all.iter().rev().take_while(|bin| !is_some(bin)).count();
    all[before..].iter().take((all.len() - before).saturating_sub(after)).cloned().collect()
}

/// A row for each bin, with two bars.
fn distribution(of: &Bins, style: Style) -> String {
    const MOST: usize = 28;
    let bins = bins(of);
    let most = bins.iter().fold(0.0, |most, (_, theirs, ours)| f64::max(most, theirs.max(*ours)));
    let header = [&of.name, "published", "", "simulated", ""];
    let cells: Vec<_> = bins
        .iter()
        .map(|(bin, theirs, ours)| [bin.clone(), format!("{theirs:.1} %"), format!("{ours:.1} %")])
        .collect();
    let longest = bar_room(style, &header, cells.iter().map(|row| &row[..])).min(MOST) as f64;
    let bar = |part: f64| bar(part / most * longest);
    let mut rows = table(style, &header);
    align_left(&mut rows, &[2, 4]);
    for ([bin, published, simulated], (_, theirs, ours)) in cells.into_iter().zip(bins) {
        rows.add_row([bin, published, bar(theirs), simulated, bar(ours)]);
    }
    text(&rows)
}

/// `001-v, document 001: what it is about (on nehalem-ex-64)`.
#[must_use]
pub fn heading(name: &str, made: &Table) -> String {
    // What is ours is in none of the documents.
    let is_number = made.document.bytes().all(|byte| byte.is_ascii_digit());
    let document = if is_number { format!(", document {}", made.document) } else { String::new() };
    format!("{name}{document}: {} (on {})", made.title, made.machine)
}

/// What the column "error" is, if there is one.
#[must_use]
pub fn error(made: &Table) -> Option<&'static str> {
    let has_one = made.figures.iter().any(|figure| figure.relative_error().is_some());
    has_one.then_some("error: simulated ÷ published − 1; a gain in % counts as a factor (+4 %: 1.04).")
}

/// What stands below a table and its distributions.
#[must_use]
pub fn sentences(made: &Table) -> Vec<String> {
    let star = made.figures.iter().any(|figure| figure.fitted);
    let fitted = format!("{}Fitted: {}", if star { "* " } else { "" }, made.fitted);
    std::iter::once(fitted).chain(made.notes.iter().map(|note| format!("- {note}"))).collect()
}

/// The cells of a figure, as [`HEADER`] has them.
fn cells(of: &Figure) -> [String; 8] {
    let dash = || String::from(NONE);
    [
        row_name(of),
        of.published.map_or_else(dash, |published| figure(of.unit, published)),
        figure(of.unit, of.simulated),
        spread(of),
        of.relative_error().map_or_else(dash, |error| format!("{:+.0} %", error * 100.0)),
        of.same_sign().map_or_else(dash, |same| String::from(if same { "same" } else { "opposite" })),
        of.bound.map_or_else(dash, |bound| in_words(bound, of.unit)),
        of.holds().map_or_else(String::new, |holds| String::from(if holds { "holds" } else { "missed" })),
    ]
}

/// Half of the way from the lowest seed to the highest.
fn spread(of: &Figure) -> String {
    let (low, high) = of.range;
    if figure(of.unit, low) == figure(of.unit, high) {
        return String::from(NONE);
    }
    format!("±{}", figure(of.unit, (high - low) / 2.0).trim_start_matches('+'))
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
    }
}

/// How many bounds hold, and a line for each that does not. None: there are no bounds.
#[must_use]
pub fn verdict(tables: &[(String, Table)], style: Style) -> Option<String> {
    let figures =
        || tables.iter().flat_map(|(name, table)| table.figures.iter().map(move |figure| (name, figure)));
    let bounds = figures().filter(|(_, figure)| figure.bound.is_some()).count();
    let missed: Vec<_> = figures().filter(|(_, figure)| figure.holds() == Some(false)).collect();
    if bounds == 0 {
        return None;
    }
    let mut out =
        format!("{}: {} hold, {} missed.\n", counted(bounds, "bound"), bounds - missed.len(), missed.len());
    for (name, of) in missed {
        let [row, published, simulated, _, _, _, bound, _] = cells(of);
        let published = if published == NONE { String::new() } else { format!(", published {published}") };
        let line = format!("- {name}: {row}: {simulated}, must be {bound}{published}");
        let _ = writeln!(out, "{}", style.wrap(&line, 2));
    }
    Some(out)
}

/// Whether a bound is missed.
#[must_use]
pub fn is_missed(tables: &[(String, Table)]) -> bool {
    tables.iter().flat_map(|(_, table)| &table.figures).any(|figure| figure.holds() == Some(false))
}

/// What is in the JSON of `spinpark-lab sim tables`.
#[derive(Debug, Serialize)]
pub struct Tables<'a> {
    is_quick: bool,
    tables: Vec<Named<'a>>,
}

#[derive(Debug, Serialize)]
struct Named<'a> {
    name: &'a str,
    #[serde(flatten)]
    table: &'a Table,
    /// What follows from each figure.
    judged: Vec<Judged>,
}

#[derive(Debug, Serialize)]
struct Judged {
    relative_error: Option<f64>,
    same_sign: Option<bool>,
    holds: Option<bool>,
}

/// The JSON of these tables, by name.
#[must_use]
pub fn json<'a>(
    end: &'a str,
    command: &'a str,
    is_quick: bool,
    tables: &'a [(String, Table)],
) -> Document<'a, Tables<'a>> {
    let judged = |figure: &Figure| Judged {
        relative_error: figure.relative_error(),
        same_sign: figure.same_sign(),
        holds: figure.holds(),
    };
    let named = |(name, table): &'a (String, Table)| Named {
        name,
        table,
        judged: table.figures.iter().map(judged).collect(),
    };
    let tables = tables.iter().map(named).collect();
    Document::new("spinpark sim tables", end, command, Tables { is_quick, tables })
}
