//! The result of `spinpark documents WORKLOAD`: tables.

pub mod breakdown;
pub mod details;
pub mod list;
pub mod matrix;
pub mod table;

use spinpark_measure::report::{Goodness, Printed, verdict_word};
use spinpark_measure::sample::Metric;
use spinpark_measure::stats::verdict::Verdict;
use spinpark_measure::units;

use crate::workloads::Figure;

/// With at most this many cells, the details are shown without being asked for.
pub const FEW_CELLS: usize = 4;

/// A value of the figure.
pub(crate) fn value(figure: Figure, value: f64) -> String {
    match figure {
        Figure::Elapsed => units::seconds(value),
        Figure::PerSecond(_) | Figure::PerMinute(_) => units::number(value),
    }
}

/// `±0.9 %`.
fn deviation(fraction: Option<f64>) -> String {
    fraction.map_or_else(spinpark_lockbench::report::locks::dash, |fraction| {
        format!("±{}", units::percent(fraction))
    })
}

/// A verdict about the figure: for time, "faster" and "slower".
pub(crate) fn word(figure: Figure, verdict: Option<Verdict>) -> (&'static str, Goodness) {
    let printed = Printed { unit: String::new(), higher_is_better: figure.more_is_better() };
    let metric = if figure.more_is_better() { Metric::Printed } else { Metric::Wall };
    verdict.map_or(("–", Goodness::Neither), |verdict| verdict_word(metric, verdict, &printed))
}
