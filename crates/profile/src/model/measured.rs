//! What an experiment has measured of locks.

use serde::{Deserialize, Serialize};
use spinpark_measure::rounds::whatif::Verdict;

/// What `spinpark whatif` has measured of the locks of one class ([`Lock::class`](super::Lock::class)).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The class.
    pub name: String,
    /// What it is, as [`Lock::noun`](super::Lock::noun).
    pub noun: String,
    /// Whether its sections were delayed, and not something beside them.
    pub is_of_sections: bool,
    /// What may be said.
    pub verdict: Verdict,
    /// The part of the time that sections twice as long cost: the median.
    pub cost: Option<f64>,
    /// The answer, in sentences.
    pub answer: String,
    /// The command that was measured.
    pub command: Vec<String>,
}
