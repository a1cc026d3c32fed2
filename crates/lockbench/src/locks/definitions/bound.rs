//! Bounds: what is to hold of measurements.

use serde::{Deserialize, Serialize};

/// Something that is to hold: a ratio of two implementations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bound {
    /// In words.
    pub what: String,
    /// The preset with which it is judged.
    #[serde(default = "preset_of_bounds")]
    pub preset: String,
    /// Which number.
    pub figure: Figure,
    /// In which workload.
    pub workload: String,
    /// At which numbers of threads, if not at the workload's.
    #[serde(default)]
    pub threads: Vec<usize>,
    /// Whether each number of threads is judged by itself.
    #[serde(default)]
    pub over: Over,
    /// Which implementations are judged.
    pub ours: Vec<String>,
    /// What they are divided by: the name of an implementation, or "best", the best peer that is present.
    pub against: String,
    /// The largest ratio that is fine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// The smallest ratio that is fine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
}

/// That of bounds which do not say.
fn preset_of_bounds() -> String {
    String::from("locks")
}

/// A number that a bound is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// Time per operation.
    Time,
    /// Operations per second.
    Throughput,
    /// CPU time per operation.
    Cpu,
    /// Context switches per operation.
    Switches,
    /// The longest wait of a run.
    LongestWait,
}

/// What a bound makes of several numbers of threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Over {
    /// Each is judged by itself.
    #[default]
    Each,
    /// The geometric mean is judged.
    GeometricMean,
}
