//! `spinpark __bench-worker` and `__workload-worker`: one workload on one adapter's locks, or one
//! configuration of a workload, in a process of its own; `__mail-server`: the server of `documents mail`.

use std::process::ExitCode;

use spinpark_documents::rwsem_2013::mail;
use spinpark_documents::worker as of_workload;
use spinpark_lockbench::locks::adapters::ADAPTERS;
use spinpark_lockbench::locks::worker;

use crate::cli::{MailServer, Worker, WorkloadWorker};
use spinpark_cli::say::Say;

/// Runs the workload and prints its report.
pub(crate) fn run(worker: &Worker) -> anyhow::Result<ExitCode> {
    let report = worker::run(&ADAPTERS, &worker.request)?;
    Say { on_stderr: false }.line(format_args!("{}", serde_json::to_string(&report)?));
    Ok(ExitCode::SUCCESS)
}

/// Runs a configuration of a workload and prints its report.
pub(crate) fn run_workload(worker: &WorkloadWorker) -> anyhow::Result<ExitCode> {
    let report = of_workload::run(&ADAPTERS, &worker.request)?;
    Say { on_stderr: false }.line(format_args!("{}", serde_json::to_string(&report)?));
    Ok(ExitCode::SUCCESS)
}

/// Serves mail until standard input ends.
pub(crate) fn serve_mail(server: &MailServer) -> anyhow::Result<ExitCode> {
    mail::server::serve(&server.directory, server.limit)?;
    Ok(ExitCode::SUCCESS)
}
