//! The result of `spinpark-lab bench locks`: tables, Markdown, plots.

pub mod details;
pub mod effects;
pub mod list;
pub mod markdown;
pub mod matrix;
pub mod pairwise;
pub mod plot;

pub use super::{dash, interval, threads};
use spinpark_measure::report::{Goodness, Printed, distinct, verdict_word};
use spinpark_measure::rounds::sample::Metric;
use spinpark_measure::stats::verdict::Verdict;
use spinpark_measure::text::units;

use crate::locks::result::CellResult;

/// With at most this many cells, all figures are shown without being asked for.
pub const FEW_CELLS: usize = 6;

/// The implementations in the order in which cells have them.
fn names<'a>(cells: impl IntoIterator<Item = &'a CellResult>) -> Vec<&'a str> {
    distinct(cells.into_iter().flat_map(|cell| &cell.implementations).map(|own| own.implementation.as_str()))
}

/// A time per operation; `0 ops` if there was none.
pub(super) fn time(ns: f64) -> String {
    if ns.is_finite() { units::seconds(ns * 1e-9) } else { String::from("0 ops") }
}

/// A verdict about a time per operation.
fn time_verdict(verdict: Option<Verdict>) -> (&'static str, Goodness) {
    const TIME: Printed = Printed { unit: String::new(), higher_is_better: false };
    verdict.map_or(("–", Goodness::Neither), |verdict| verdict_word(Metric::Wall, verdict, &TIME))
}
