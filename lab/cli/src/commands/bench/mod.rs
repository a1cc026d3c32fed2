//! `spinpark-lab bench`: locks by themselves, in workloads of contention or over planes of them.

mod output;
mod request;

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use spinpark_lockbench::locks::bounds::Judgement;
use spinpark_lockbench::locks::counters::obstacle;
use spinpark_lockbench::locks::definitions::{Implementation, Preset};
use spinpark_lockbench::locks::experiment::{CellObserver, Measured, measure};
use spinpark_lockbench::locks::peers::Peers;
use spinpark_lockbench::locks::planes::Plane;
use spinpark_lockbench::locks::warnings::of_cells;
use spinpark_lockbench::locks::workers::Workers;
use spinpark_lockbench::report::document::{FORMAT, Record, SCHEMA, VersionedImplementation};
use spinpark_lockbench::report::grid::lines;
use spinpark_lockbench::report::locks::list;
use spinpark_measure::process::executable::usage::Usage;
use spinpark_measure::report::{Head, reading};
use spinpark_measure::rounds::failure::RunError;
use spinpark_measure::rounds::machine::{Noise, Watch};
use spinpark_measure::rounds::measure::End;
use spinpark_measure::rounds::warnings::{self, Warning};
use spinpark_measure::stats::bootstrap::MIN_BLOCKS;
use spinpark_measure::text::units::counted;

use self::output::{Destinations, Findings, View};
pub(crate) use self::request::Request;
use self::request::shown;
use crate::cells::Cells;
use crate::cli::{Bench, Format, Grid, Locks, PresetChoice, Show};
use spinpark_cli::progress::{Progress, about};
use spinpark_cli::say::{self, Say};
use spinpark_cli::session::{Session, check_rounds};
use spinpark_cli::{exit, own};

/// What is said about options that another file than a grid's does not have.
pub(super) const NOT_A_GRID: &str =
    "--figure, --against, --html and CSV are for files of `bench grid`; leave them out";

/// Carries out a subcommand; `show` reads an earlier result.
pub(crate) fn run(bench: &Bench, show: fn(&Show) -> anyhow::Result<ExitCode>) -> anyhow::Result<ExitCode> {
    match bench {
        Bench::List(list) => print_list(list.definition.as_deref()),
        Bench::Locks(bench) => measure_locks(&bench.locks, bench.preset),
        Bench::Grid(wanted) => measure_grid(wanted),
        Bench::Show(wanted) => show(wanted),
    }
}

fn print_list(definition: Option<&std::path::Path>) -> anyhow::Result<ExitCode> {
    let (definitions, _) = request::definitions(definition)?;
    let say = Say { on_stderr: false };
    let list = list::render(&definitions, &Peers::find(&own::path()?), say.style());
    let count = |preset: &Preset| {
        let count = definitions.bounds.iter().filter(|bound| bound.preset == preset.name).count();
        let command = match preset.name.as_str() {
            name @ ("locks" | "grid") => name.to_owned(),
            name => format!("locks --preset {name}"),
        };
        (count > 0).then(|| format!("  {count:2} by `spinpark-lab bench {command} --bounds`\n"))
    };
    let counts: Vec<String> = definitions.presets.iter().filter_map(count).collect();
    say.line(list);
    say.line(format_args!("Bounds that are judged:\n{}", counts.concat()));
    say.line(lines::planes_of(&definitions, say.style()));
    Ok(ExitCode::SUCCESS)
}

/// Measures workloads.
pub(crate) fn measure_locks(locks: &Locks, preset: PresetChoice) -> anyhow::Result<ExitCode> {
    let request = Request::new(locks, preset)?;
    check_rounds(request.rounds)?;
    let Locks { json, record, plots, .. } = locks;
    let to = Destinations::default().and(json.as_deref(), record.as_deref(), plots.as_deref())?;
    let is_markdown = locks.format == Some(Format::Markdown);
    let view = View::Tables { is_markdown, is_detailed: locks.details };
    carry_out(&request, to, &view, locks.seed, locks.check)
}

/// Measures planes.
fn measure_grid(grid: &Grid) -> anyhow::Result<ExitCode> {
    let request = Request::of_grid(grid)?;
    let view = View::Maps(shown(&grid.shown)?);
    let to = Destinations::of_grid(&grid.shown)?.and(grid.json.as_deref(), grid.record.as_deref(), None)?;
    carry_out(&request, to, &view, grid.seed, grid.check)
}

/// Measures, and reports.
fn carry_out(
    request: &Request,
    to: Destinations,
    view: &View,
    seed: Option<u64>,
    is_check: bool,
) -> anyhow::Result<ExitCode> {
    let session = Session::start(seed)?;
    intro(request, &session);
    say::check()?;
    let mut progress = Progress::new(request.runs(), Some(request.seconds()));
    let (findings, noise, end) = measure_request(request, &session, &mut progress)?;
    drop(progress);
    findings.print(request.say, view);
    findings.write(to, view, &noise)?;
    let missed = findings.bounds.iter().any(|bound| bound.judgement != Judgement::Holds);
    match end {
        End::Complete if is_check && missed => Ok(ExitCode::from(exit::FAILED)),
        end => exit::code_of_end(end),
    }
}

/// Prints an earlier result again.
pub(super) fn show(text: &str, wanted: &Show) -> anyhow::Result<()> {
    let record = Record::parse(text).map_err(|what| anyhow!("{} is {what}", wanted.file.display()))?;
    let is_grid = !record.planes.is_empty();
    let is_markdown = wanted.format == Some(Format::Markdown);
    if is_grid && (is_markdown || wanted.plots.is_some() || wanted.details) {
        bail!("--details, --format markdown and --plots are for files of `bench locks`; leave them out");
    }
    if !is_grid && wanted.grid.is_given() {
        bail!(NOT_A_GRID);
    }
    let view = match is_grid {
        true => View::Maps(shown(&wanted.grid)?),
        false => View::Tables { is_markdown, is_detailed: wanted.details },
    };
    let to = Destinations::of_grid(&wanted.grid)?.and(None, None, wanted.plots.as_deref())?;
    let mut findings = Findings::new(record);
    findings.warnings = reading::warnings(text);
    findings.print(Say::apart_from(&[&wanted.grid.html, &wanted.grid.csv]), &view);
    findings.write(to, &view, &Noise::default())
}

/// Measures, and draws conclusions.
pub(crate) fn measure_request(
    request: &Request,
    session: &Session,
    progress: &mut Progress,
) -> anyhow::Result<(Findings, Noise, End)> {
    let mut workers = request.workers(&session.interrupt);
    let mut cells = request.cells.clone();
    let watch = Watch::start();
    let (cells, calibrations, end) = match count_futex_calls(request, &workers, &mut cells, progress)? {
        End::Complete => measure(cells, request.rounds, session.seed, &mut workers, &mut Cells(progress)),
        end => (cells, Vec::new(), end),
    };
    let noise = watch.noise();
    // The last round of an interrupted run has begun, but it is not complete.
    let blocks = calibrations.len().saturating_sub(1);
    let version = |implementation: &_| list::version(implementation, &request.peers);
    let versioned = |implementation: &Implementation| VersionedImplementation {
        version: version(implementation),
        implementation: implementation.clone(),
    };
    let mut findings = Findings::new(Record {
        head: Head {
            format: FORMAT.to_owned(),
            schema: SCHEMA,
            end: end.name().to_owned(),
            command: request.command.clone(),
            rounds: request.rounds,
            millis: request.millis,
            seed: session.seed,
            environment: session.environment.clone(),
        },
        implementations: request.implementations.iter().map(versioned).collect(),
        planes: request.planes.clone(),
        bound_definitions: request.bounds.clone(),
        calibrations,
        cells,
    });
    let mut warnings = Vec::new();
    if matches!(end, End::Interrupted) {
        warnings.push(Warning::Interrupted { blocks, rounds: request.rounds });
    }
    if request.is_debug_build() {
        warnings.push(Warning::DebugBuild);
    }
    if request.planes.is_empty() {
        warnings.extend(of_cells(findings.results(), session.environment.cpus));
    }
    warnings.extend(obstacle().map(|why| Warning::NoFutexCounter { why }));
    warnings.extend(warnings::of_machine(&noise));
    findings.warnings = warnings;
    Ok((findings, noise, end))
}

/// Runs before all others: one for each cell and implementation counts futex calls. It also warms caches, and
/// shows that all implementations work before the first one is timed; the first run of each implementation on
/// the drop-in shows that it is really loaded.
fn count_futex_calls(
    request: &Request,
    workers: &Workers<'_>,
    cells: &mut [Measured],
    progress: &mut Progress,
) -> anyhow::Result<End> {
    let mut seen = BTreeSet::new();
    for Measured { cell, futex_calls, .. } in cells {
        for implementation in &cell.implementations {
            let known = &workers.implementations[implementation];
            let is_checked = known.preload && known.env.is_empty() && !seen.contains(implementation);
            if !is_checked && !request.counts_futex_calls {
                continue;
            }
            Cells(progress).starting(cell, implementation);
            let report = is_checked.then(drop_in_report).transpose()?;
            let path = report.as_ref().map(tempfile::NamedTempFile::path);
            let made = match workers.run(cell, implementation, 0, true, path) {
                Ok(made) => made,
                Err(RunError::Interrupted) => return Ok(End::Interrupted),
                Err(error) => return Err(error.into()),
            };
            if let Some(report) = report {
                Usage::read(report.path())?.check("")?;
                seen.insert(implementation.clone());
            }
            if request.counts_futex_calls {
                if let Some(calls) = made.futex_calls.filter(|_| made.operations > 0) {
                    futex_calls.insert(implementation.clone(), calls as f64 / made.operations as f64);
                }
                Cells(progress).finished();
            }
        }
    }
    Ok(End::Complete)
}

fn drop_in_report() -> anyhow::Result<tempfile::NamedTempFile> {
    let report = tempfile::Builder::new().prefix("spinpark-report-").tempfile();
    report.context("cannot create a temporary file; is TMPDIR writable?")
}

fn intro(request: &Request, session: &Session) {
    let of_plane = |plane: &Plane| {
        let cells = request.cells.iter().filter(|cell| cell.plane() == plane.name).count();
        format!("{} {cells}", plane.name)
    };
    let planes: Vec<String> = request.planes.iter().map(of_plane).collect();
    let text = format!(
        "{}{} × {}: {} of {} ms in shuffled order (seed {}), about {}. Ctrl-C: the result so far.",
        counted(request.cells.len(), "cell"),
        if planes.is_empty() { String::new() } else { format!(" ({})", planes.join(", ")) },
        counted(request.rounds, "round"),
        counted(request.compared_runs(), "run"),
        request.millis,
        session.seed,
        about(request.seconds()),
    );
    request.say.wrapped(&text, 2);
    if request.rounds < MIN_BLOCKS {
        let text =
            format!("Fewer than {MIN_BLOCKS} rounds: no intervals, so no clear losses and no judgements.");
        request.say.wrapped(&text, 2);
    }
    if !request.notes.is_empty() {
        request.say.wrapped(&format!("{}.", request.notes.join("; ")), 2);
    }
    for (why, implementations) in request.absent() {
        request.say.wrapped(&format!("Not here: {implementations} ({why})"), 2);
    }
}
