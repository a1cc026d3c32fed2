//! Starts worker processes, one per run: in the environment of the configuration's locks, in a private
//! directory.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use spinpark_lockbench::locks::workers::set_locks;
use spinpark_measure::process::Interrupt;
use spinpark_measure::rounds::cells::Plan;
use spinpark_measure::rounds::configuration::prepare;
use spinpark_measure::rounds::failure::RunError;
use spinpark_measure::rounds::worker::Worker;

use super::directory::{Place, PrivateDirectory};
use super::experiment::{Cell, Configuration};
use super::job::{Report, Request, SUBCOMMAND};

/// A worker that takes longer hangs. Generous, since the machine may be busy or suspended.
const PATIENCE: Duration = Duration::from_secs(1800);

/// Makes the runs of one workload.
#[derive(Debug)]
pub struct Runner<'a> {
    pub workload: &'static str,
    pub own: PathBuf,
    /// The drop-in, if a configuration needs it.
    pub preload: Option<PathBuf>,
    /// The user's own `LD_PRELOAD`.
    pub inherited: OsString,
    /// Length of a counted phase, in milliseconds.
    pub millis: u64,
    /// Where private directories are made, if the workload writes files.
    pub place: Option<Place>,
    /// Decides whatever is random.
    pub seed: u64,
    /// Set by Ctrl-C.
    pub interrupt: &'a Interrupt,
}

impl Runner<'_> {
    /// Makes a run. With `drop_in_report`, the drop-in says there which processes it was loaded into.
    pub fn run(&self, cell: &Cell, plan: &Plan, drop_in_report: Option<&Path>) -> Result<Report, RunError> {
        let worker =
            Worker { cell: format!("{} {cell}", self.workload), configuration: plan.configuration.clone() };
        let Some(configuration) = cell.configuration(&plan.configuration) else {
            return Err(worker.fails(String::from("unknown"), ""));
        };
        let directory = self.place.as_ref().map(Place::create).transpose();
        let directory = directory
            .map_err(|error| worker.fails(format!("cannot make a private directory: {error}"), ""))?;
        let mut command = self.command(cell, configuration, plan, directory.as_ref());
        if let Some(report) = drop_in_report {
            command.env("SPINPARK_REPORT", report);
        }
        let output = worker.run(&mut command, PATIENCE, self.interrupt);
        // Whatever happened, the worker and its children are gone by now.
        let removed = directory.map_or(Ok(()), PrivateDirectory::remove);
        let output = output?;
        removed.map_err(|error| worker.fails(error.to_string(), ""))?;
        worker.report(&output, Report::parse)
    }

    fn command(
        &self,
        cell: &Cell,
        configuration: &Configuration,
        plan: &Plan,
        directory: Option<&PrivateDirectory>,
    ) -> Command {
        let request = Request {
            workload: self.workload.to_owned(),
            parameters: configuration.parameters.clone(),
            tasks: cell.tasks,
            millis: self.millis,
            adapter: configuration.lock.as_ref().map(|lock| lock.adapter.clone()),
            directory: directory.map(|directory| directory.path().to_path_buf()),
            seed: self.seed.wrapping_add(plan.round as u64),
        };
        let mut command = Command::new(&self.own);
        // Cannot fail: a request has only strings and numbers in it.
        command.arg(SUBCOMMAND).arg(serde_json::to_string(&request).unwrap_or_default()).stdin(Stdio::null());
        prepare(&mut command, plan.padding);
        if let Some(lock) = &configuration.lock {
            set_locks(&mut command, lock, self.preload.as_deref(), None, &self.inherited);
        }
        command
    }
}
