//! `spinpark __bench-worker`: one shape on one family's locks, in a process of its own.

use std::process::ExitCode;

use spinpark_bench::locks::families::FAMILIES;
use spinpark_bench::locks::worker;

use crate::cli::Worker;

/// Runs the shape and prints its report.
pub(crate) fn run(worker: &Worker) -> anyhow::Result<ExitCode> {
    let report = worker::run(&FAMILIES, &worker.request)?;
    println!("{}", serde_json::to_string(&report)?);
    Ok(ExitCode::SUCCESS)
}
