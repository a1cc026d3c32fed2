//! What the records of all benchmarks begin with.

use serde::{Deserialize, Serialize};

use crate::rounds::environment::Environment;

/// The request and the machine. In a document, its fields are on one level with those of the record.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Head {
    /// Which kind of document.
    pub format: String,
    /// The version of its structure.
    pub schema: u32,
    /// "complete", "interrupted" or "failed".
    pub end: String,
    /// The command line.
    pub command: String,
    /// Requested rounds.
    pub rounds: usize,
    /// Length of a counted phase, and of a timed one, in milliseconds; 0 if there is none.
    pub millis: u64,
    /// Decides the order of runs, the padding of the environment, what is random in runs, and the intervals.
    pub seed: u64,
    /// Where and when.
    pub environment: Environment,
}
