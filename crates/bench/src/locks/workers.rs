//! The executor in earnest: starts a worker process for a cell in the environment of a target.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::definitions::Target;
use super::experiment::{Cell, CellExecutor, Plan};
use super::peers::Peers;
use super::shapes::Report;
use super::worker::Request;
use crate::arm::{prepare, prepend, without_drop_in};
use crate::failure::{RunError, Tail, in_words};
use crate::process::{self, Interrupt, ProcessError};

/// The command's hidden subcommand that is a worker.
pub const SUBCOMMAND: &str = "__bench-worker";

/// A worker that takes longer hangs: its lock lost a wake-up. Generous, since the machine may be busy or suspended.
const PATIENCE: Duration = Duration::from_secs(600);

/// Starts workers.
#[derive(Debug)]
pub struct Workers<'a> {
    /// This command.
    pub own: PathBuf,
    /// The worker for peers that are not Rust.
    pub peers: Peers,
    /// The drop-in, if a target needs it.
    pub preload: Option<PathBuf>,
    /// The user's own `LD_PRELOAD`.
    pub inherited: OsString,
    /// All targets, by name.
    pub targets: BTreeMap<String, Target>,
    /// Length of a counted phase, in milliseconds, if the shape does not need a longer one.
    pub millis: u64,
    /// Set by Ctrl-C.
    pub interrupt: &'a Interrupt,
}

impl CellExecutor for Workers<'_> {
    fn execute(&mut self, cell: &Cell, plan: &Plan) -> Result<Report, RunError> {
        self.run(cell, &plan.target, plan.padding, false, None)
    }
}

impl Workers<'_> {
    /// Makes a run. With `drop_in_report`, the drop-in says there which processes it was loaded into.
    ///
    /// # Errors
    ///
    /// If the run yields no report.
    pub fn run(
        &self,
        cell: &Cell,
        target: &str,
        padding: usize,
        count_futex_calls: bool,
        drop_in_report: Option<&Path>,
    ) -> Result<Report, RunError> {
        let fail = |what: String, output: &str| RunError::Worker {
            cell: format!("{}, {} threads", cell.shape, cell.threads),
            target: target.to_owned(),
            what,
            tail: Tail::of(output),
        };
        let Some(known) = self.targets.get(target) else { return Err(fail(String::from("unknown"), "")) };
        let mut command = self.command(cell, known, padding, count_futex_calls);
        if let Some(report) = drop_in_report {
            command.env("SPINPARK_REPORT", report);
        }
        let finished = match process::run(&mut command, Some(PATIENCE), self.interrupt) {
            Ok(finished) => finished,
            Err(ProcessError::Interrupted) => return Err(RunError::Interrupted),
            Err(ProcessError::TimedOut { after, output }) => {
                let what =
                    format!("the worker hangs: it still ran after {} s and was ended", after.as_secs());
                return Err(fail(what, &output));
            }
            Err(error) => return Err(fail(error.to_string(), "")),
        };
        if !finished.status.success() {
            return Err(fail(format!("the worker {}", in_words(finished.status)), &finished.output));
        }
        Report::parse(&finished.output)
            .map_err(|error| fail(format!("the worker's report cannot be read: {error}"), &finished.output))
    }

    fn command(&self, cell: &Cell, target: &Target, padding: usize, count_futex_calls: bool) -> Command {
        let request = Request {
            family: target.family.clone(),
            load: cell.load.clone(),
            threads: cell.threads,
            millis: self.millis.max(cell.at_least_millis),
            count_futex_calls,
            untimed: false,
        };
        let mut command = match &self.peers.path {
            Some(peers) if self.peers.listing.families.contains_key(&target.family) => Command::new(peers),
            _ => {
                let mut command = Command::new(&self.own);
                command.arg(SUBCOMMAND);
                command
            }
        };
        // Cannot fail: a request has only strings and numbers in it.
        command.arg(serde_json::to_string(&request).unwrap_or_default()).stdin(Stdio::null());
        prepare(&mut command, padding);
        set_locks(&mut command, target, self.preload.as_deref(), &self.inherited);
        command
    }
}

/// Sets the environment in which a worker has the locks of `target`. `inherited` is the user's own `LD_PRELOAD`.
pub(crate) fn set_locks(command: &mut Command, target: &Target, preload: Option<&Path>, inherited: &OsStr) {
    let inherited = without_drop_in(inherited);
    match preload {
        Some(preload) if target.preload => command.env("LD_PRELOAD", prepend(preload, &inherited)),
        _ if inherited.is_empty() => command.env_remove("LD_PRELOAD"),
        _ => command.env("LD_PRELOAD", &inherited),
    };
    command.envs(&target.env);
}
