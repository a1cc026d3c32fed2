//! What a workload says about itself.

use spinpark_measure::report::Style;

use super::job::{Figure, Job, JobError, Report};
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
    pub table: Option<fn(&[CellResult], Style) -> String>,
    /// Runs one configuration of one cell, in a process of its own.
    pub run: fn(&Job) -> Result<Report, JobError>,
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
