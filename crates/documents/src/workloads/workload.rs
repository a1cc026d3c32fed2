//! What a workload says about itself.

use spinpark_measure::report::Style;

use super::job::{Job, JobError, Report};
use super::result::CellResult;

/// A benchmark of one of the documents.
#[derive(Debug)]
pub struct Workload {
    pub name: &'static str,
    pub about: &'static str,
    /// The document that it comes from, and the benchmark there.
    pub source: &'static str,
    /// What tells its variants apart, in the words of the command line.
    pub variants: &'static str,
    /// What a number of tasks counts: "threads", "tasks", "users".
    pub tasks: &'static str,
    /// Numbers of tasks that it runs at unless told otherwise.
    pub thread_counts: &'static [usize],
    pub figure: Figure,
    pub uses_directory: bool,
    /// Columns of its own in the table of details, by their names in [`Report::columns`].
    pub columns: &'static [Column],
    /// A table of its own, of the cells of one variant: in place of the one with these columns.
    pub table: Option<fn(&[&CellResult], Style) -> String>,
    /// Runs one configuration of one cell, in a process of its own.
    pub run: fn(&Job) -> Result<Report, JobError>,
}

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

/// A number that reports of one workload have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Its key in [`Report::columns`].
    pub key: &'static str,
    /// Its header in tables.
    pub header: &'static str,
    pub kind: Kind,
}

/// How a number is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `12,345`.
    Number,
    /// `1.234 s`.
    Seconds,
    /// `12.3 MiB`.
    Bytes,
    /// `12.3 %`.
    Share,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_a_run() {
        let report = Report { operations: 10, elapsed_s: 2.0, ..Report::default() };
        assert_eq!(Figure::PerSecond("ops").of(&report), Some(5.0));
        assert_eq!(Figure::PerMinute("jobs").of(&report), Some(300.0));
        assert_eq!(Figure::Elapsed.of(&report), Some(2.0));
        assert_eq!(Figure::PerSecond("ops").of(&Report::default()), None);
        assert_eq!(Figure::PerSecond("ops").of(&Report { operations: 0, ..report.clone() }), Some(0.0));
        assert_eq!(Figure::Elapsed.of(&Report::default()), None);
        assert_eq!(Figure::PerMinute("jobs").header(), "jobs/min");
    }
}
