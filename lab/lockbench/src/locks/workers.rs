//! The executor in earnest: starts a worker process for a cell in the environment of an implementation.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use spinpark_measure::process::Interrupt;
use spinpark_measure::process::executable::Library;
use spinpark_measure::process::executable::preload_list::{prepend, without_drop_in};
use spinpark_measure::rounds::configuration::prepare;
use spinpark_measure::rounds::failure::RunError;
use spinpark_measure::rounds::worker::Worker;

use super::definitions::Implementation;
use super::experiment::{Cell, CellExecutor, Plan};
use super::load::Placement;
use super::peers::Peers;
use super::recording::Recording;
use super::worker::Request;
use super::workloads::Report;
use super::workloads::affinity::starting_on_one_cpu;

/// The command's hidden subcommand that is a worker.
pub const SUBCOMMAND: &str = "__bench-worker";

/// A worker that takes longer hangs: its lock lost a wake-up. Generous, since the machine may be busy or
/// suspended.
const PATIENCE: Duration = Duration::from_secs(600);

/// Starts workers.
#[derive(Debug)]
pub struct Workers<'a> {
    /// This command.
    pub own: PathBuf,
    /// The worker for peers that are not Rust.
    pub peers: Peers,
    /// The drop-in, if an implementation needs it.
    pub preload: Option<PathBuf>,
    /// The recorder of profiles, if an implementation needs it.
    pub recorder: Option<PathBuf>,
    /// The user's own `LD_PRELOAD`.
    pub inherited: OsString,
    /// All implementations, by name.
    pub implementations: BTreeMap<String, Implementation>,
    /// Length of a counted phase, in milliseconds, if the workload does not need a longer one.
    pub millis: u64,
    /// Whether waits are left untimed: a run then takes half as long.
    pub untimed: bool,
    /// Set by Ctrl-C.
    pub interrupt: &'a Interrupt,
}

impl CellExecutor for Workers<'_> {
    fn execute(&mut self, cell: &Cell, plan: &Plan) -> Result<Report, RunError> {
        self.run(cell, &plan.configuration, plan.padding, false, None)
    }
}

impl Workers<'_> {
    /// Makes a run. With `drop_in_report`, the drop-in says there which processes it was loaded into. What is
    /// recorded goes with the run.
    ///
    /// # Errors
    ///
    /// If the run yields no report, or no recording where there must be one.
    pub fn run(
        &self,
        cell: &Cell,
        implementation: &str,
        padding: usize,
        count_futex_calls: bool,
        drop_in_report: Option<&Path>,
    ) -> Result<Report, RunError> {
        let worker = Worker {
            cell: format!("{}, {} threads", cell.workload, cell.threads),
            configuration: implementation.to_owned(),
        };
        let Some(known) = self.implementations.get(implementation) else {
            return Err(worker.fails(String::from("unknown"), ""));
        };
        let mut command = self.command(cell, known, padding, count_futex_calls);
        if let Some(report) = drop_in_report {
            command.env("SPINPARK_REPORT", report);
        }
        let recording = known.profile.map(|detail| Recording::of(&mut command, detail)).transpose();
        let recording = recording.map_err(|what| worker.fails(what, ""))?;
        let (drop_in, recorder) = (self.preload.as_deref(), self.recorder.as_deref());
        set_locks(&mut command, known, drop_in, recorder, &self.inherited);
        let mut start = || worker.run(&mut command, PATIENCE, self.interrupt);
        let output = if cell.cpus == Placement::One { starting_on_one_cpu(start) } else { start() }?;
        recording.map_or(Ok(()), Recording::end).map_err(|what| worker.fails(what, &output))?;
        worker.report(&output, Report::parse)
    }

    fn command(
        &self,
        cell: &Cell,
        implementation: &Implementation,
        padding: usize,
        count_futex_calls: bool,
    ) -> Command {
        let request = Request {
            adapter: implementation.adapter.clone(),
            load: cell.load.clone(),
            threads: cell.threads,
            cpus: cell.cpus,
            millis: self.millis.max(cell.at_least_millis),
            count_futex_calls,
            untimed: self.untimed,
        };
        let mut command = match &self.peers.path {
            Some(peers) if self.peers.listing.adapters.contains_key(&implementation.adapter) => {
                Command::new(peers)
            }
            _ => {
                let mut command = Command::new(&self.own);
                command.arg(SUBCOMMAND);
                command
            }
        };
        // Cannot fail: a request has only strings and numbers in it.
        command.arg(serde_json::to_string(&request).unwrap_or_default()).stdin(Stdio::null());
        prepare(&mut command, padding);
        command
    }
}

/// Sets the environment in which a worker has the locks of `implementation`: the recorder is in front of
/// whatever they are. `inherited` is the user's own `LD_PRELOAD`.
pub fn set_locks(
    command: &mut Command,
    implementation: &Implementation,
    drop_in: Option<&Path>,
    recorder: Option<&Path>,
    inherited: &OsStr,
) {
    let mut list = without_drop_in(inherited);
    let ours =
        [implementation.file(Library::DropIn, drop_in), implementation.file(Library::Profiler, recorder)];
    for library in ours.into_iter().flatten() {
        list = prepend(library, &list);
    }
    match list.is_empty() {
        true => command.env_remove("LD_PRELOAD"),
        false => command.env("LD_PRELOAD", list),
    };
    command.envs(&implementation.env);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locks::definitions::Definitions;

    #[test]
    fn what_is_in_front_of_what() {
        let definitions = Definitions::built_in().unwrap();
        let list = |implementation: &str, inherited: &str| {
            let mut command = Command::new("true");
            let (drop_in, recorder) = (Path::new("/d.so"), Path::new("/r.so"));
            let implementation = definitions.implementation(implementation).unwrap();
            set_locks(&mut command, implementation, Some(drop_in), Some(recorder), OsStr::new(inherited));
            let value = command.get_envs().find(|(key, _)| *key == "LD_PRELOAD").unwrap().1;
            value.map(|list| list.to_str().unwrap().to_owned())
        };
        assert_eq!(list("glibc", ""), None);
        assert_eq!(list("glibc", "/u.so").as_deref(), Some("/u.so"));
        assert_eq!(list("drop-in", "/u.so").as_deref(), Some("/d.so:/u.so"));
        assert_eq!(list("glibc-recorded-off", "").as_deref(), Some("/r.so"));
        assert_eq!(list("drop-in-recorded-full", "/u.so").as_deref(), Some("/r.so:/d.so:/u.so"));
    }

    #[test]
    fn an_implementation_with_a_drop_in_of_its_own() {
        let mut implementation = Definitions::built_in().unwrap().implementation("drop-in").unwrap().clone();
        implementation.env.insert("SPINPARK_PRELOAD".into(), "/own.so".into());
        let mut command = Command::new("true");
        set_locks(&mut command, &implementation, Some(Path::new("/d.so")), None, OsStr::new(""));
        let list = command.get_envs().find(|(key, _)| *key == "LD_PRELOAD").unwrap().1;
        assert_eq!(list, Some(OsStr::new("/own.so")));
    }
}
