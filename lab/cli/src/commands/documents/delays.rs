//! `spinpark-lab documents delays`: maps of delays in FreeBSD's mutex, measured or simulated.

use std::env;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::anyhow;
use spinpark_documents::mtx_2006::delays::{Axes, Maps, Place, cells, measured, simulate};
use spinpark_documents::report::delays::{Document, csv, plots, render};
use spinpark_lockbench::locks::experiment::measure;
use spinpark_lockbench::locks::peers::Peers;
use spinpark_lockbench::locks::selection::once;
use spinpark_lockbench::locks::workers::Workers;
use spinpark_lockbench::locks::workloads::allowed_cpus;
use spinpark_measure::report::json::Output;
use spinpark_measure::rounds::cells::Cell as _;
use spinpark_measure::rounds::environment::Environment;
use spinpark_measure::rounds::measure::End;
use spinpark_measure::text::units::{counted, time};
use spinpark_sim::machine::Machine;
use spinpark_sim::workload::SettingError;

use crate::cells::Cells;
use crate::cli::{DelaysMap, millis, nanos};
use crate::commands::sim::distinct;
use spinpark_cli::files::{create, draw, open};
use spinpark_cli::progress::{Progress, about};
use spinpark_cli::say::Say;
use spinpark_cli::session::{Session, check_rounds, on_interrupt};
use spinpark_cli::{exit, own};

/// Measures or simulates, and reports.
pub(super) fn run(wanted: &DelaysMap) -> anyhow::Result<ExitCode> {
    let axes = axes(wanted)?;
    let machine = wanted.machine.as_deref().map(Machine::choose).transpose()?;
    let out = Out::open(wanted)?;
    match &machine {
        Some(machine) => simulated(wanted, &axes, machine, out),
        None => natively(wanted, &axes, out),
    }
}

/// What is varied: as asked for, or as usual.
fn axes(wanted: &DelaysMap) -> anyhow::Result<Axes> {
    let usual: [&[u32]; 2] = match (wanted.machine.is_some(), wanted.quick) {
        (true, true) => [&[1_000, 8_000], &[30_000, 48_750]],
        (true, false) => {
            [&[500, 1_000, 2_000, 4_000, 8_000, 16_000], &[20_000, 30_000, 40_000, 48_750, 60_000, 82_500]]
        }
        (false, true) => [&[300, 3_000], &[100, 1_000]],
        (false, false) => [&[100, 300, 1_000, 3_000, 10_000], &[0, 100, 1_000, 10_000]],
    };
    let given = |option, times: &[Duration], usual: &[u32]| {
        let times: Vec<u32> = times.iter().map(|time| nanos(*time) as u32).collect();
        let named: Vec<String> = times.iter().map(|ns| time(f64::from(*ns))).collect();
        once(option, &named).map_err(anyhow::Error::msg)?;
        anyhow::Ok(if times.is_empty() { usual.to_vec() } else { times })
    };
    let names: Vec<&str> = wanted.places.iter().copied().map(Place::name).collect();
    once("--place", &names).map_err(anyhow::Error::msg)?;
    let places = if wanted.places.is_empty() { Place::ALL.to_vec() } else { wanted.places.clone() };
    Ok(Axes {
        places,
        delays_ns: given("--delay", &wanted.delays, usual[0])?,
        between_ns: given("--between", &wanted.between, usual[1])?,
    })
}

fn simulated(wanted: &DelaysMap, axes: &Axes, machine: &Machine, out: Out) -> anyhow::Result<ExitCode> {
    let seeds = wanted.seeds.unwrap_or(if wanted.quick { 2 } else { 3 });
    let usual = Duration::from_millis(if wanted.quick { 20 } else { 50 });
    on_interrupt(spinpark_sim::stop)?;
    let progress = Progress::free();
    let now = |done: u64, all: u64| {
        progress.at(done as f64 / all.max(1) as f64, format!("{done} of {all} runs are simulated"));
    };
    let maps = simulate(axes, machine, seeds, nanos(wanted.duration.unwrap_or(usual)), &now);
    drop(progress);
    match maps {
        Ok(maps) => {
            out.report(wanted, maps, End::Complete.name(), 0, None)?;
            Ok(ExitCode::SUCCESS)
        }
        Err(SettingError::Stopped) => {
            note!("Interrupted: a map needs all its runs, so there is no result.");
            Ok(ExitCode::from(exit::INTERRUPTED))
        }
        Err(error) => Err(error.into()),
    }
}

fn natively(wanted: &DelaysMap, axes: &Axes, out: Out) -> anyhow::Result<ExitCode> {
    const PROCESS_S: f64 = 0.015;
    let threads = wanted.threads.unwrap_or_else(|| allowed_cpus().min(12));
    let rounds = wanted.rounds.unwrap_or(if wanted.quick { 6 } else { 9 });
    check_rounds(rounds)?;
    let millis = wanted.duration.map_or(if wanted.quick { 20 } else { 50 }, millis);
    let (implementations, cells) = cells(axes, threads).map_err(|what| anyhow!("{what}"))?;
    let runs = cells.iter().map(|cell| cell.runs_per_round()).sum::<usize>() * rounds;
    let seconds = runs as f64 * (PROCESS_S + millis as f64 * 1.25e-3);
    let session = Session::start(wanted.seed)?;
    out.say.wrapped(
        &format!(
            "{}: {} of {millis} ms in shuffled order (seed {}), about {}. Ctrl-C: the result so far.",
            counted(rounds, "round"),
            counted(runs, "run"),
            session.seed,
            about(seconds)
        ),
        2,
    );
    let mut workers = Workers {
        own: own::path()?,
        peers: Peers::default(),
        preload: None,
        recorder: None,
        inherited: env::var_os("LD_PRELOAD").unwrap_or_default(),
        implementations: implementations.into_iter().map(|one| (one.name.clone(), one)).collect(),
        millis,
        untimed: true,
        interrupt: &session.interrupt,
    };
    let progress = Progress::new(runs, Some(seconds));
    let (cells, _, end) = measure(cells, rounds, session.seed, &mut workers, &mut Cells(&progress));
    drop(progress);
    let maps = measured(axes, threads, rounds, millis * 1_000_000, &cells, session.seed);
    out.report(wanted, maps, end.name(), session.seed, Some(session.environment))?;
    exit::code_of_end(end)
}

/// Files that are known to be writable.
struct Out {
    json: Option<Output>,
    csv: Option<Output>,
    say: Say,
}

impl Out {
    fn open(wanted: &DelaysMap) -> anyhow::Result<Self> {
        distinct(&[("--json", &wanted.out.json), ("--csv", &wanted.csv)])?;
        if let Some(directory) = &wanted.plots {
            create("--plots", directory)?;
        }
        Ok(Self {
            json: open(&wanted.out.json)?,
            csv: open(&wanted.csv)?,
            say: Say::apart_from(&[&wanted.out.json, &wanted.csv]),
        })
    }

    fn report(
        self,
        wanted: &DelaysMap,
        maps: Maps,
        end: &str,
        seed: u64,
        environment: Option<Environment>,
    ) -> anyhow::Result<()> {
        if maps.loads.is_empty() {
            // Without data, an earlier run's files stay.
            self.say.line("\nNothing was measured.");
            return Ok(());
        }
        let style = self.say.style();
        self.say.line(format!("\n{}", render(&maps, wanted.details, style).trim_end()));
        if let Some(environment) = &environment {
            self.say.wrapped(&environment.line(), 2);
        }
        if let Some(file) = self.csv {
            file.write_plain(&csv(&maps))?;
        }
        if let Some(directory) = &wanted.plots {
            draw(directory, plots(&maps))?;
        }
        if let Some(file) = self.json {
            file.write(&Document::new(end, own::command_line(), seed, environment, maps))?;
        }
        Ok(())
    }
}

/// Prints an earlier result again.
pub(in crate::commands) fn show(document: &Document, is_detailed: bool, say: Say) {
    say.line(render(&document.maps, is_detailed, say.style()).trim_end());
    if let Some(environment) = &document.environment {
        say.wrapped(&environment.line(), 2);
    }
}
