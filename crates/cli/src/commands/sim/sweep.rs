//! `spinpark sim sweep`: many locks at many numbers of threads.

use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

use anyhow::{Context, bail};
use spinpark_measure::report::Style;
use spinpark_measure::report::json::Output;
use spinpark_measure::units;
use spinpark_simlab::report::sim::{html, json, sweep as report};
use spinpark_simlab::simulate::sim::locks::locks;
use spinpark_simlab::simulate::sim::machine::Machine;
use spinpark_simlab::simulate::sim::workload::{Setting, SettingError};
use spinpark_simlab::simulate::sweep::{Cell, Ladder, cells};

use super::{End, counted, distinct, many, stop_on_ctrl_c};
use crate::cli::{Sweep, nanos};
use crate::commands::bench::command;
use crate::say::Say;

/// Files that are known to be writable.
struct Files {
    json: Option<Output>,
    csv: Option<Output>,
    html: Option<Output>,
}

/// Checks the request, simulates, reports.
pub(super) fn run(wanted: &Sweep) -> anyhow::Result<ExitCode> {
    let ladder = ladder(wanted)?;
    let settings = ladder.settings();
    check(&ladder, &settings)?;
    distinct(&[("--json", &wanted.json), ("--csv", &wanted.csv), ("--html", &wanted.html)])?;
    let open = |path: &Option<std::path::PathBuf>| path.as_deref().map(Output::open).transpose();
    let files = Files { json: open(&wanted.json)?, csv: open(&wanted.csv)?, html: open(&wanted.html)? };
    if let Some(directory) = &wanted.plots {
        let made = fs::create_dir_all(directory);
        made.with_context(|| format!("cannot create the directory {}", directory.display()))?;
    }
    let outputs = [&wanted.json, &wanted.csv, &wanted.html];
    let say = Say { on_stderr: outputs.into_iter().flatten().any(|path| Output::is_stdout(path)) };
    stop_on_ctrl_c()?;
    let style = Style::of_terminal();
    say.line(style.wrap(&intro(&ladder, settings.len()), 2));

    let made = many::run(&settings);
    let cells = cells(&ladder, &made.reports);
    let table = report::render(&cells, wanted.details, style);
    say.line(if cells.is_empty() {
        String::from("\nNothing was simulated.")
    } else {
        format!("\n{}", table.trim_end())
    });
    note!("{}", made.speed());
    // What an earlier run has written is worth more than nothing.
    if !cells.is_empty() {
        files.write(made.end, &cells)?;
        if let Some(directory) = &wanted.plots {
            draw(directory, &cells)?;
        }
    }
    made.say_end();
    let failed = failed(&cells, style);
    failed.iter().for_each(|line| note!("{line}"));
    Ok(made.end.code(!failed.is_empty()))
}

impl Files {
    fn write(self, end: End, cells: &[Cell]) -> anyhow::Result<()> {
        let command = command(env::args_os().skip(1));
        if let Some(file) = self.json {
            file.write_compact(&json::Sweep::new(end.name(), &command, cells))?;
        }
        if let Some(file) = self.csv {
            file.write_plain(&report::csv(cells))?;
        }
        if let Some(file) = self.html {
            let page = html::sweep(&command, end.name(), cells);
            file.write_plain(&page.context("cannot write the sweep as HTML")?)?;
        }
        Ok(())
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
        workloads: unique(&wanted.workloads),
        locks: unique(&wanted.locks),
        threads,
        seeds: (0..wanted.seeds as u64).map(|number| wanted.seed.wrapping_add(number)).collect(),
        for_ns: nanos(wanted.duration),
    };
    if ladder.locks.is_empty() {
        ladder.locks = fitting(&ladder)?;
    }
    Ok(ladder)
}

/// Without what was said before.
fn unique(names: &[String]) -> Vec<String> {
    let mut known = Vec::new();
    for name in names {
        if !known.contains(name) {
            known.push(name.clone());
        }
    }
    known
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
        bail!("no lock can be used by all of these workloads\n`spinpark sim list` shows what each needs");
    }
    Ok(fitting)
}

/// Whatever cannot be simulated is said before anything is.
fn check(ladder: &Ladder, settings: &[Setting]) -> anyhow::Result<()> {
    settings.iter().step_by(ladder.seeds.len()).try_for_each(|setting| Ok(setting.check()?))
}

fn intro(ladder: &Ladder, runs: usize) -> String {
    let cells = ladder.machines.len() * ladder.workloads.len() * ladder.threads.len();
    format!(
        "{} × {} × {}: {} of {}. Ctrl-C: the result so far.",
        counted(cells, "cell"),
        counted(ladder.locks.len(), "lock"),
        counted(ladder.seeds.len(), "seed"),
        counted(runs, "run"),
        units::seconds(ladder.for_ns as f64 * 1e-9)
    )
}

fn draw(directory: &Path, cells: &[Cell]) -> anyhow::Result<()> {
    for (name, svg) in report::plots(cells)? {
        let path = directory.join(name);
        fs::write(&path, svg).with_context(|| format!("cannot write {}", path.display()))?;
        note!("Plot: {}", path.display());
    }
    Ok(())
}

/// A line for each lock of which a run failed.
fn failed(cells: &[Cell], style: Style) -> Vec<String> {
    let lines = cells.iter().flat_map(|cell| &cell.locks).filter_map(|lock| {
        let (seed, failure) = lock.summary.failure.as_ref()?;
        let summary = &lock.summary;
        let (name, workload, machine) = (&summary.lock, &summary.workload, &summary.machine);
        let line = format!(
            "Failed: {name}, {workload} × {} on {machine}, seed {seed}: {failure}",
            counted(summary.threads as usize, "thread")
        );
        Some(style.wrap(&line, 2))
    });
    lines.collect()
}
