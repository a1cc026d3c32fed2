//! All data of a workload as one JSON document.

use serde::{Deserialize, Serialize};
use spinpark_measure::machine::Noise;
use spinpark_measure::report::{Head, reading};
use spinpark_measure::warnings::Warning;

use super::experiment::Measured;
use super::result::CellResult;

/// The version of the document's structure. It grows when a field changes its meaning or goes.
pub const SCHEMA: u32 = 2;

/// What the document is called in its field `format`.
pub const FORMAT: &str = "spinpark bench workload";

#[derive(Debug, Serialize)]
pub struct Document<'a> {
    /// What was measured, and how.
    #[serde(flatten)]
    pub record: &'a Record,
    pub noise: &'a Noise,
    /// What makes the results weak.
    pub warnings: &'a [Warning],
    /// What follows from the runs.
    pub results: &'a [CellResult],
}

/// What is enough to say everything again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// Of [`FORMAT`] and [`SCHEMA`].
    #[serde(flatten)]
    pub head: Head,
    pub workload: String,
    /// What is compared: "ops/s".
    pub figure: String,
    /// The file system that was written to, if files were written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_system: Option<String>,
    pub cells: Vec<Measured>,
}

impl Record {
    /// Reads a document.
    pub fn parse(text: &str) -> Result<Self, String> {
        reading::parse(text, FORMAT, SCHEMA)
    }
}
