//! The request: every error in it is found here, before anything runs.

use std::env;
use std::path::PathBuf;

use anyhow::{Context, bail};
use spinpark_documents::workloads::resources::Requirements;
use spinpark_lockbench::grid::cells::{GridCell, cells, points};
use spinpark_lockbench::grid::definition::{Axes, Grid as Definition, Kind, Plane};
use spinpark_lockbench::grid::figure::{Against, Figure};
use spinpark_lockbench::locks::definitions::{Definitions, Implementation, Role};
use spinpark_lockbench::locks::implementations::{not_recorded, parse};
use spinpark_lockbench::locks::peers::Peers;
use spinpark_lockbench::locks::selection::once;
use spinpark_lockbench::locks::workers::Workers;
use spinpark_lockbench::locks::workloads::allowed_cpus;
use spinpark_lockbench::report::grid::Shown;
use spinpark_measure::executable::{DropIn, Library};
use spinpark_measure::process::Interrupt;
use spinpark_measure::report::json::Output;
use spinpark_measure::rounds::Cell as _;

use super::super::request::{command, wake_ups_s};
use crate::cli::{Grid, GridShown, millis};
use crate::libraries;
use crate::say::Say;

/// A request that can be carried out.
pub(super) struct Request {
    pub(super) definition: Definition,
    /// The planes that are measured, with the values of their parameters.
    pub(super) planes: Vec<Plane>,
    pub(super) implementations: Vec<Implementation>,
    pub(super) cells: Vec<GridCell>,
    pub(super) peers: Peers,
    pub(super) rounds: usize,
    pub(super) millis: u64,
    pub(super) untimed: bool,
    pub(super) counts_futex_calls: bool,
    pub(super) command: String,
    pub(super) say: Say,
    own: PathBuf,
    drop_in: Option<DropIn>,
}

impl Request {
    /// Checks it all.
    pub(super) fn new(grid: &Grid) -> anyhow::Result<Self> {
        let definitions = Definitions::built_in()?;
        let definition = Definition::built_in(&definitions)?;
        let own = env::current_exe().context("cannot find out where this command itself is")?;
        let peers = Peers::find(&own);
        let implementations = implementations(grid, &definition, &definitions).map_err(anyhow::Error::msg)?;
        check_shown(grid, &implementations, &definitions)?;
        let planes = planes(grid, &definition).map_err(anyhow::Error::msg)?;
        check_bounds(grid, &definition, &planes)?;
        let mut all = Vec::new();
        for plane in &planes {
            let points = points(plane, &plane.axes)
                .map_err(|what| anyhow::anyhow!("plane `{}`: {what}", plane.name))?;
            all.extend(cells(plane, points, &implementations, &peers, allowed_cpus()));
        }
        check_cells(&all, &implementations)?;
        let threads = all.iter().map(GridCell::threads).max().unwrap_or_default() as u64;
        Requirements { processes: threads, threads, ..Requirements::default() }.check(None)?;
        let find = |library| -> anyhow::Result<DropIn> {
            let found = libraries::find(library)?;
            found.check_machine(spinpark_measure::executable::Executable::find(own.as_os_str())?.machine)?;
            Ok(found)
        };
        let needs_drop_in = implementations.iter().any(|implementation| implementation.preload);
        let drop_in = needs_drop_in.then(|| find(Library::DropIn)).transpose()?;
        let default_rounds = if grid.quick { 3 } else { 7 };
        Ok(Self {
            definition,
            planes,
            implementations,
            cells: all,
            peers,
            rounds: grid.rounds.map_or(default_rounds, |rounds| rounds as usize),
            millis: grid.duration.map_or(if grid.quick { 30 } else { 50 }, millis),
            untimed: grid.no_waits,
            counts_futex_calls: spinpark_lockbench::locks::counters::obstacle().is_none(),
            command: command(env::args_os().skip(1)),
            say: Say {
                on_stderr: grid.shown.takes_stdout() || grid.json.as_deref().is_some_and(Output::is_stdout),
            },
            own,
            drop_in,
        })
    }

    /// What starts the runs.
    pub(super) fn workers<'a>(&self, interrupt: &'a Interrupt) -> Workers<'a> {
        Workers {
            own: self.own.clone(),
            peers: self.peers.clone(),
            preload: self.drop_in.as_ref().map(|library| library.path.clone()),
            recorder: None,
            inherited: env::var_os("LD_PRELOAD").unwrap_or_default(),
            implementations: self
                .implementations
                .iter()
                .map(|implementation| (implementation.name.clone(), implementation.clone()))
                .collect(),
            millis: self.millis,
            untimed: self.untimed,
            interrupt,
        }
    }

    /// Runs that are compared.
    pub(super) fn compared_runs(&self) -> usize {
        self.cells.iter().map(|cell| cell.runs_per_round() * self.rounds).sum()
    }

    /// All runs, with those that count futex calls.
    pub(super) fn runs(&self) -> usize {
        self.compared_runs() + self.cells.iter().map(|cell| self.counting_runs(cell)).sum::<usize>()
    }

    fn counting_runs(&self, cell: &GridCell) -> usize {
        if self.counts_futex_calls { cell.measured.cell.implementations.len() } else { 0 }
    }

    /// About how long all of it takes, in seconds.
    pub(super) fn seconds(&self) -> f64 {
        const PROCESS_S: f64 = 0.012;
        let of_cell = |cell: &GridCell| {
            let late = wake_ups_s(cell.threads());
            let phase = self.millis.max(cell.measured.cell.at_least_millis) as f64 * 1.25e-3 + late;
            let run = PROCESS_S + phase * if self.untimed { 1.0 } else { 2.0 };
            run * (cell.runs_per_round() * self.rounds) as f64
                + (PROCESS_S + phase) * self.counting_runs(cell) as f64
        };
        self.cells.iter().map(of_cell).sum()
    }

    pub(super) fn is_debug_build(&self) -> bool {
        cfg!(debug_assertions) || self.drop_in.as_ref().is_some_and(DropIn::is_debug_build)
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
    if grid.no_waits && matches!(shown.figure, Figure::WaitP999 | Figure::LongestWait) {
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
fn check_bounds(grid: &Grid, definition: &Definition, planes: &[Plane]) -> anyhow::Result<()> {
    let on_waits = |plane: &&Plane| {
        definition.bounds.iter().any(|bound| {
            matches!(bound.figure, Figure::WaitP999 | Figure::LongestWait)
                && bound.planes.contains(&plane.name)
        })
    };
    match planes.iter().find(on_waits) {
        Some(plane) if grid.no_waits && grid.bounds => bail!(
            "--bounds judges waits in plane {}, which --no-waits leaves out\nName other planes with --plane, or measure waits",
            plane.name
        ),
        _ => Ok(()),
    }
}

fn implementations(
    grid: &Grid,
    definition: &Definition,
    definitions: &Definitions,
) -> Result<Vec<Implementation>, String> {
    once("--locks", &grid.locks)?;
    let names = if grid.locks.is_empty() { &definition.implementations } else { &grid.locks };
    names.iter().map(|name| not_recorded(parse(definitions, name)?)).collect()
}

/// The requested planes. An option that applies to no plane is an error.
fn planes(grid: &Grid, definition: &Definition) -> Result<Vec<Plane>, String> {
    once("--plane", &grid.planes)?;
    let chosen: Vec<&Plane> = match grid.planes.is_empty() {
        true => definition.planes.iter().collect(),
        false => grid.planes.iter().map(|name| definition.plane(name)).collect::<Result<_, _>>()?,
    };
    let asked = Axes {
        threads: grid.threads.clone(),
        section: grid.section.clone(),
        outside: grid.outside.clone(),
        writes: grid.writes.clone(),
        work: grid.work.clone(),
        ..Axes::default()
    };
    once("--threads", &asked.threads)?;
    once("--section", &asked.section)?;
    once("--outside", &asked.outside)?;
    once("--writes", &asked.writes)?;
    once("--work", &asked.work)?;
    let has = |option: &str, is_given: bool, kinds: &[Kind]| {
        let planes: Vec<&str> = definition
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
    has("--outside", !asked.outside.is_empty(), &[Kind::Mutex, Kind::Rwlock])?;
    has("--writes", !asked.writes.is_empty(), &[Kind::Rwlock])?;
    has("--work", !asked.work.is_empty(), &[Kind::Queue, Kind::Handoff, Kind::Pipeline])?;
    let narrowed = |plane: &Plane| {
        let axes = if grid.quick { plane.axes.replaced_by(&plane.quick) } else { plane.axes.clone() };
        Plane { axes: axes.replaced_by(&asked), ..plane.clone() }
    };
    Ok(chosen.into_iter().map(narrowed).collect())
}

fn check_cells(cells: &[GridCell], implementations: &[Implementation]) -> anyhow::Result<()> {
    if cells.iter().all(|cell| cell.measured.cell.implementations.is_empty()) {
        let skipped = cells.first().map(|cell| &cell.measured.cell.skipped);
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
