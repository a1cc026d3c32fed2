//! What a workload is measured by.

use super::job::Report;

/// The number of a run that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// Operations per second, with their name: more is better.
    PerSecond(&'static str),
    /// Operations per minute, with their name: more is better.
    PerMinute(&'static str),
    /// The time that a fixed amount of work takes, in seconds: less is better.
    Elapsed,
}

impl Figure {
    /// The figure of a run; none if it says nothing. A run in which nothing happened has a rate, which is 0.
    pub fn of(self, report: &Report) -> Option<f64> {
        let per_second = report.operations as f64 / report.elapsed_s;
        let value = match self {
            Self::PerSecond(_) => per_second,
            Self::PerMinute(_) => per_second * 60.0,
            Self::Elapsed => report.elapsed_s,
        };
        let least = if self.more_is_better() { 0.0 } else { f64::MIN_POSITIVE };
        (value.is_finite() && value >= least).then_some(value)
    }

    /// The header of its column: `ops/s`.
    pub fn header(self) -> String {
        match self {
            Self::PerSecond(what) => format!("{what}/s"),
            Self::PerMinute(what) => format!("{what}/min"),
            Self::Elapsed => String::from("elapsed"),
        }
    }

    /// Whether more of it is better.
    pub fn more_is_better(self) -> bool {
        !matches!(self, Self::Elapsed)
    }
}
