//! `spinpark bench pthread`: our pthread locks against glibc's, one shape of contention at a time.

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Context, bail};
use serde::Serialize;
use spinpark_bench::arm::{Arm, Baseline, Environments};
use spinpark_bench::blocks::Plan;
use spinpark_bench::environment::Environment;
use spinpark_bench::failure::RunError;
use spinpark_bench::launch::{Launcher, OwnNumber, Program};
use spinpark_bench::machine::{Noise, Watch};
use spinpark_bench::measure::{End, Run};
use spinpark_bench::micro::{self, Cell, CellExecutor, CellResult, Measured, cells};
use spinpark_bench::report::json::{FORMAT_VERSION, Output};
use spinpark_bench::report::{Style, compare_table, markdown, micro_table, wrap};
use spinpark_bench::sample::Sample;
use spinpark_bench::shapes::{self, Shape};
use spinpark_bench::target::{DropIn, Target};
use spinpark_bench::warnings::{self, Warning};

use super::prepare::on_spinpark;
use crate::cli::BenchPthread;
use crate::exit;
use crate::progress::Progress;
use crate::session::{Session, check_rounds};

/// Runs cells as worker processes of this same command.
struct Workers<'a> {
    launcher: Launcher<'a>,
    millis: u64,
}

impl Workers<'_> {
    fn select(&mut self, cell: &Cell) {
        let words = ["__bench-worker", cell.shape.name(), "--threads"].map(OsString::from);
        let numbers = [cell.threads.to_string(), String::from("--millis"), self.millis.to_string()];
        self.launcher.set_args(words.into_iter().chain(numbers.map(OsString::from)).collect());
    }
}

impl CellExecutor for Workers<'_> {
    fn execute(&mut self, cell: &Cell, plan: &Plan) -> Result<Sample, RunError> {
        self.select(cell);
        self.launcher.run(plan.arm, plan.padding, None).map(|(sample, _)| sample)
    }
}

/// All data of a benchmark.
#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    format_version: u32,
    end: &'static str,
    drop_in: String,
    rounds: usize,
    millis: u64,
    seed: u64,
    baseline: Baseline,
    environment: &'a Environment,
    noise: &'a Noise,
    results: &'a [CellResult],
    warnings: &'a [Warning],
    runs: Vec<CellRuns<'a>>,
}

/// The runs of one cell.
#[derive(Serialize)]
struct CellRuns<'a> {
    shape: &'static str,
    threads: usize,
    runs: &'a [Run],
}

/// Checks the request, measures, reports.
pub(crate) fn run(bench: &BenchPthread) -> anyhow::Result<ExitCode> {
    check_rounds(bench.rounds)?;
    let cells = cells(&shapes_of(bench)?);
    let own = env::current_exe().context("cannot find out where this command itself is")?;
    let target = Target::find(own.as_os_str())?;
    let drop_in = DropIn::find()?;
    drop_in.check_machine(target.machine)?;
    let json = bench.json.as_deref().map(Output::open).transpose()?;
    let session = Session::start(bench.seed)?;
    let environments = Environments::new(&drop_in.path, env::var_os("LD_PRELOAD"), bench.baseline.into());
    let program = Program::new(target.path, Vec::new());
    let launcher = Launcher::new(program, environments, &OwnNumber::Worker, &session.interrupt);
    let mut workers = Workers { launcher, millis: bench.millis };
    warm_up(&mut workers, &cells)?;
    print_intro(bench, &session, cells.len());

    let watch = Watch::start();
    let mut progress = Progress::new(cells.len() * bench.rounds * 3);
    let (measured, end) = micro::measure(&cells, bench.rounds, session.seed, &mut workers, &mut progress);
    drop(progress);
    report(bench, &session, &drop_in, json, &measured, &watch.noise(), end)
}

fn report(
    bench: &BenchPthread,
    session: &Session,
    drop_in: &DropIn,
    json: Option<Output>,
    measured: &[Measured],
    noise: &Noise,
    end: End,
) -> anyhow::Result<ExitCode> {
    let results: Vec<_> = measured.iter().filter_map(|cell| CellResult::new(cell, session.seed)).collect();
    let warnings = warnings_of(bench, session, &results, noise, &end, drop_in.is_debug_build());
    print(bench, session, &results, &warnings);
    if let Some(json) = json {
        json.write(&Document {
            format: "spinpark bench pthread",
            format_version: FORMAT_VERSION,
            end: end.name(),
            drop_in: drop_in.path.display().to_string(),
            rounds: bench.rounds,
            millis: bench.millis,
            seed: session.seed,
            baseline: bench.baseline.into(),
            environment: &session.environment,
            noise,
            results: &results,
            warnings: &warnings,
            runs: measured.iter().map(cell_runs).collect(),
        })?;
    }
    exit::code_of_end(end)
}

fn cell_runs(measured: &Measured) -> CellRuns<'_> {
    CellRuns { shape: measured.cell.shape.name(), threads: measured.cell.threads, runs: &measured.runs }
}

fn shapes_of(bench: &BenchPthread) -> anyhow::Result<Vec<&'static dyn Shape>> {
    if bench.shapes.is_empty() {
        return Ok(shapes::all().to_vec());
    }
    let find = |name: &String| match shapes::by_name(name) {
        Some(shape) => Ok(shape),
        None => {
            let names: Vec<_> = shapes::all().iter().map(|shape| shape.name()).collect();
            bail!("there is no shape `{name}`; there are: {}", names.join(", "))
        }
    };
    bench.shapes.iter().map(find).collect()
}

/// One run of each kind: caches are warm then, and the drop-in is known to work.
fn warm_up(workers: &mut Workers<'_>, cells: &[Cell]) -> anyhow::Result<()> {
    let Some(first) = cells.first() else { return Ok(()) };
    workers.select(first);
    workers.launcher.run(Arm::Glibc, 0, None)?;
    on_spinpark(&workers.launcher)?;
    Ok(())
}

fn print_intro(bench: &BenchPthread, session: &Session, cells: usize) {
    let runs = cells * bench.rounds * 3;
    println!(
        "{cells} cells × {} rounds × 3 runs of {} ms in shuffled order (seed {}), about {} s.",
        bench.rounds,
        bench.millis,
        session.seed,
        (runs as u64 * (bench.millis + 10)).div_ceil(1000)
    );
}

fn warnings_of(
    bench: &BenchPthread,
    session: &Session,
    results: &[CellResult],
    noise: &Noise,
    end: &End,
    debug_build: bool,
) -> Vec<Warning> {
    let blocks = results.iter().map(|result| result.blocks).min().unwrap_or_default();
    let cpus = session.environment.cpus;
    let interrupted = Warning::Interrupted { blocks, rounds: bench.rounds };
    let candidates = [
        (matches!(end, End::Interrupted), interrupted),
        (debug_build, Warning::DebugBuild),
        (results.iter().any(|result| result.threads > cpus), Warning::Oversubscribed { cpus }),
    ];
    let applying = candidates.into_iter().filter_map(|(applies, warning)| applies.then_some(warning));
    applying.chain(warnings::of_machine(noise)).collect()
}

fn print(bench: &BenchPthread, session: &Session, results: &[CellResult], warnings: &[Warning]) {
    let style = Style::of_stdout();
    if bench.markdown {
        let command = format!("spinpark bench pthread --rounds {} --millis {}", bench.rounds, bench.millis);
        println!("\n{}", markdown::render(results, &session.environment, &command));
    } else {
        println!("\n{}", micro_table::render(results, session.environment.cpus, style));
        println!("Time per operation; the ratio is spinpark ÷ glibc, so less than 1 is faster.");
        if let Some(fairness) = micro_table::render_fairness(results, style) {
            println!("\n{fairness}");
        }
        println!("{}", wrap(&session.environment.line(), 2));
    }
    eprint!("{}", compare_table::warnings(warnings));
}
