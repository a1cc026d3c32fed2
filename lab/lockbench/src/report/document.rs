//! All data of a benchmark as one JSON document, to be written and to be read again.

use serde::{Deserialize, Serialize};
use spinpark_measure::report::{Head, reading};
use spinpark_measure::rounds::machine::Noise;
use spinpark_measure::rounds::warnings::Warning;

use crate::locks::bounds::BoundResult;
use crate::locks::comparison::Context;
use crate::locks::definitions::{Bound, Implementation};
use crate::locks::experiment::Measured;
use crate::locks::ideal::Calibration;
use crate::locks::planes::Plane;
use crate::locks::result::{CellResult, PlaneFront};
use crate::locks::summary::PlaneSummary;

/// The version of the document's structure. It grows when a field changes its meaning or goes.
pub const SCHEMA: u32 = 3;

/// What the document is called in its field `format`.
pub const FORMAT: &str = "spinpark bench";

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
    /// What follows from the runs, cell by cell.
    pub results: &'a [CellResult],
    /// What follows for planes: throughput ÷ the best peer's, then CPU time an operation ÷ the fastest peer's
    /// and ÷ glibc's.
    pub summaries: &'a [PlaneSummary],
    /// Throughput and CPU time.
    pub fronts: &'a [PlaneFront],
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
    /// The planes that were measured, with the values of their parameters; of single workloads, none.
    pub planes: Vec<Plane>,
    /// The bounds that were to be judged.
    pub bound_definitions: Vec<Bound>,
    /// How long an iteration takes: at the beginning of each round.
    pub calibrations: Vec<Calibration>,
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

    /// "2026-01-02-some-cpu-2cpus.json", of planes "…-grid.json": the file of a dated record.
    #[must_use]
    pub fn file_name(&self) -> String {
        let grid = if self.planes.is_empty() { "" } else { "-grid" };
        format!("{}{grid}.json", self.head.environment.record_name())
    }

    /// What comparisons need.
    #[must_use]
    pub fn context(&self) -> Context<'_> {
        Context {
            implementations: self.implementations.iter().map(|one| &one.implementation).collect(),
            calibration: Calibration::middle(&self.calibrations),
            cpus: self.head.environment.cpus,
            seed: self.head.seed,
        }
    }
}
