//! `spinpark bench`: locks by themselves, one workload of contention at a time.

pub(super) mod grid;
mod output;
mod request;

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::Context;
use spinpark_lockbench::grid::definition::Grid as Planes;
use spinpark_lockbench::locks::bounds::{self, Judgement};
use spinpark_lockbench::locks::definitions::{Definitions, Preset};
use spinpark_lockbench::locks::experiment::{Measured, measure};
use spinpark_lockbench::locks::peers::Peers;
use spinpark_lockbench::locks::warnings::of_cells;
use spinpark_lockbench::locks::workers::Workers;
use spinpark_lockbench::report::grid::lines;
use spinpark_lockbench::report::locks::document::{FORMAT, Record, SCHEMA, VersionedImplementation};
use spinpark_lockbench::report::locks::list;
use spinpark_measure::environment::Environment;
use spinpark_measure::executable::usage::Usage;
use spinpark_measure::failure::RunError;
use spinpark_measure::machine::{Noise, Watch};
use spinpark_measure::measure::End;
use spinpark_measure::report::Head;
use spinpark_measure::rounds::Cell as _;
use spinpark_measure::units::counted;
use spinpark_measure::warnings::{self, Warning};

use self::output::Findings;
pub(crate) use self::request::{Request, command};
use crate::cli::{Bench, Format, Locks, PresetChoice, Show};
use crate::exit;
use crate::progress::{Progress, about};
use crate::say::{self, Say};
use crate::session::{Session, check_rounds};

/// Carries out a subcommand; `show` reads an earlier result.
pub(crate) fn run(bench: &Bench, show: fn(&Show) -> anyhow::Result<ExitCode>) -> anyhow::Result<ExitCode> {
    match bench {
        Bench::List(list) => print_list(list.definition.as_deref()),
        Bench::Locks(bench) => measure_locks(&bench.locks, bench.preset),
        Bench::Grid(wanted) => grid::run(wanted),
        Bench::Show(wanted) => show(wanted),
    }
}

fn print_list(definition: Option<&std::path::Path>) -> anyhow::Result<ExitCode> {
    let (definitions, _) = request::definitions(definition)?;
    let own = std::env::current_exe().context("cannot find out where this command itself is")?;
    let say = Say { on_stderr: false };
    let list = list::render(&definitions, &Peers::find(&own), say.style());
    let count = |preset: &Preset| {
        let count = definitions.bounds.iter().filter(|bound| bound.preset == preset.name).count();
        let option =
            if preset.name == "locks" { String::new() } else { format!(" --preset {}", preset.name) };
        (count > 0).then(|| format!("  {count:2} by `spinpark bench locks{option} --bounds`\n"))
    };
    let counts: Vec<String> = definitions.presets.iter().filter_map(count).collect();
    say.line(list);
    say.line(format_args!("Bounds that are judged:\n{}", counts.concat()));
    say.line(lines::planes_of(&Planes::built_in(&definitions)?, say.style()));
    Ok(ExitCode::SUCCESS)
}

/// Checks the request, measures, reports.
pub(crate) fn measure_locks(locks: &Locks, preset: PresetChoice) -> anyhow::Result<ExitCode> {
    let request = Request::new(locks, preset)?;
    check_rounds(request.rounds)?;
    let destinations = request.destinations(locks)?;
    let session = Session::start(locks.seed)?;
    intro(&request, &session);
    say::check()?;
    let mut progress = Progress::new(request.runs(), Some(request.seconds()));
    let (findings, noise, end) = measure_request(&request, &session, &mut progress)?;
    drop(progress);
    findings.print(request.say, locks.format == Some(Format::Markdown), locks.details, request.say.style());
    findings.write(destinations, &noise)?;
    let missed = findings.bounds.iter().any(|bound| bound.judgement != Judgement::Holds);
    match end {
        End::Complete if locks.check && missed => Ok(ExitCode::from(exit::FAILED)),
        end => exit::code_of_end(end),
    }
}

/// Measures, and draws conclusions.
pub(crate) fn measure_request(
    request: &Request,
    session: &Session,
    progress: &mut Progress,
) -> anyhow::Result<(Findings, Noise, End)> {
    let mut workers = request.workers(&session.interrupt);
    let mut cells = request.cells();
    let watch = Watch::start();
    let (cells, end, futex_error) = match count_futex_calls(&mut workers, &mut cells, progress)? {
        Counted::Yes { error } => {
            let (cells, end) = measure(cells, request.rounds, session.seed, &mut workers, progress);
            (cells, end, error)
        }
        Counted::Interrupted => (cells, End::Interrupted, None),
    };
    let noise = watch.noise();
    let record = record(request, &session.environment, session.seed, cells, &end);
    let mut findings = findings(&request.definitions, record, request.is_bounds)?;
    findings.warnings = warnings_of(request, &findings, &noise, &end, futex_error);
    Ok((findings, noise, end))
}

/// What follows from a record.
pub(super) fn findings(
    definitions: &Definitions,
    record: Record,
    is_bounds: bool,
) -> anyhow::Result<Findings> {
    let bounds = match is_bounds {
        true => {
            bounds::judge_all(definitions, &record.cells, record.head.seed).map_err(anyhow::Error::msg)?
        }
        false => Vec::new(),
    };
    Ok(Findings::new(record, bounds))
}

/// Whether the counting runs were made.
enum Counted {
    /// They were; perhaps without counting.
    Yes { error: Option<String> },
    /// The user did not want to wait.
    Interrupted,
}

/// One run per cell and implementation that is for counting futex calls. It also warms caches, and shows that
/// all implementations work before the first one is timed; the first run of each implementation on the
/// drop-in shows that it is really loaded.
fn count_futex_calls(
    workers: &mut Workers<'_>,
    cells: &mut [Measured],
    progress: &mut Progress,
) -> anyhow::Result<Counted> {
    use spinpark_lockbench::locks::experiment::CellObserver;
    let mut error = None;
    let mut seen = BTreeSet::new();
    for Measured { cell, futex_calls, .. } in cells {
        for implementation in &cell.implementations {
            progress.starting(cell, implementation);
            let known = &workers.implementations[implementation];
            let check = known.preload && known.env.is_empty() && !seen.contains(implementation);
            let report = check.then(drop_in_report).transpose()?;
            let made = workers.run(
                cell,
                implementation,
                0,
                true,
                report.as_ref().map(tempfile::NamedTempFile::path),
            );
            let made = match made {
                Ok(made) => made,
                Err(RunError::Interrupted) => return Ok(Counted::Interrupted),
                Err(error) => return Err(error.into()),
            };
            if let Some(report) = report {
                Usage::read(report.path())?.check("")?;
                seen.insert(implementation.clone());
            }
            if let Some(calls) = made.futex_calls.filter(|_| made.operations > 0) {
                futex_calls.insert(implementation.clone(), calls as f64 / made.operations as f64);
            }
            error = error.or(made.futex_error);
            CellObserver::finished(progress);
        }
    }
    Ok(Counted::Yes { error })
}

fn drop_in_report() -> anyhow::Result<tempfile::NamedTempFile> {
    let report = tempfile::Builder::new().prefix("spinpark-report-").tempfile();
    report.context("cannot create a temporary file; is TMPDIR writable?")
}

fn intro(request: &Request, session: &Session) {
    let cells = request.cells();
    let runs = cells.iter().map(Measured::runs_per_round).sum::<usize>() * request.rounds;
    let time = about(request.seconds());
    let text = format!(
        "{} × {}: {} of {} ms in shuffled order (seed {}), about {time}. \
         Ctrl-C: the result so far.",
        counted(cells.len(), "cell"),
        counted(request.rounds, "round"),
        counted(runs, "run"),
        request.millis,
        session.seed,
    );
    request.say.wrapped(&text, 2);
    if !request.notes.is_empty() {
        request.say.wrapped(&format!("{}.", request.notes.join("; ")), 2);
    }
    for (why, implementations) in request.absent() {
        request.say.wrapped(&format!("Not here: {implementations} ({why})"), 2);
    }
}

fn record(
    request: &Request,
    environment: &Environment,
    seed: u64,
    cells: Vec<Measured>,
    end: &End,
) -> Record {
    let version = |implementation: &_| list::version(implementation, &request.peers);
    Record {
        head: Head {
            format: FORMAT.to_owned(),
            schema: SCHEMA,
            end: end.name().to_owned(),
            command: request.command.clone(),
            rounds: request.rounds,
            millis: request.millis,
            seed,
            environment: environment.clone(),
        },
        implementations: (request.selected.implementations.iter())
            .map(|implementation| VersionedImplementation {
                implementation: implementation.clone(),
                version: version(implementation),
            })
            .collect(),
        bound_definitions: match request.is_bounds {
            true => request.definitions.bounds.clone(),
            false => Vec::new(),
        },
        cells,
    }
}

fn warnings_of(
    request: &Request,
    findings: &Findings,
    noise: &Noise,
    end: &End,
    futex_error: Option<String>,
) -> Vec<Warning> {
    let blocks = findings.results.iter().map(|result| result.rounds).min().unwrap_or_default();
    let cpus = findings.record.head.environment.cpus;
    let candidates = [
        (matches!(end, End::Interrupted), Warning::Interrupted { blocks, rounds: request.rounds }),
        (request.is_debug_build(), Warning::DebugBuild),
    ];
    let applying = candidates.into_iter().filter_map(|(applies, warning)| applies.then_some(warning));
    applying
        .chain(of_cells(&findings.results, cpus))
        .chain(futex_error.map(|why| Warning::NoFutexCounter { why }))
        .chain(warnings::of_machine(noise))
        .collect()
}
