//! `spinpark-lab sim sweep`: many locks at many numbers of threads.

use std::process::ExitCode;

use anyhow::{Context, bail};
use spinpark_experiments::shards::{self, Header, Shard};
use spinpark_experiments::sweep::{Cell, Ladder, cells};
use spinpark_measure::report::{Style, distinct};
use spinpark_measure::text::units::{self, counted};
use spinpark_sim::Failure;
use spinpark_sim::locks::locks;
use spinpark_sim::machine::Machine;
use spinpark_sim::workload::{Report, Setting, SettingError};

use super::swept::Out;
use super::{many, stop_on_ctrl_c};
use crate::cli::{Sweep, Swept, nanos};
use spinpark_cli::say::Say;

/// Checks the request, simulates, reports.
pub(super) fn run(wanted: &Sweep) -> anyhow::Result<ExitCode> {
    if let Some(shard) = wanted.shard {
        check_shown(shard, &wanted.shown)?;
    }
    let ladder = ladder(wanted)?;
    let settings = ladder.settings();
    check(&ladder, &settings)?;
    let header = Header::new(&ladder, wanted.shard).context("cannot read the program's own file")?;
    let out = Out::open(&wanted.shown)?;
    stop_on_ctrl_c()?;
    let style = out.say.style();
    let mine = wanted.shard.map_or_else(|| (0..settings.len()).collect(), |shard| shard.runs(&settings));
    out.say.line(style.wrap(&intro(&ladder, wanted.shard, mine.len()), 2));

    let made = many::run(&mine.iter().map(|&run| settings[run].clone()).collect::<Vec<_>>());
    let runs = || mine.iter().zip(&made.reports).filter_map(|(&run, report)| Some((run, report.as_ref()?)));
    let cells = if wanted.shard.is_none() { cells(&ladder, &made.reports) } else { Vec::new() };
    if wanted.shard.is_none() {
        out.table(&cells, style);
    }
    Say { on_stderr: true }.wrapped(&made.speed(), 2);
    out.write(made.end, &cells, || shards::text(&header, runs()))?;
    made.say_end();
    let mut failed = failed(&cells, style);
    if wanted.shard.is_some() {
        failed = runs().filter_map(|(_, report)| failed_run(report, style)).collect();
    }
    failed.iter().for_each(|line| note!("{line}"));
    Ok(made.end.code(!failed.is_empty()))
}

/// A shard has part of each cell, so there is nothing to compare yet.
fn check_shown(shard: Shard, shown: &Swept) -> anyhow::Result<()> {
    let given = [
        ("--json", shown.json.is_some()),
        ("--csv", shown.csv.is_some()),
        ("--html", shown.html.is_some()),
        ("--plots", shown.plots.is_some()),
        ("--details", shown.details),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => bail!(
            "{option} is about a whole sweep, and --shard {shard} makes a part of it\nGive {option} to `spinpark-lab sim merge`"
        ),
        None => Ok(()),
    }
}

fn ladder(wanted: &Sweep) -> anyhow::Result<Ladder> {
    let machines = wanted.machines.iter().map(|name| Machine::choose(name));
    let machines = machines.collect::<Result<Vec<_>, _>>()?;
    let largest = machines.iter().map(Machine::cpus).max().unwrap_or(1);
    let default =
        || std::iter::successors(Some(1), |threads| Some(threads * 2)).take_while(|&n| n <= 2 * largest);
    let mut threads = if wanted.threads.is_empty() { default().collect() } else { wanted.threads.clone() };
    threads.sort_unstable();
    threads.dedup();
    let mut ladder = Ladder {
        machines,
        workloads: distinct(wanted.workloads.iter().cloned()),
        locks: distinct(wanted.locks.iter().cloned()),
        threads,
        seeds: (0..wanted.seeds as u64).map(|number| wanted.seed.wrapping_add(number)).collect(),
        for_ns: nanos(wanted.duration),
    };
    if ladder.locks.is_empty() {
        ladder.locks = fitting(&ladder)?;
    }
    Ok(ladder)
}

/// The locks that all the workloads can use.
fn fitting(ladder: &Ladder) -> anyhow::Result<Vec<String>> {
    let mut fitting = Vec::new();
    for lock in locks() {
        let settings = Ladder { locks: vec![lock.name.to_owned()], ..ladder.clone() }.settings();
        match settings.iter().map(Setting::check).find(Result::is_err) {
            None => fitting.push(lock.name.to_owned()),
            Some(Err(SettingError::WrongKind { .. })) => {}
            Some(other) => other?,
        }
    }
    if fitting.is_empty() {
        bail!("no lock can be used by all of these workloads\n`spinpark-lab sim list` shows what each needs");
    }
    Ok(fitting)
}

/// Reports what cannot be simulated before any run.
fn check(ladder: &Ladder, settings: &[Setting]) -> anyhow::Result<()> {
    settings.iter().step_by(ladder.seeds.len()).try_for_each(|setting| Ok(setting.check()?))
}

fn intro(ladder: &Ladder, shard: Option<Shard>, runs: usize) -> String {
    let cells = ladder.machines.len() * ladder.workloads.len() * ladder.threads.len();
    let shard = shard.map_or_else(String::new, |shard| format!(", shard {shard}"));
    format!(
        "{} × {} × {}{shard}: {} of {}. Ctrl-C: the result so far.",
        counted(cells, "cell"),
        counted(ladder.locks.len(), "lock"),
        counted(ladder.seeds.len(), "seed"),
        counted(runs, "run"),
        units::seconds(ladder.for_ns as f64 * 1e-9)
    )
}

/// A line for each lock of which a run failed.
pub(super) fn failed(cells: &[Cell], style: Style) -> Vec<String> {
    let lines = cells.iter().flat_map(|cell| &cell.locks).filter_map(|lock| {
        let summary = &lock.summary;
        let (seed, failure) = summary.failure.as_ref()?;
        let of = (&*summary.lock, &*summary.workload, summary.threads, &*summary.machine);
        Some(failed_line(of, *seed, failure, style))
    });
    lines.collect()
}

fn failed_run(report: &Report, style: Style) -> Option<String> {
    let of = (&*report.lock, &*report.workload, report.threads, &*report.machine);
    Some(failed_line(of, report.seed, report.outcome.failure.as_ref()?, style))
}

fn failed_line(of: (&str, &str, u32, &str), seed: u64, failure: &Failure, style: Style) -> String {
    let (lock, workload, threads, machine) = of;
    let threads = counted(threads as usize, "thread");
    style.wrap(&format!("Failed: {lock}, {workload} × {threads} on {machine}, seed {seed}: {failure}"), 2)
}
