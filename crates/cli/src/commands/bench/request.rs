//! The request: every error in it is found here, before anything runs.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context;
use spinpark_documents::workloads::resources::Requirements;
use spinpark_lockbench::locks::definitions::{Definitions, Role};
use spinpark_lockbench::locks::experiment::Measured;
use spinpark_lockbench::locks::peers::Peers;
use spinpark_lockbench::locks::selection::{self, Selected, select};
use spinpark_lockbench::locks::workers::Workers;
use spinpark_lockbench::locks::workloads::allowed_cpus;
use spinpark_measure::executable::{DropIn, Executable, Library};
use spinpark_measure::process::Interrupt;
use spinpark_measure::report::json::Output;
use spinpark_measure::rounds::Cell as _;

use super::output::Destinations;
use crate::cli::{Locks, PresetChoice, millis};
use crate::directory::create;
use crate::libraries;
use crate::say::Say;

/// The numbers of threads of `--quick`.
const QUICK_THREADS: [usize; 4] = [1, 2, 10, 64];

/// A request that can be carried out.
pub(crate) struct Request {
    pub(super) definitions: Definitions,
    pub(super) selected: Selected,
    pub(super) peers: Peers,
    pub(super) rounds: usize,
    pub(super) millis: u64,
    pub(super) is_bounds: bool,
    /// The command line, as a shell would take it.
    pub(crate) command: String,
    pub(super) say: Say,
    /// Deviations from the request.
    pub(super) notes: Vec<String>,
    own: PathBuf,
    drop_in: Option<DropIn>,
    recorder: Option<DropIn>,
}

/// The built-in definitions with those of a user's file, and the names of that file's workloads.
pub(super) fn definitions(file: Option<&Path>) -> anyhow::Result<(Definitions, Vec<String>)> {
    let mut definitions = Definitions::built_in()?;
    let Some(file) = file else { return Ok((definitions, Vec::new())) };
    let more = Definitions::read(file)?;
    let workloads = more.workloads.iter().map(|workload| workload.name.clone()).collect();
    definitions.add(more);
    definitions.check(&file.display().to_string())?;
    Ok((definitions, workloads))
}

impl Request {
    /// Checks it all.
    pub(crate) fn new(locks: &Locks, preset: PresetChoice) -> anyhow::Result<Self> {
        let (mut definitions, file_workloads) = definitions(locks.definition.as_deref())?;
        if locks.bounds {
            definitions.keep_bounds_of(preset.name()).map_err(anyhow::Error::msg)?;
        }
        let own = env::current_exe().context("cannot find out where this command itself is")?;
        let peers = Peers::find(&own);
        let wanted = wanted(locks, file_workloads);
        let of_preset = definitions.preset(preset.name()).map_err(anyhow::Error::msg)?;
        let selected =
            select(&definitions, of_preset, &wanted, &peers, allowed_cpus()).map_err(anyhow::Error::msg)?;
        needs(&selected).check(None)?;
        let find = |library| -> anyhow::Result<DropIn> {
            let found = libraries::find(library)?;
            found.check_machine(Executable::find(own.as_os_str())?.machine)?;
            Ok(found)
        };
        let is_needed = |by: fn(&_) -> bool| selected.implementations.iter().any(by);
        let drop_in =
            is_needed(|implementation| implementation.preload).then(|| find(Library::DropIn)).transpose()?;
        let recorder = is_needed(|implementation| implementation.profile.is_some())
            .then(|| find(Library::Profiler))
            .transpose()?;
        let default_millis = match preset {
            _ if locks.quick => 40,
            PresetChoice::Pthread | PresetChoice::Profiler => 200,
            _ if locks.bounds => 200,
            _ => 100,
        };
        let default_rounds = match preset {
            _ if locks.quick => 6,
            PresetChoice::Locks => 7,
            _ => 15,
        };
        // The thread counts of `--quick` are not the user's choice.
        let notes = if locks.threads.is_empty() { Vec::new() } else { selected.notes.clone() };
        Ok(Self {
            notes,
            selected,
            peers,
            rounds: locks.rounds.unwrap_or(default_rounds),
            millis: locks.duration.map_or(default_millis, millis),
            is_bounds: locks.bounds,
            command: command(env::args_os().skip(1)),
            say: Say { on_stderr: locks.json.as_deref().is_some_and(Output::is_stdout) },
            own,
            drop_in,
            recorder,
            definitions,
        })
    }

    /// What starts the runs.
    pub(super) fn workers<'a>(&self, interrupt: &'a Interrupt) -> Workers<'a> {
        let named = self
            .selected
            .implementations
            .iter()
            .map(|implementation| (implementation.name.clone(), implementation.clone()));
        Workers {
            own: self.own.clone(),
            peers: self.peers.clone(),
            preload: self.drop_in.as_ref().map(|library| library.path.clone()),
            recorder: self.recorder.as_ref().map(|library| library.path.clone()),
            inherited: env::var_os("LD_PRELOAD").unwrap_or_default(),
            implementations: named.collect(),
            millis: self.millis,
            untimed: false,
            interrupt,
        }
    }

    /// What is measured, without runs.
    pub(super) fn cells(&self) -> Vec<Measured> {
        self.selected.cells.iter().cloned().map(Measured::new).collect()
    }

    /// How many runs there will be, with those that count futex calls.
    pub(crate) fn runs(&self) -> usize {
        self.cells().iter().map(|cell| self.runs_of(cell)).sum()
    }

    fn runs_of(&self, cell: &Measured) -> usize {
        cell.runs_per_round() * self.rounds + cell.cell.implementations.len()
    }

    /// About how long all of it takes, in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        // Warm-up and the counted phase, twice where waits are timed; the process itself.
        let of_cell = |cell: &Measured| {
            let phases = if cell.cell.load.has_waits() { 2.5 } else { 1.0 };
            let late = wake_ups_s(cell.cell.threads) * if phases > 1.0 { 2.0 } else { 1.0 };
            let run = self.millis.max(cell.cell.at_least_millis) as f64 / 1e3 * phases + 0.015 + late;
            run * self.runs_of(cell) as f64
        };
        self.cells().iter().map(of_cell).sum()
    }

    /// Opens everything that will be written.
    pub(super) fn destinations(&self, locks: &Locks) -> anyhow::Result<Destinations> {
        for (option, directory) in [("--plots", &locks.plots), ("--record", &locks.record)] {
            directory.as_ref().map_or(Ok(()), |directory| create(option, directory))?;
        }
        Ok(Destinations {
            json: locks.json.as_deref().map(Output::open).transpose()?,
            plots: locks.plots.clone(),
            record: locks.record.clone(),
        })
    }

    /// Implementations that no cell has, by the reason.
    pub(super) fn absent(&self) -> BTreeMap<String, String> {
        let mut by_reason = BTreeMap::<String, String>::new();
        for implementation in
            self.selected.implementations.iter().filter(|implementation| implementation.role == Role::Peer)
        {
            let is_here =
                self.selected.cells.iter().any(|cell| cell.implementations.contains(&implementation.name));
            let skipped = self.selected.cells.iter().flat_map(|cell| &cell.skipped);
            let why = skipped
                .filter(|skipped| skipped.implementation == implementation.name)
                .map(|skipped| &skipped.why)
                .next();
            if let Some(why) = why.filter(|_| !is_here) {
                let names = by_reason.entry(why.clone()).or_default();
                *names += if names.is_empty() { "" } else { ", " };
                *names += &implementation.name;
            }
        }
        by_reason
    }

    pub(super) fn is_debug_build(&self) -> bool {
        let libraries = [&self.drop_in, &self.recorder];
        cfg!(debug_assertions) || libraries.into_iter().flatten().any(DropIn::is_debug_build)
    }
}

/// How late the timing thread is after two wake-ups among `threads` threads, in seconds: one time slice for
/// each thread before it on its CPU.
pub(super) fn wake_ups_s(threads: usize) -> f64 {
    const TURN_S: f64 = 0.002;
    const MOST_S: f64 = 0.05;
    let before = threads as f64 / allowed_cpus() as f64 - 1.0;
    2.0 * (before.max(0.0) * TURN_S).min(MOST_S)
}

/// What the largest cell needs: its threads, all in one process.
fn needs(selected: &Selected) -> Requirements {
    let threads = selected.cells.iter().map(|cell| cell.threads).max().unwrap_or_default() as u64;
    Requirements { processes: threads, threads, ..Requirements::default() }
}

fn wanted(locks: &Locks, file_workloads: Vec<String>) -> selection::Request {
    let threads = match (&locks.threads[..], locks.quick) {
        ([], true) => QUICK_THREADS.to_vec(),
        (threads, _) => threads.to_vec(),
    };
    selection::Request {
        workloads: if locks.workloads.is_empty() { file_workloads } else { locks.workloads.clone() },
        implementations: locks.locks.clone(),
        threads,
        baseline: locks.baseline.clone(),
        bounds: locks.bounds,
    }
}

/// `spinpark bench …` with every argument that was given.
pub(crate) fn command(args: impl Iterator<Item = OsString>) -> String {
    let words = args.map(|arg| quoted(&arg.to_string_lossy()));
    std::iter::once(String::from("spinpark")).chain(words).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_=+,./:%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_can_be_pasted() {
        let args = ["bench", "locks", "--workload", "a b", "--locks", "drop-in+A=1", "", "it's"];
        let command = command(args.into_iter().map(OsString::from));
        assert_eq!(command, "spinpark bench locks --workload 'a b' --locks drop-in+A=1 '' 'it'\\''s'");
    }
}
