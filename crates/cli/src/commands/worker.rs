//! `spinpark __bench-worker`: one shape, in a process of its own.
//!
//! This process must not create a thread before the shape does: one shape measures what a single-threaded process pays.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use spinpark_bench::shapes::{self, Report};

use crate::cli::Worker;

/// Runs the shape and prints its report.
pub(crate) fn run(worker: &Worker) -> anyhow::Result<ExitCode> {
    let shape =
        shapes::by_name(&worker.shape).with_context(|| format!("there is no shape `{}`", worker.shape))?;
    let outcome = shape.run(worker.threads, Duration::from_millis(worker.millis))?;
    println!("{}", serde_json::to_string(&Report::from(&outcome))?);
    Ok(ExitCode::SUCCESS)
}
