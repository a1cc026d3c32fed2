//! The request: every error in it is found here, before anything runs.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use spinpark_documents::workloads::resources::Requirements;
use spinpark_lockbench::locks::counters::obstacle;
use spinpark_lockbench::locks::definitions::{Bound, Definitions, Implementation, Role};
use spinpark_lockbench::locks::experiment::Measured;
use spinpark_lockbench::locks::figure::{Against, Figure};
use spinpark_lockbench::locks::implementations::{not_recorded, parse};
use spinpark_lockbench::locks::peers::Peers;
use spinpark_lockbench::locks::planes::{Axes, Kind, Plane, points};
use spinpark_lockbench::locks::selection::{self, once, plane_cells, select};
use spinpark_lockbench::locks::workers::Workers;
use spinpark_lockbench::locks::workloads::allowed_cpus;
use spinpark_lockbench::report::grid::Shown;
use spinpark_measure::process::Interrupt;
use spinpark_measure::process::executable::{DropIn, Executable, Library};
use spinpark_measure::rounds::cells::Cell as _;

use crate::cli::{Grid, GridShown, Locks, PresetChoice, millis};
use spinpark_cli::say::Say;
use spinpark_cli::{libraries, own};

/// The numbers of threads of `--quick`.
const QUICK_THREADS: [usize; 4] = [1, 2, 10, 64];

/// A request that can be carried out: workloads, or planes of them.
pub(crate) struct Request {
    /// The planes, with the values of their parameters; of workloads, none.
    pub(super) planes: Vec<Plane>,
    /// The first one is the baseline.
    pub(super) implementations: Vec<Implementation>,
    /// What is measured, without runs.
    pub(super) cells: Vec<Measured>,
    pub(super) peers: Peers,
    pub(super) rounds: usize,
    pub(super) millis: u64,
    /// The bounds to be judged.
    pub(super) bounds: Vec<Bound>,
    /// The command line, as a shell would take it.
    pub(crate) command: String,
    pub(super) say: Say,
    /// Deviations from the request.
    pub(super) notes: Vec<String>,
    /// Whether there is a run for each cell and implementation that counts futex calls.
    pub(super) counts_futex_calls: bool,
    untimed: bool,
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
    /// Checks what `bench locks` is asked for.
    pub(crate) fn new(locks: &Locks, preset: PresetChoice) -> anyhow::Result<Self> {
        let (definitions, file_workloads) = definitions(locks.definition.as_deref())?;
        let bounds = match locks.bounds {
            true => definitions.bounds_of(preset.name()).map_err(anyhow::Error::msg)?,
            false => Vec::new(),
        };
        let peers = Peers::find(&own::path()?);
        let wanted = wanted(locks, file_workloads, bounds.clone());
        let of_preset = definitions.preset(preset.name()).map_err(anyhow::Error::msg)?;
        let selected =
            select(&definitions, of_preset, &wanted, &peers, allowed_cpus()).map_err(anyhow::Error::msg)?;
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
        Self {
            bounds,
            // The numbers of --quick are ours, not the user's.
            notes: if locks.threads.is_empty() { Vec::new() } else { selected.notes },
            rounds: locks.rounds.unwrap_or(default_rounds),
            millis: locks.duration.map_or(default_millis, millis),
            say: Say::apart_from(&[&locks.json]),
            ..Self::of_cells(selected.implementations, selected.cells.into_iter().map(Measured::new), peers)?
        }
        .check()
    }

    /// Checks what `bench grid` is asked for.
    pub(super) fn of_grid(grid: &Grid) -> anyhow::Result<Self> {
        let definitions = Definitions::built_in()?;
        let peers = Peers::find(&own::path()?);
        let implementations = implementations(grid, &definitions).map_err(anyhow::Error::msg)?;
        check_shown(grid, &implementations, &definitions)?;
        let planes = planes(grid, &definitions).map_err(anyhow::Error::msg)?;
        let bounds = match grid.bounds {
            true => definitions.bounds_of("grid").map_err(anyhow::Error::msg)?,
            false => Vec::new(),
        };
        check_bounds(grid, &bounds, &planes)?;
        let mut all = Vec::new();
        for plane in &planes {
            let points =
                points(plane, &plane.axes).map_err(|what| anyhow!("plane `{}`: {what}", plane.name))?;
            all.extend(plane_cells(plane, points, &implementations, &peers, allowed_cpus()));
        }
        check_cells(&all, &implementations)?;
        let default_rounds = if grid.quick { 3 } else { 7 };
        Self {
            planes,
            bounds,
            rounds: grid.rounds.map_or(default_rounds, |rounds| rounds as usize),
            millis: grid.duration.map_or(if grid.quick { 30 } else { 50 }, millis),
            untimed: grid.no_waits,
            counts_futex_calls: obstacle().is_none(),
            say: Say::apart_from(&[&grid.json, &grid.shown.html, &grid.shown.csv]),
            ..Self::of_cells(implementations, all, peers)?
        }
        .check()
    }

    /// These cells, and what all requests have in common.
    fn of_cells(
        implementations: Vec<Implementation>,
        cells: impl IntoIterator<Item = Measured>,
        peers: Peers,
    ) -> anyhow::Result<Self> {
        let own = own::path()?;
        let find = |library| -> anyhow::Result<Option<DropIn>> {
            if !implementations.iter().any(|implementation| implementation.loads(library)) {
                return Ok(None);
            }
            let found = libraries::find(library)?;
            found.check_machine(Executable::find(own.as_os_str())?.machine)?;
            Ok(Some(found))
        };
        Ok(Self {
            planes: Vec::new(),
            cells: cells.into_iter().collect(),
            peers,
            rounds: 0,
            millis: 0,
            bounds: Vec::new(),
            command: own::command_line(),
            say: Say { on_stderr: false },
            notes: Vec::new(),
            counts_futex_calls: true,
            untimed: false,
            drop_in: find(Library::DropIn)?,
            recorder: find(Library::Profiler)?,
            own,
            implementations,
        })
    }

    /// The largest cell has all its threads in one process.
    fn check(self) -> anyhow::Result<Self> {
        let threads = self.cells.iter().map(|cell| cell.cell.threads).max().unwrap_or_default() as u64;
        Requirements { processes: threads, threads, ..Requirements::default() }.check(None)?;
        Ok(self)
    }

    /// What starts the runs.
    pub(super) fn workers<'a>(&self, interrupt: &'a Interrupt) -> Workers<'a> {
        let named = self.implementations.iter().map(|one| (one.name.clone(), one.clone()));
        Workers {
            own: self.own.clone(),
            peers: self.peers.clone(),
            preload: self.drop_in.as_ref().map(|library| library.path.clone()),
            recorder: self.recorder.as_ref().map(|library| library.path.clone()),
            inherited: env::var_os("LD_PRELOAD").unwrap_or_default(),
            implementations: named.collect(),
            millis: self.millis,
            untimed: self.untimed,
            interrupt,
        }
    }

    fn compared_runs_of(&self, cell: &Measured) -> usize {
        cell.runs_per_round() * self.rounds
    }

    fn counting_runs_of(&self, cell: &Measured) -> usize {
        if self.counts_futex_calls { cell.cell.implementations.len() } else { 0 }
    }

    /// How many runs are compared.
    pub(super) fn compared_runs(&self) -> usize {
        self.cells.iter().map(|cell| self.compared_runs_of(cell)).sum()
    }

    /// How many runs there will be, with those that count futex calls.
    pub(crate) fn runs(&self) -> usize {
        self.compared_runs() + self.cells.iter().map(|cell| self.counting_runs_of(cell)).sum::<usize>()
    }

    /// About how long all of it takes, in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        const PROCESS_S: f64 = 0.015;
        let of_cell = |cell: &Measured| {
            let has_waits = cell.cell.load.has_waits();
            let warm_up = if has_waits { 1.25 } else { 1.0 };
            let counted = self.millis.max(cell.cell.at_least_millis) as f64 / 1e3;
            let phase = counted * warm_up + wake_ups_s(cell.cell.threads);
            let phases = if has_waits && !self.untimed { 2.0 } else { 1.0 };
            (PROCESS_S + phase * phases) * self.compared_runs_of(cell) as f64
                + (PROCESS_S + phase) * self.counting_runs_of(cell) as f64
        };
        self.cells.iter().map(of_cell).sum()
    }

    /// Peers that no cell has, by the reason.
    pub(super) fn absent(&self) -> BTreeMap<&str, String> {
        let mut by_reason = BTreeMap::<&str, String>::new();
        for Implementation { name, .. } in self.implementations.iter().filter(|one| one.role == Role::Peer) {
            let is_here = self.cells.iter().any(|cell| cell.cell.implementations.contains(name));
            let mut skipped = self.cells.iter().flat_map(|cell| &cell.cell.skipped);
            let why = skipped.find(|skipped| skipped.implementation == *name).filter(|_| !is_here);
            if let Some(skipped) = why {
                let names = by_reason.entry(&skipped.why).or_default();
                *names += if names.is_empty() { "" } else { ", " };
                *names += name;
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
fn wake_ups_s(threads: usize) -> f64 {
    const TURN_S: f64 = 0.002;
    const MOST_S: f64 = 0.05;
    let before = threads as f64 / allowed_cpus() as f64 - 1.0;
    2.0 * (before.max(0.0) * TURN_S).min(MOST_S)
}

fn wanted(locks: &Locks, file_workloads: Vec<String>, bounds: Vec<Bound>) -> selection::Request {
    let threads = match (&locks.threads[..], locks.quick) {
        ([], true) => QUICK_THREADS.to_vec(),
        (threads, _) => threads.to_vec(),
    };
    selection::Request {
        workloads: if locks.workloads.is_empty() { file_workloads } else { locks.workloads.clone() },
        implementations: locks.locks.clone(),
        threads,
        baseline: locks.baseline.clone(),
        bounds,
    }
}

/// What is shown, if the figure and what it is divided by go together.
pub(super) fn shown(wanted: &GridShown) -> anyhow::Result<Shown> {
    let (figure, against) = (wanted.figure.unwrap_or(Figure::Throughput), wanted.against());
    if against == Against::Ideal && !matches!(figure, Figure::Throughput | Figure::Ideal) {
        bail!(
            "only throughput has an ideal\nUse --against best or --against glibc with --figure {}",
            figure.name()
        );
    }
    let figure = if against == Against::Ideal { Figure::Ideal } else { figure };
    Ok(Shown { figure, against })
}

fn check_shown(
    grid: &Grid,
    implementations: &[Implementation],
    definitions: &Definitions,
) -> anyhow::Result<()> {
    let shown = shown(&grid.shown)?;
    if grid.no_waits && shown.figure.is_of_waits() {
        bail!("--figure {} needs waits, which --no-waits leaves out", shown.figure.name());
    }
    if let Against::Implementation(name) = &shown.against
        && !implementations.iter().any(|implementation| implementation.name == *name)
    {
        parse(definitions, name).map_err(anyhow::Error::msg)?;
        bail!("--against {name}: that implementation is not measured\nName it with --locks as well");
    }
    Ok(())
}

/// Bounds on waits cannot be judged without waits.
fn check_bounds(grid: &Grid, bounds: &[Bound], planes: &[Plane]) -> anyhow::Result<()> {
    let on_waits = |plane: &&Plane| {
        bounds.iter().any(|bound| bound.figure.is_of_waits() && bound.planes.contains(&plane.name))
    };
    match planes.iter().find(on_waits) {
        Some(plane) if grid.no_waits => bail!(
            "--bounds judges waits in plane {}, which --no-waits leaves out\nName other planes with --plane, or measure waits",
            plane.name
        ),
        _ => Ok(()),
    }
}

fn implementations(grid: &Grid, definitions: &Definitions) -> Result<Vec<Implementation>, String> {
    once("--locks", &grid.locks)?;
    let preset = definitions.preset("grid")?;
    let names = if grid.locks.is_empty() { &preset.implementations } else { &grid.locks };
    names.iter().map(|name| not_recorded(parse(definitions, name)?)).collect()
}

/// The requested planes. An option that applies to no plane is an error.
fn planes(grid: &Grid, definitions: &Definitions) -> Result<Vec<Plane>, String> {
    once("--plane", &grid.planes)?;
    let chosen: Vec<&Plane> = match grid.planes.is_empty() {
        true => definitions.planes.iter().collect(),
        false => grid.planes.iter().map(|name| definitions.plane(name)).collect::<Result<_, _>>()?,
    };
    let asked = Axes {
        threads: grid.threads.clone(),
        section: grid.section.clone(),
        outside: grid.non_critical.clone(),
        writes: grid.writes.clone(),
        work: grid.work.clone(),
        ..Axes::default()
    };
    once("--threads", &asked.threads)?;
    once("--section", &asked.section)?;
    once("--non-critical", &asked.outside)?;
    once("--writes", &asked.writes)?;
    once("--work", &asked.work)?;
    let has = |option: &str, is_given: bool, kinds: &[Kind]| {
        let planes: Vec<&str> = definitions
            .planes
            .iter()
            .filter(|plane| kinds.contains(&plane.load))
            .map(|plane| plane.name.as_str())
            .collect();
        match is_given && !chosen.iter().any(|plane| kinds.contains(&plane.load)) {
            true => Err(format!("{option} is for the planes {}; leave it out", planes.join(", "))),
            false => Ok(()),
        }
    };
    has("--threads", !asked.threads.is_empty(), &[Kind::Mutex, Kind::Rwlock, Kind::Handoff, Kind::Pipeline])?;
    has("--section", !asked.section.is_empty(), &[Kind::Mutex, Kind::Rwlock])?;
    has("--non-critical", !asked.outside.is_empty(), &[Kind::Mutex, Kind::Rwlock])?;
    has("--writes", !asked.writes.is_empty(), &[Kind::Rwlock])?;
    has("--work", !asked.work.is_empty(), &[Kind::Queue, Kind::Handoff, Kind::Pipeline])?;
    let narrowed = |plane: &Plane| {
        let axes = if grid.quick { plane.axes.replaced_by(&plane.quick) } else { plane.axes.clone() };
        Plane { axes: axes.replaced_by(&asked), ..plane.clone() }
    };
    Ok(chosen.into_iter().map(narrowed).collect())
}

fn check_cells(cells: &[Measured], implementations: &[Implementation]) -> anyhow::Result<()> {
    if cells.iter().all(|cell| cell.cell.implementations.is_empty()) {
        let skipped = cells.first().map(|cell| &cell.cell.skipped);
        let reasons = skipped
            .into_iter()
            .flatten()
            .map(|skipped| format!("{}: {}", skipped.implementation, skipped.why));
        bail!(
            "nothing is left to measure: none of these implementations runs in any of these planes\n{}",
            reasons.collect::<Vec<_>>().join("\n")
        );
    }
    if !implementations.iter().any(|implementation| implementation.role == Role::Ours) {
        bail!(
            "none of the implementations is ours, so there is nothing to compare with peers\nAdd spinpark or drop-in to --locks"
        );
    }
    Ok(())
}
