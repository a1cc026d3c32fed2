//! All data of a workload as one JSON document.

use serde::{Deserialize, Serialize};
use spinpark_measure::environment::Environment;
use spinpark_measure::machine::Noise;
use spinpark_measure::report::reading;
use spinpark_measure::warnings::Warning;

use super::experiment::Measured;
use super::result::CellResult;

/// The version of the document's structure. It grows when a field changes its meaning or goes.
pub const SCHEMA: u32 = 2;

/// Keys of schema 1 with another name.
const RENAMED: reading::Renamed =
    &[("arm", "configuration"), ("arms", "configurations"), ("side", "role"), ("family", "adapter")];

/// What the document is called in its field `format`.
pub const FORMAT: &str = "spinpark bench workload";

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
}

/// What is enough to say everything again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// [`FORMAT`].
    pub format: String,
    /// [`SCHEMA`].
    pub schema: u32,
    /// "complete", "interrupted" or "failed".
    pub end: String,
    /// The command line.
    pub command: String,
    /// The workload's name.
    pub workload: String,
    /// What is compared: "ops/s".
    pub figure: String,
    /// Rounds that were asked for.
    pub rounds: usize,
    /// Length of a counted phase, in milliseconds, where there is one.
    pub millis: u64,
    /// Decides the order of runs, the padding of the environment, whatever is random in runs, and the intervals.
    pub seed: u64,
    /// The file system that was written to, if files were written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_system: Option<String>,
    /// Where and when.
    pub environment: Environment,
    /// Every run.
    pub cells: Vec<Measured>,
}

impl Record {
    /// Reads a document; locks have the names of today.
    ///
    /// # Errors
    ///
    /// A sentence that says why it is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut record: Self = reading::parse(text, FORMAT, SCHEMA, RENAMED)?;
        record.cells.iter_mut().for_each(Measured::use_names_of_today);
        Ok(record)
    }
}
