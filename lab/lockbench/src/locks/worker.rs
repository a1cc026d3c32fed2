//! The worker process: one load on one adapter's locks, once, and a second time to time waits.
//!
//! It must not create a thread before the workload does: one workload measures what a single-threaded process
//! pays.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::adapters::{Adapter, by_name};
use super::load::{Load, Placement};
use super::workloads::{Job, Mismatch, Report};

/// What a worker is told: one argument, in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Whose locks.
    pub adapter: String,
    /// What threads do.
    pub load: Load,
    /// How many threads.
    pub threads: usize,
    /// Where they run. To bind a worker to one CPU is up to the process that starts it.
    #[serde(default, skip_serializing_if = "Placement::is_any")]
    pub cpus: Placement,
    /// Length of the counted phase, in milliseconds.
    pub millis: u64,
    /// Whether futex calls are counted; then nothing is timed.
    #[serde(default)]
    pub count_futex_calls: bool,
    /// Whether waits are left untimed, where only the number of operations is wanted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untimed: bool,
}

/// A request that cannot be carried out, or a result that is wrong.
#[derive(Debug, Error)]
pub enum WorkerError {
    /// Not a request.
    #[error("the worker's request cannot be read: {0}")]
    Request(#[from] serde_json::Error),
    /// Not here.
    #[error("this worker has no locks called `{0}`")]
    Adapter(String),
    /// It makes no sense.
    #[error("{0}")]
    Load(String),
    /// The lock under test does not work, or lacks what the load needs.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
}

/// Carries out a request on one of `adapters`.
///
/// # Errors
///
/// If that is not possible, or the result is wrong.
pub fn run(adapters: &[Adapter], request: &str) -> Result<Report, WorkerError> {
    let Request { adapter, load, threads, cpus, millis, count_futex_calls, untimed } =
        serde_json::from_str(request)?;
    load.check(threads).map_err(WorkerError::Load)?;
    let adapter = by_name(adapters, &adapter).ok_or(WorkerError::Adapter(adapter))?;
    let run = adapter.run(load.needs()).ok_or(Mismatch::Unfit)?;
    let duration = Duration::from_millis(millis);
    let mut job = Job { load, threads, cpus, duration, time_waits: false, count_futex_calls };
    let mut report = Report::from(&run(&job)?);
    if job.load.has_waits() && !count_futex_calls && !untimed {
        job.time_waits = true;
        report.waits = Report::from(&run(&job)?).waits;
    }
    Ok(report)
}
