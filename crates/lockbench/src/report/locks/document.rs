//! All data of a benchmark as one JSON document, to be written and to be read again.

use serde::{Deserialize, Serialize};
use spinpark_measure::machine::Noise;
use spinpark_measure::report::front::Front;
use spinpark_measure::report::{Head, reading};
use spinpark_measure::warnings::Warning;

use crate::locks::bounds::BoundResult;
use crate::locks::definitions::{Bound, Implementation};
use crate::locks::experiment::Measured;
use crate::locks::result::CellResult;

/// The version of the document's structure. It grows when a field changes its meaning or goes.
pub const SCHEMA: u32 = 2;

/// What the document is called in its field `format`.
pub const FORMAT: &str = "spinpark bench locks";

/// Everything.
#[derive(Debug, Serialize)]
pub struct Document<'a> {
    /// What was measured, and how.
    #[serde(flatten)]
    pub record: &'a Record,
    /// What else the machine did.
    pub noise: &'a Noise,
    /// What makes the results weak.
    pub warnings: &'a [Warning],
    /// What follows from the runs.
    pub results: &'a [CellResult],
    /// Throughput beside CPU time.
    pub fronts: &'a [Front],
    /// Which bounds hold, if that was asked for.
    pub bounds: &'a [BoundResult],
}

/// What is enough to say everything again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// Of [`FORMAT`] and [`SCHEMA`].
    #[serde(flatten)]
    pub head: Head,
    /// Whose locks, with versions; the first one is the baseline.
    pub implementations: Vec<VersionedImplementation>,
    /// The bounds that were to be judged.
    #[serde(default)]
    pub bound_definitions: Vec<Bound>,
    /// Every run.
    pub cells: Vec<Measured>,
}

/// An implementation with the version of what it tests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VersionedImplementation {
    /// Which.
    #[serde(flatten)]
    pub implementation: Implementation,
    /// Of the crate or library, if it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

impl Record {
    /// Reads a document.
    ///
    /// # Errors
    ///
    /// A sentence that says why it is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        reading::parse(text, FORMAT, SCHEMA)
    }

    /// "2026-01-02-some-cpu-2cpus.json": the file of a dated record.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}.json", self.head.environment.record_name())
    }
}
