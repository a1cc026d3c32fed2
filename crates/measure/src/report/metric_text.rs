//! Values, metrics and verdicts in words.

use crate::text::units;
use serde::{Deserialize, Serialize};

use crate::rounds::sample::Metric;
use crate::stats::Ratio;
use crate::stats::verdict::Verdict;

/// What the program's own number means.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Printed {
    /// Its unit, if it was given.
    pub unit: String,
    /// Whether more is better.
    pub higher_is_better: bool,
}

/// Whether a change is for the better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goodness {
    /// An improvement.
    Good,
    /// The opposite.
    Bad,
    /// No difference, or not known.
    Neither,
}

/// A metric's name in tables.
#[must_use]
pub fn metric_name(metric: Metric, printed: &Printed) -> String {
    match metric {
        Metric::Printed if printed.unit.is_empty() => String::from("program's number"),
        Metric::Printed => printed.unit.clone(),
        Metric::Wall => String::from("wall time"),
        Metric::Cpu => String::from("CPU time"),
        Metric::Switches => String::from("context switches"),
        Metric::Memory => String::from("peak memory"),
    }
}

/// A metric's value with its unit.
#[must_use]
pub fn value(metric: Metric, value: f64) -> String {
    match metric {
        Metric::Wall | Metric::Cpu => units::seconds(value),
        Metric::Memory => units::bytes(value),
        Metric::Printed | Metric::Switches => units::number(value),
    }
}

/// The heading of intervals that miss in a share `error` of cases: `95 % interval`.
#[must_use]
pub fn interval_of(error: f64) -> String {
    let percent = (1.0 - error) * 100.0;
    let digits = usize::from((percent - percent.round()).abs() > 0.05);
    format!("{percent:.digits$} % interval")
}

/// `[-22.1 %, -18.0 %]`.
#[must_use]
pub fn interval(ratio: &Ratio) -> String {
    units::interval(ratio.low, ratio.high)
}

/// The verdict in the words of the metric, and whether it is good news.
#[must_use]
pub fn verdict_word(metric: Metric, verdict: Verdict, printed: &Printed) -> (&'static str, Goodness) {
    let (lower, higher) = match metric {
        Metric::Wall => ("faster", "slower"),
        Metric::Cpu | Metric::Switches | Metric::Memory => ("less", "more"),
        Metric::Printed if printed.higher_is_better => ("worse", "better"),
        Metric::Printed => ("better", "worse"),
    };
    let higher_is_better = metric == Metric::Printed && printed.higher_is_better;
    let of = |good| if good { Goodness::Good } else { Goodness::Bad };
    match verdict {
        Verdict::Lower => (lower, of(!higher_is_better)),
        Verdict::Higher => (higher, of(higher_is_better)),
        Verdict::Equivalent => ("equivalent", Goodness::Neither),
        Verdict::Undecided => ("undecided", Goodness::Neither),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throughput_and_time_point_in_opposite_directions() {
        let throughput = Printed { unit: String::from("tps"), higher_is_better: true };
        assert_eq!(verdict_word(Metric::Printed, Verdict::Higher, &throughput), ("better", Goodness::Good));
        assert_eq!(
            verdict_word(Metric::Printed, Verdict::Higher, &Printed::default()),
            ("worse", Goodness::Bad)
        );
        assert_eq!(verdict_word(Metric::Wall, Verdict::Lower, &throughput), ("faster", Goodness::Good));
        assert_eq!(verdict_word(Metric::Memory, Verdict::Higher, &throughput), ("more", Goodness::Bad));
        assert_eq!(
            verdict_word(Metric::Cpu, Verdict::Undecided, &throughput),
            ("undecided", Goodness::Neither)
        );
    }
}
