//! `spinpark bench grid`: locks over planes of parameters.

mod output;
mod request;

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use anyhow::anyhow;
use spinpark_lockbench::grid::calibration::Calibration;
use spinpark_lockbench::grid::cells::GridCell;
use spinpark_lockbench::grid::experiment::measure;
use spinpark_lockbench::locks::bounds::Judgement;
use spinpark_lockbench::locks::counters::obstacle;
use spinpark_lockbench::locks::experiment::CellObserver;
use spinpark_lockbench::locks::workers::Workers;
use spinpark_lockbench::report::grid::document::{FORMAT, Record, SCHEMA};
use spinpark_lockbench::report::locks::document::VersionedImplementation;
use spinpark_lockbench::report::locks::list;
use spinpark_measure::environment::Environment;
use spinpark_measure::executable::usage::Usage;
use spinpark_measure::failure::RunError;
use spinpark_measure::machine::{Noise, Watch};
use spinpark_measure::measure::End;
use spinpark_measure::report::{Head, reading};
use spinpark_measure::stats::bootstrap::MIN_BLOCKS;
use spinpark_measure::units::counted;
use spinpark_measure::warnings::{self, Warning};

use self::output::{Destinations, Findings, Pages};
use self::request::Request;
use super::drop_in_report;
use crate::cli::{Grid, GridShown};
use crate::directory::create;
use crate::exit;
use crate::progress::{Progress, about};
use crate::say::{self, Say};
use crate::session::Session;

/// Checks the request, measures, reports.
pub(super) fn run(grid: &Grid) -> anyhow::Result<ExitCode> {
    let request = Request::new(grid)?;
    let shown = request::shown(&grid.shown)?;
    let destinations = destinations(grid)?;
    let session = Session::start(grid.seed)?;
    intro(&request, &session);
    say::check()?;
    let mut progress = Progress::new(request.runs(), Some(request.seconds()));
    let (findings, noise, end) = measure_request(&request, &session, grid.bounds, &mut progress)?;
    drop(progress);
    findings.print(request.say, &shown, request.say.style());
    findings.write(destinations, &shown, &noise)?;
    let missed = findings.bounds.iter().any(|bound| bound.judgement != Judgement::Holds);
    match end {
        End::Complete if grid.check && missed => Ok(ExitCode::from(exit::FAILED)),
        end => exit::code_of_end(end),
    }
}

/// Prints an earlier result again.
pub(in crate::commands) fn show(text: &str, file: &str, wanted: &GridShown) -> anyhow::Result<()> {
    let record = Record::parse(text).map_err(|what| anyhow!("{file} is {what}"))?;
    let shown = request::shown(wanted)?;
    let pages = Pages::open(wanted)?;
    let say = Say { on_stderr: wanted.takes_stdout() };
    let mut findings = Findings::new(record);
    findings.warnings = reading::warnings(text);
    findings.print(say, &shown, say.style());
    findings.write_pages(pages, &shown)
}

/// Opens everything that will be written.
fn destinations(grid: &Grid) -> anyhow::Result<Destinations> {
    use spinpark_measure::report::json::Output;
    if let Some(directory) = &grid.record {
        create("--record", directory)?;
    }
    Ok(Destinations {
        json: grid.json.as_deref().map(Output::open).transpose()?,
        record: grid.record.clone(),
        pages: Pages::open(&grid.shown)?,
    })
}

fn intro(request: &Request, session: &Session) {
    let mut planes = BTreeMap::<&str, usize>::new();
    for cell in &request.cells {
        *planes.entry(&cell.place.plane).or_default() += 1;
    }
    let planes: Vec<String> = request
        .planes
        .iter()
        .map(|plane| format!("{} {}", plane.name, planes[plane.name.as_str()]))
        .collect();
    let text = format!(
        "{} ({}) × {}: {} of {} ms in shuffled order (seed {}), about {}. Ctrl-C: the result so far.",
        counted(request.cells.len(), "cell"),
        planes.join(", "),
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
    let mut absent = BTreeSet::new();
    for implementation in &request.implementations {
        let is_here = |cell: &GridCell| cell.measured.cell.implementations.contains(&implementation.name);
        let skipped = request.cells.iter().flat_map(|cell| &cell.measured.cell.skipped);
        let why = skipped
            .filter(|skipped| skipped.implementation == implementation.name)
            .map(|skipped| &skipped.why)
            .next();
        if let Some(why) = why.filter(|_| !request.cells.iter().any(is_here)) {
            absent.insert(format!("{} ({why})", implementation.name));
        }
    }
    if !absent.is_empty() {
        let absent: Vec<String> = absent.into_iter().collect();
        request.say.wrapped(&format!("Not here: {}", absent.join("; ")), 2);
    }
}

/// Measures, and draws conclusions.
fn measure_request(
    request: &Request,
    session: &Session,
    is_bounds: bool,
    progress: &mut Progress,
) -> anyhow::Result<(Findings, Noise, End)> {
    let mut workers = request.workers(&session.interrupt);
    let mut cells = request.cells.clone();
    let watch = Watch::start();
    let (cells, calibrations, end) = match before(request, &mut workers, &mut cells, progress)? {
        End::Complete => {
            let calibrate = &mut Calibration::measure;
            measure(cells, request.rounds, session.seed, &mut workers, calibrate, progress)
        }
        end => (cells, Vec::new(), end),
    };
    let noise = watch.noise();
    let record = record(request, session, cells, calibrations, &end, is_bounds);
    let mut findings = Findings::new(record);
    findings.warnings = warnings_of(request, &findings.record, &noise, &end);
    Ok((findings, noise, end))
}

/// Runs before all others: the first one of each implementation on the drop-in shows that it is loaded; where
/// futex calls can be counted, there is one for each cell and implementation.
fn before(
    request: &Request,
    workers: &mut Workers<'_>,
    cells: &mut [GridCell],
    progress: &mut Progress,
) -> anyhow::Result<End> {
    let mut seen = BTreeSet::new();
    for GridCell { measured, .. } in cells {
        for implementation in &measured.cell.implementations {
            let known = &workers.implementations[implementation];
            let is_checked = known.preload && known.env.is_empty() && !seen.contains(implementation);
            if !is_checked && !request.counts_futex_calls {
                continue;
            }
            progress.starting(&measured.cell, implementation);
            let report = is_checked.then(drop_in_report).transpose()?;
            let path = report.as_ref().map(tempfile::NamedTempFile::path);
            let made = match workers.run(&measured.cell, implementation, 0, true, path) {
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
                    measured
                        .futex_calls
                        .insert(implementation.clone(), calls as f64 / made.operations as f64);
                }
                CellObserver::finished(progress);
            }
        }
    }
    Ok(End::Complete)
}

fn record(
    request: &Request,
    session: &Session,
    cells: Vec<GridCell>,
    calibrations: Vec<Calibration>,
    end: &End,
    is_bounds: bool,
) -> Record {
    let version = |implementation: &_| list::version(implementation, &request.peers);
    let environment: Environment = session.environment.clone();
    Record {
        head: Head {
            format: FORMAT.to_owned(),
            schema: SCHEMA,
            end: end.name().to_owned(),
            command: request.command.clone(),
            rounds: request.rounds,
            millis: request.millis,
            seed: session.seed,
            environment,
        },
        implementations: (request.implementations.iter())
            .map(|implementation| VersionedImplementation {
                implementation: implementation.clone(),
                version: version(implementation),
            })
            .collect(),
        planes: request.planes.clone(),
        bound_definitions: if is_bounds { request.definition.bounds.clone() } else { Vec::new() },
        calibrations,
        cells,
    }
}

fn warnings_of(request: &Request, record: &Record, noise: &Noise, end: &End) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if matches!(end, End::Interrupted) {
        // The last round has begun, but it is not complete.
        let blocks = record.calibrations.len().saturating_sub(1);
        warnings.push(Warning::Interrupted { blocks, rounds: request.rounds });
    }
    if request.is_debug_build() {
        warnings.push(Warning::DebugBuild);
    }
    if let Some(why) = obstacle() {
        warnings.push(Warning::NoFutexCounter { why });
    }
    warnings.extend(warnings::of_machine(noise));
    warnings
}
