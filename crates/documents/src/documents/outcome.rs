//! What a run of a document gave.

use serde::Serialize;
use serde_json::Value;
use spinpark_lockbench::locks;
use spinpark_lockbench::report::document as of_locks;
use spinpark_measure::machine::Noise;
use spinpark_measure::warnings::Warning;

use crate::workloads::{self, Workload, document as of_workloads};

/// A run, with what it gave.
#[derive(Debug)]
pub struct Outcome {
    /// How tables call it.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// The command that does the same.
    pub command: String,
    /// What it gave.
    pub what: What,
    /// Why it ended early, if a run failed.
    pub failure: Option<String>,
    /// What makes it weak.
    pub warnings: Vec<Warning>,
}

/// What a run gave.
#[derive(Debug)]
pub enum What {
    /// A workload's results.
    Workload {
        /// Which.
        workload: &'static Workload,
        /// Every run.
        record: Box<of_workloads::Record>,
        /// What follows.
        results: Vec<workloads::result::CellResult>,
        /// What else the machine did.
        noise: Noise,
    },
    /// Locks, side by side.
    Locks {
        /// Every run.
        record: Box<of_locks::Record>,
        /// What follows.
        results: Vec<locks::result::CellResult>,
        /// What else the machine did.
        noise: Noise,
    },
    /// Nothing, and why.
    Nothing(String),
}

/// An outcome in the JSON.
#[derive(Debug, Serialize)]
pub struct Entry {
    name: String,
    command: String,
    /// Why there is no result.
    #[serde(skip_serializing_if = "Option::is_none")]
    obstacle: Option<String>,
    /// What went wrong, if a run failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
    /// The document that the command itself would have written.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
}

impl Outcome {
    /// Why there are no numbers, or fewer than were asked for.
    #[must_use]
    pub fn obstacle(&self) -> Option<String> {
        let failed = |end: &str| match (end, &self.failure) {
            ("complete", _) => None,
            ("interrupted", _) => Some(String::from("Interrupted: these are the rounds until then.")),
            (_, None) => Some(String::from("A run failed: these are the rounds before it.")),
            (_, Some(why)) => Some(format!("A run failed: these are the rounds before it.\n{why}")),
        };
        match &self.what {
            What::Nothing(why) => Some(why.clone()),
            What::Workload { record, .. } => failed(&record.head.end),
            What::Locks { record, .. } => failed(&record.head.end),
        }
    }

    /// For the JSON.
    #[must_use]
    pub fn entry(&self) -> Entry {
        let warnings = &self.warnings;
        let result = match &self.what {
            What::Nothing(_) => None,
            What::Workload { record, results, noise, .. } => {
                serde_json::to_value(of_workloads::Document { record, noise, warnings, results }).ok()
            }
            What::Locks { record, results, noise } => {
                let fronts = &locks::result::fronts(results);
                let (summaries, bounds) = (&[], &[]);
                let document =
                    of_locks::Document { record, noise, warnings, results, summaries, fronts, bounds };
                serde_json::to_value(document).ok()
            }
        };
        let (name, command) = (self.name.clone(), self.command.clone());
        Entry { name, command, obstacle: self.obstacle(), failure: self.failure.clone(), result }
    }
}
