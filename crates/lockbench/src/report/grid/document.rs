//! All data of a grid as one JSON document, to be written and to be read again.

use serde::{Deserialize, Serialize};
use spinpark_measure::machine::Noise;
use spinpark_measure::report::{Head, reading};
use spinpark_measure::warnings::Warning;

use super::results::{CellResult, PlaneFront};
use crate::grid::bounds::BoundResult;
use crate::grid::calibration::Calibration;
use crate::grid::cells::GridCell;
use crate::grid::comparison::Context;
use crate::grid::definition::{Bound, Plane};
use crate::grid::summary::PlaneSummary;
use crate::report::locks::document::VersionedImplementation;

/// The version of the document's structure. It grows when a field changes its meaning or goes.
pub const SCHEMA: u32 = 2;

/// What the document is called in its field `format`.
pub const FORMAT: &str = "spinpark bench grid";

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
    /// What follows for planes: throughput against the best peer.
    pub summaries: &'a [PlaneSummary],
    /// CPU time an operation against the fastest peer of each cell, then against glibc.
    pub cpu_time: &'a [PlaneSummary],
    /// Throughput beside CPU time, by plane.
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
    /// The planes that were measured, with the values of their parameters.
    pub planes: Vec<Plane>,
    /// The bounds that were to be judged.
    #[serde(default)]
    pub bound_definitions: Vec<Bound>,
    /// How long an iteration takes: at the beginning of each round.
    pub calibrations: Vec<Calibration>,
    /// Every run.
    pub cells: Vec<GridCell>,
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

    /// "2026-01-02-some-cpu-2cpus-grid.json": the file of a dated record.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}-grid.json", self.head.environment.record_name())
    }

    /// What comparisons need.
    #[must_use]
    pub fn context(&self) -> Context<'_> {
        Context {
            implementations: self
                .implementations
                .iter()
                .map(|implementation| &implementation.implementation)
                .collect(),
            calibration: Calibration::middle(&self.calibrations),
            cpus: self.head.environment.cpus,
            seed: self.head.seed,
        }
    }
}
