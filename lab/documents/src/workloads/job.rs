//! What a worker process is told, and what it says in the end.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use spinpark_lockbench::locks::adapters::Adapter;
use spinpark_lockbench::locks::primitives::MakeMutex;
use thiserror::Error;

/// The command's hidden subcommand that is a worker.
pub const SUBCOMMAND: &str = "__workload-worker";

/// What a worker is told: one argument, in JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub workload: String,
    /// What its configuration does; the workload knows.
    #[serde(default)]
    pub parameters: serde_json::Value,
    pub tasks: usize,
    /// Length of the counted phase, in milliseconds, where a workload has one.
    pub millis: u64,
    /// Whose locks, if it is to use any.
    #[serde(default)]
    pub adapter: Option<String>,
    /// An empty directory of its own, if it writes files.
    #[serde(default)]
    pub directory: Option<PathBuf>,
    /// Decides whatever is random. The same for all configurations in one round.
    #[serde(default)]
    pub seed: u64,
}

/// A request that can be carried out.
#[derive(Debug, Clone)]
pub struct Job {
    pub tasks: usize,
    pub duration: Duration,
    /// Decides whatever is random.
    pub seed: u64,
    /// What the configuration does.
    parameters: serde_json::Value,
    /// Whose locks, if the configuration has some.
    pub adapter: Option<Adapter>,
    directory: Option<PathBuf>,
}

impl Job {
    /// What `request` asks for, with the locks of `adapter`.
    pub(crate) fn new(request: Request, adapter: Option<Adapter>) -> Self {
        Self {
            tasks: request.tasks,
            duration: Duration::from_millis(request.millis),
            seed: request.seed,
            parameters: request.parameters,
            adapter,
            directory: request.directory,
        }
    }

    /// The parameters in the workload's own form.
    pub fn parameters<T: DeserializeOwned>(&self) -> Result<T, JobError> {
        Ok(T::deserialize(&self.parameters)?)
    }

    /// What makes mutexes of the configuration's adapter; none if the configuration has no locks.
    pub fn mutex(&self) -> Result<Option<MakeMutex>, JobError> {
        let Some(adapter) = self.adapter else { return Ok(None) };
        let make = adapter.any_mutex.ok_or_else(|| {
            JobError::Refused(format!("the locks of `{}` have no mutex that workloads can use", adapter.name))
        });
        make.map(Some)
    }

    /// The directory to write in.
    pub fn directory(&self) -> Result<&Path, JobError> {
        self.directory.as_deref().ok_or_else(|| JobError::Refused(String::from("there is no directory")))
    }
}

/// Why a worker has nothing to report.
#[derive(Debug, Error)]
pub enum JobError {
    #[error("the worker's request cannot be read: {0}")]
    Request(#[from] serde_json::Error),
    /// It cannot be done here.
    #[error("{0}")]
    Refused(String),
    /// A system call failed.
    #[error("{what}: {error}")]
    Failed { what: String, error: io::Error },
    /// The result is not what it must be.
    #[error("wrong result: {0}")]
    Mismatch(String),
}

impl JobError {
    /// `what` failed with `error`; for `map_err`.
    pub fn failed<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        move |error| Self::Failed { what: what.into(), error: error.into() }
    }
}

/// Checks a result: `wrong` says what is the matter unless `is_right`.
pub fn expect(is_right: bool, wrong: impl FnOnce() -> String) -> Result<(), JobError> {
    if is_right { Ok(()) } else { Err(JobError::Mismatch(wrong())) }
}

/// What a worker process prints, as one line of JSON.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Operations of all tasks in the counted phase.
    pub operations: u64,
    /// Length of the counted phase, in seconds.
    pub elapsed_s: f64,
    /// User time of all tasks meanwhile, in seconds.
    pub user_s: f64,
    /// System time of all tasks meanwhile, in seconds.
    pub system_s: f64,
    /// Times that a task gave up its CPU meanwhile.
    pub voluntary_switches: u64,
    /// Times that a CPU was taken from a task meanwhile.
    pub involuntary_switches: u64,
    /// How evenly tasks were served, where several do the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
    /// Numbers of this workload only.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub columns: BTreeMap<String, f64>,
    /// Shares of the time of all tasks, by what they did.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub breakdown: BTreeMap<String, f64>,
}

/// Operations of the tasks of one run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Of the task that did least.
    pub least: u64,
    /// Of the task that did most.
    pub most: u64,
    /// Jain's index: 1, all did the same; 1/n, one did everything.
    pub jain: f64,
}

impl Spread {
    /// The spread over tasks that did `shares`; none for fewer than two.
    pub fn of(shares: &[u64]) -> Option<Self> {
        let [_, _, ..] = shares else { return None };
        let (least, most) = (shares.iter().min()?, shares.iter().max()?);
        Some(Self { least: *least, most: *most, jain: spinpark_lockbench::locks::workloads::jain(shares) })
    }
}

impl Report {
    /// Reads the last line of a worker's output.
    pub fn parse(output: &str) -> serde_json::Result<Self> {
        serde_json::from_str(output.trim_end().lines().last().unwrap_or_default())
    }
}

/// The number of a run that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// Operations per second, with their name: more is better.
    PerSecond(&'static str),
    /// Operations per minute, with their name: more is better.
    PerMinute(&'static str),
    /// The time that a fixed amount of work takes, in seconds: less is better.
    Elapsed,
}

impl Figure {
    /// The figure of a run; none if it says nothing. A run in which nothing happened has a rate, which is 0.
    pub fn of(self, report: &Report) -> Option<f64> {
        let per_second = report.operations as f64 / report.elapsed_s;
        let value = match self {
            Self::PerSecond(_) => per_second,
            Self::PerMinute(_) => per_second * 60.0,
            Self::Elapsed => report.elapsed_s,
        };
        let least = if self.more_is_better() { 0.0 } else { f64::MIN_POSITIVE };
        (value.is_finite() && value >= least).then_some(value)
    }

    /// The header of its column: `ops/s`.
    pub fn header(self) -> String {
        match self {
            Self::PerSecond(what) => format!("{what}/s"),
            Self::PerMinute(what) => format!("{what}/min"),
            Self::Elapsed => String::from("elapsed"),
        }
    }

    /// Whether more of it is better.
    pub fn more_is_better(self) -> bool {
        !matches!(self, Self::Elapsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_survives_the_pipe() {
        let columns = BTreeMap::from([(String::from("rounds"), 2.5)]);
        let report = Report { operations: 3, spread: Spread::of(&[1, 2]), columns, ..Report::default() };
        let line = serde_json::to_string(&report).unwrap();
        assert_eq!(Report::parse(&format!("noise\n{line}\n")).unwrap(), report);
        assert!(Report::parse("").is_err());
    }

    #[test]
    fn spread_needs_two() {
        assert_eq!(Spread::of(&[5]), None);
        let spread = Spread::of(&[0, 4]).unwrap();
        assert_eq!((spread.least, spread.most, spread.jain), (0, 4, 0.5));
    }

    #[test]
    fn figures_of_a_run() {
        let report = Report { operations: 10, elapsed_s: 2.0, ..Report::default() };
        assert_eq!(Figure::PerSecond("ops").of(&report), Some(5.0));
        assert_eq!(Figure::PerMinute("jobs").of(&report), Some(300.0));
        assert_eq!(Figure::Elapsed.of(&report), Some(2.0));
        assert_eq!(Figure::PerSecond("ops").of(&Report::default()), None);
        assert_eq!(Figure::PerSecond("ops").of(&Report { operations: 0, ..report.clone() }), Some(0.0));
        assert_eq!(Figure::Elapsed.of(&Report::default()), None);
        assert_eq!(Figure::PerMinute("jobs").header(), "jobs/min");
    }
}
