//! A run on the machine at hand: the bench's own worker, bound to its CPUs.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::thread::{CpuSet, sched_setaffinity};
use spinpark_lockbench::locks::load::Placement;
use spinpark_lockbench::locks::worker::Request;
use spinpark_lockbench::locks::workers::SUBCOMMAND;
use spinpark_lockbench::locks::workloads::Report;
use spinpark_measure::configuration::prepare;
use spinpark_measure::failure::RunError;
use spinpark_measure::process::Interrupt;
use spinpark_measure::worker::Worker;

use super::Case;

/// A worker that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(600);

/// Starts workers.
#[derive(Debug)]
pub struct Native<'a> {
    /// This command.
    pub own: PathBuf,
    /// The CPUs that may be used; a case takes the last ones, as the first often serves more interrupts.
    pub cpus: Vec<usize>,
    /// Length of a counted phase, in milliseconds.
    pub millis: u64,
    /// Set by Ctrl-C.
    pub interrupt: &'a Interrupt,
}

impl Native<'_> {
    /// Operations per second.
    ///
    /// # Errors
    ///
    /// If the run yields no report.
    pub fn run(&self, case: &Case) -> Result<f64, RunError> {
        let worker = Worker { cell: case.words(), configuration: case.lock.clone() };
        let output = worker.run(&mut self.command(case), PATIENCE, self.interrupt)?;
        let report = worker.report(&output, Report::parse)?;
        Ok(report.operations as f64 / report.elapsed_s)
    }

    fn command(&self, case: &Case) -> Command {
        let request = Request {
            adapter: case.family.clone(),
            load: case.load.clone(),
            threads: case.threads,
            cpus: Placement::Any,
            millis: self.millis,
            count_futex_calls: false,
            untimed: true,
        };
        let mut command = Command::new(&self.own);
        // Cannot fail: a request has only strings and numbers in it.
        command.arg(SUBCOMMAND).arg(serde_json::to_string(&request).unwrap_or_default());
        command.stdin(Stdio::null()).env_remove("LD_PRELOAD");
        prepare(&mut command, 0);
        let mut set = CpuSet::new();
        self.cpus.iter().rev().take(case.cpus).for_each(|&cpu| set.set(cpu));
        let bind = move || sched_setaffinity(None, &set).map_err(io::Error::from);
        // SAFETY: the closure runs between fork and exec and only makes a system call: no allocation, no
        // lock.
        unsafe { command.pre_exec(bind) };
        command
    }
}
