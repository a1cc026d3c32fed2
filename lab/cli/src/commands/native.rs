//! `spinpark-lab sim native`: how far the simulator is from this machine.

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use spinpark_experiments::accuracy::{self, Case, Compared, Effort, Summary};
use spinpark_experiments::calibrate::{CalibrateError, Calibration, Cpus, machine_file};
use spinpark_lockbench::locks::definitions::Definitions;
use spinpark_measure::rounds::environment::Environment;
use spinpark_measure::rounds::failure::RunError;
use spinpark_sim::machine::Machine;
use spinpark_sim::stop;
use spinpark_sim::workload::SettingError;

use super::calibrate::Bar;
use crate::cli::Native;
use spinpark_cli::exit::FAILED;
use spinpark_cli::files::open;
use spinpark_cli::own;
use spinpark_cli::progress::{Progress, about};
use spinpark_cli::say::Say;
use spinpark_cli::session::Session;

/// How much is done.
struct Extent {
    rounds: usize,
    millis: u64,
    calibrations: usize,
    effort: Effort,
}

impl Extent {
    fn of(native: &Native) -> Self {
        let (rounds, millis, calibrations, effort) = match native.quick {
            true => (3, 60, 3, Effort { runs: 1, for_ns: 20_000_000 }),
            false => (5, 120, 7, Effort { runs: 3, for_ns: 40_000_000 }),
        };
        Self { rounds: native.rounds.unwrap_or(rounds), millis, calibrations, effort }
    }
}

/// What --json writes.
#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    environment: &'a Environment,
    machine: &'a str,
    /// Of the cases on which the bounds are: as many threads as CPUs.
    summary: Summary,
    /// Of the others.
    further: Summary,
    cases: &'a [Compared],
}

/// What --measured reads of it.
#[derive(Deserialize)]
struct Earlier {
    cases: Vec<Measured>,
}

#[derive(Deserialize)]
struct Measured {
    shape: String,
    lock: String,
    threads: usize,
    cpus: usize,
    native: Vec<f64>,
}

/// Measures, simulates, compares.
pub(crate) fn run(native: &Native) -> anyhow::Result<ExitCode> {
    if cfg!(debug_assertions) {
        bail!("this is a debug build, whose locks are slower than those in use\nBuild with --release");
    }
    let cpus = Cpus::read()?;
    let cases = cases(native, &cpus)?;
    let extent = Extent::of(native);
    let say = Say::apart_from(&[&native.out.json]);
    let json = open(&native.out.json)?;
    let earlier = native.measured.as_deref().map(|path| read(path, &cases)).transpose()?;
    let session = Session::start(None)?;
    let machine = match &native.machine {
        Some(name) => Machine::choose(name)?,
        None => calibrate(&cpus, &extent, &session)?,
    };
    if machine.cpus() < cpus.places.len().min(2) as u32 {
        bail!(
            "the machine {} has {} CPU; this machine has more\nTake a file that `spinpark-lab sim calibrate` wrote here",
            machine.name,
            machine.cpus()
        );
    }
    let measured = match earlier {
        Some(measured) => measured,
        None => measure(&cases, &cpus, &extent, &session)?,
    };
    let simulated = simulate(&cases, &machine, &extent, &session)?;
    let compared: Vec<Compared> = cases
        .into_iter()
        .zip(measured.into_iter().zip(simulated))
        .map(|(case, (native, simulated))| Compared { case, native, simulated })
        .collect();
    let (summary, further) = Summary::both(&compared);
    let style = say.style();
    say.line(format_args!("\n{}", accuracy::render(&compared, style)));
    say.line(style.wrap(&format!("{}, as many threads as CPUs: {}", machine.name, summary.words()), 2));
    if further.cases > 0 {
        say.line(style.wrap(&format!("more threads than CPUs, without a bound: {}", further.figures()), 2));
    }
    say.line(style.wrap(&session.environment.line(), 2));
    if let Some(json) = json {
        json.write_compact(&Document {
            format: "spinpark sim native",
            environment: &session.environment,
            machine: &machine.name,
            summary,
            further,
            cases: &compared,
        })?;
    }
    Ok(if summary.holds() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

fn cases(native: &Native, cpus: &Cpus) -> anyhow::Result<Vec<Case>> {
    let known = accuracy::SHAPES;
    if let Some(unknown) = native.workloads.iter().find(|name| !known.contains(&name.as_str())) {
        bail!("`{unknown}` is not available on both sides\nThere are: {}", known.join(", "));
    }
    let definitions = Definitions::built_in().map_err(anyhow::Error::msg)?;
    let mut cases = accuracy::cases(&definitions, cpus.places.len()).map_err(anyhow::Error::msg)?;
    cases.retain(|case| native.workloads.is_empty() || native.workloads.contains(&case.shape));
    Ok(cases)
}

/// What an earlier run measured of each case.
fn read(path: &Path, cases: &[Case]) -> anyhow::Result<Vec<Vec<f64>>> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let earlier: Earlier = serde_json::from_str(&text)
        .with_context(|| format!("{} is no result of `spinpark-lab sim native --json`", path.display()))?;
    let find = |case: &Case| {
        let is_it = |one: &&Measured| {
            (&one.shape, &one.lock, one.threads, one.cpus)
                == (&case.shape, &case.lock, case.threads, case.cpus)
        };
        let found = earlier.cases.iter().find(is_it).map(|one| one.native.clone());
        found.with_context(|| {
            format!("{} does not have `{}`\nMeasure it: leave out --measured", path.display(), case.words())
        })
    };
    cases.iter().map(find).collect()
}

fn calibrate(cpus: &Cpus, extent: &Extent, session: &Session) -> anyhow::Result<Machine> {
    let mut bar = Bar::new(extent.calibrations, Arc::clone(&session.interrupt));
    let calibration = match Calibration::run(cpus, extent.calibrations, &mut bar) {
        Err(CalibrateError::Interrupted) => return Err(RunError::Interrupted.into()),
        other => other?,
    };
    let sheet = machine_file::sheet(&calibration, cpus, &session.environment, "this machine");
    Ok(Machine::parse("this machine", &sheet.to_string())?)
}

fn measure(cases: &[Case], cpus: &Cpus, extent: &Extent, session: &Session) -> anyhow::Result<Vec<Vec<f64>>> {
    let native = accuracy::Native {
        own: own::path()?,
        cpus: cpus.places.iter().map(|place| place.cpu).collect(),
        millis: extent.millis,
        interrupt: &session.interrupt,
    };
    let progress = Progress::new(extent.rounds * cases.len(), None);
    let mut measured = vec![Vec::new(); cases.len()];
    for _ in 0..extent.rounds {
        for (case, values) in cases.iter().zip(&mut measured) {
            progress.now(case.words());
            values.push(native.run(case)?);
            progress.advance();
        }
    }
    Ok(measured)
}

fn simulate(
    cases: &[Case],
    machine: &Machine,
    extent: &Extent,
    session: &Session,
) -> anyhow::Result<Vec<Vec<f64>>> {
    let runs = cases.len() * extent.effort.runs as usize;
    let (progress, start, ended) = (Progress::free(), Instant::now(), AtomicUsize::new(0));
    progress.at(0.0, format!("0/{runs} runs simulated"));
    // On a thread of the sweep.
    let done = || {
        let ended = ended.fetch_add(1, Relaxed) + 1;
        let part = ended as f64 / runs.max(1) as f64;
        let left = start.elapsed().as_secs_f64() * (1.0 - part) / part;
        progress.at(part, format!("{ended}/{runs} runs simulated, about {} left", about(left)));
        if session.interrupt.is_requested() {
            stop();
        }
    };
    match accuracy::simulate(cases, machine, extent.effort, done) {
        Err(SettingError::Stopped) => Err(RunError::Interrupted.into()),
        other => Ok(other?),
    }
}
