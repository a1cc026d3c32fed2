//! A workload's cells, measured and reported.

use std::env;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use spinpark_bench::environment::Environment;
use spinpark_bench::failure::RunError;
use spinpark_bench::locks::counters;
use spinpark_bench::machine::{Noise, Watch};
use spinpark_bench::measure::End;
use spinpark_bench::report::json::Output;
use spinpark_bench::report::workloads::document::{Document, FORMAT, Record, SCHEMA};
use spinpark_bench::report::workloads::{FEW_CELLS, breakdown, details, matrix, table};
use spinpark_bench::report::{Style, compare_table, wrap};
use spinpark_bench::rounds::{self, Cell as _};
use spinpark_bench::target::DropIn;
use spinpark_bench::warnings::{self, Warning};
use spinpark_bench::workloads::Workload;
use spinpark_bench::workloads::condvar::FUTEX_CALLS;
use spinpark_bench::workloads::directory::Place;
use spinpark_bench::workloads::experiment::{Cell, Measured};
use spinpark_bench::workloads::resources::Needs;
use spinpark_bench::workloads::result::CellResult;
use spinpark_bench::workloads::runner::Runner;

use super::super::request::command;
use super::before::Before;
use crate::cli::Common;
use crate::exit;
use crate::progress::Progress;
use crate::say::Say;
use crate::session::Session;

/// What is to be measured.
pub(super) struct Experiment<'a> {
    pub(super) workload: &'static Workload,
    pub(super) cells: Vec<Cell>,
    /// Length of a counted phase.
    pub(super) millis: u64,
    /// Where the user wants files.
    pub(super) dir: Option<&'a Path>,
    /// What comes before the first round.
    pub(super) before: Before,
}

/// Checks the request, measures, reports.
pub(super) fn measure(common: &Common, experiment: Experiment<'_>) -> anyhow::Result<ExitCode> {
    let Experiment { workload, mut cells, millis, dir, before } = experiment;
    check(workload, common, &mut cells)?;
    let place = workload.uses_directory.then(|| Place::find(dir)).transpose()?;
    let needs = cells.iter().map(|cell| cell.needs).fold(Needs::default(), Needs::max);
    needs.check(place.as_ref().map(|place| place.path.as_path()))?;
    let own = env::current_exe().context("cannot find out where this command itself is")?;
    let drop_in = before.drop_in(&cells, &own)?;
    let json = common.json.as_deref().map(Output::open).transpose()?;
    let say = Say { on_stderr: common.json.as_deref().is_some_and(Output::is_stdout) };
    let session = Session::start(common.seed)?;
    let runner = Runner {
        workload: workload.name,
        own,
        preload: drop_in.as_ref().map(|drop_in| drop_in.path.clone()),
        inherited: env::var_os("LD_PRELOAD").unwrap_or_default(),
        millis,
        place,
        seed: session.seed,
        interrupt: &session.interrupt,
    };
    let cells: Vec<Measured> = cells.into_iter().map(Measured::new).collect();
    intro(common, workload, &cells, &runner, say);
    let watch = Watch::start();
    let progress = Progress::new(cells.iter().map(Measured::runs_per_round).sum::<usize>() * common.repeat);
    let (cells, end) = match before.make_runs(&runner, &cells, &progress) {
        Ok(()) => rounds::measure(cells, common.repeat, session.seed, &mut |measured: &Measured, plan| {
            progress.now(format!("{} {}, {}", workload.name, measured.cell, plan.target));
            let report = runner.run(&measured.cell, plan, None)?;
            progress.advance();
            Ok(report)
        }),
        Err(error) => match error.downcast::<RunError>()? {
            RunError::Interrupted => (cells, End::Interrupted),
            error => return Err(error.into()),
        },
    };
    drop(progress);
    let noise = watch.noise();
    let is_debug = cfg!(debug_assertions) || drop_in.as_ref().is_some_and(DropIn::is_debug_build);
    let record = record(common, workload, &runner, &session.environment, cells, &end);
    report(common, workload, &record, (&noise, is_debug), say, json)?;
    exit::code_of_end(end)
}

/// What can be wrong about a request of any workload.
fn check(workload: &Workload, common: &Common, cells: &mut [Cell]) -> anyhow::Result<()> {
    /// More than this is a slip of the pen.
    const MANY: usize = 4096;
    if cells.iter().any(|cell| cell.tasks == 0 || cell.tasks > MANY) {
        bail!("the number of {} must be between 1 and {MANY}", workload.tasks);
    }
    if cells.iter().all(|cell| cell.arms.is_empty()) {
        bail!("nothing is left to measure: sections of a mutex need a --lock");
    }
    if let Some(baseline) = &common.baseline {
        cells.iter_mut().try_for_each(|cell| cell.set_baseline(baseline)).map_err(anyhow::Error::msg)?;
    }
    Ok(())
}

fn intro(common: &Common, workload: &Workload, cells: &[Measured], runner: &Runner<'_>, say: Say) {
    let runs = cells.iter().map(Measured::runs_per_round).sum::<usize>() * common.repeat;
    let length = match runner.millis {
        0 => String::new(),
        millis => {
            // Warm-up and the counted phase; the process itself.
            let seconds = runs as f64 * (millis as f64 * 1.25 / 1e3 + 0.02);
            let time = if seconds < 120.0 {
                format!("{seconds:.0} s")
            } else {
                format!("{:.0} min", seconds / 60.0)
            };
            format!(" of {millis} ms, about {time}")
        }
    };
    say.line(wrap(
        &format!(
            "{}: {} cell{} × {} rounds: {runs} runs{length}, in shuffled order (seed {}). Ctrl-C: the result so far.",
            workload.name,
            cells.len(),
            if cells.len() == 1 { "" } else { "s" },
            common.repeat,
            runner.seed,
        ),
        2,
    ));
    say.line(wrap(&format!("From document {}.", workload.source), 2));
    if let Some(place) = &runner.place {
        say.line(format!("Files: private directories in {} ({})", place.path.display(), place.file_system));
    }
}

fn record(
    common: &Common,
    workload: &Workload,
    runner: &Runner<'_>,
    environment: &Environment,
    cells: Vec<Measured>,
    end: &End,
) -> Record {
    Record {
        format: FORMAT.to_owned(),
        schema: SCHEMA,
        end: end.name().to_owned(),
        command: command(env::args_os().skip(1)),
        workload: workload.name.to_owned(),
        figure: workload.figure.header(),
        rounds: common.repeat,
        millis: runner.millis,
        seed: runner.seed,
        file_system: runner.place.as_ref().map(|place| place.file_system.clone()),
        environment: environment.clone(),
        cells,
    }
}

/// Prints tables, and on standard error what makes them weak; writes the JSON.
fn report(
    common: &Common,
    workload: &Workload,
    record: &Record,
    (noise, is_debug): (&Noise, bool),
    say: Say,
    json: Option<Output>,
) -> anyhow::Result<()> {
    let results = results(workload, record);
    let warnings = warnings_of(workload, record, &results, noise, is_debug);
    print(workload, record, &results, common.details, say);
    eprint!("{}", compare_table::warnings(&warnings));
    if let Some(json) = json {
        json.write_compact(&Document { record, noise, warnings: &warnings, results: &results })?;
    }
    Ok(())
}

/// What follows from the runs.
pub(super) fn results(workload: &Workload, record: &Record) -> Vec<CellResult> {
    record.cells.iter().filter_map(|cell| CellResult::new(cell, workload.figure, record.seed)).collect()
}

/// Prints the tables.
pub(super) fn print(
    workload: &Workload,
    record: &Record,
    results: &[CellResult],
    is_detailed: bool,
    say: Say,
) {
    let style = Style::of_stdout();
    let cpus = record.environment.cpus;
    let Some(baseline) = results.first().and_then(|result| result.arms.first()) else {
        say.line("\nNothing was measured.");
        return;
    };
    for variant in results.chunk_by(|a, b| a.variant == b.variant) {
        let cells: Vec<&CellResult> = variant.iter().collect();
        say.line("");
        if !cells[0].variant.is_empty() {
            say.line(format!("{}, {}:", workload.name, cells[0].variant));
        }
        let mut tables: Vec<String> = matrix::render(workload, &cells, cpus, style).into_iter().collect();
        tables.push(table::render(workload, &cells, cpus, style));
        tables.extend(workload.table.map(|table| table(&cells, style)));
        if is_detailed || (workload.table.is_none() && results.len() <= FEW_CELLS) {
            tables.push(details::render(workload, &cells, cpus, style));
        }
        if is_detailed {
            tables.extend(breakdown::render(workload, &cells, cpus, style));
        }
        say.line(tables.join("\n"));
    }
    say.line(table::explanation(workload, &baseline.arm));
    say.line(wrap(&record.environment.line(), 2));
}

fn warnings_of(
    workload: &Workload,
    record: &Record,
    results: &[CellResult],
    noise: &Noise,
    is_debug: bool,
) -> Vec<Warning> {
    let blocks = results.iter().map(|result| result.rounds).min().unwrap_or_default();
    let name = record.file_system.clone().filter(|name| name != "tmpfs" && name != "ramfs");
    let candidates = [
        (record.end == "interrupted", Warning::Interrupted { blocks, rounds: record.rounds }),
        (is_debug, Warning::DebugBuild),
        (name.is_some(), Warning::OtherFileSystem { name: name.unwrap_or_default() }),
    ];
    let applying = candidates.into_iter().filter_map(|(applies, warning)| applies.then_some(warning));
    let counts = workload.columns.iter().any(|column| column.key == FUTEX_CALLS);
    let uncounted = counts.then(counters::obstacle).flatten().map(|why| Warning::NoFutexCounter { why });
    applying
        .chain(uncounted)
        .chain(warnings::of_workload(workload, results, record.environment.cpus))
        .chain(warnings::of_machine(noise))
        .collect()
}
