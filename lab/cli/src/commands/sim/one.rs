//! `spinpark-lab sim run`: one setting, some seeds.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use spinpark_experiments::run_report;
use spinpark_experiments::summary::Summary;
use spinpark_measure::report::json::Output;
use spinpark_measure::text::units::{self, counted};
use spinpark_sim::machine::Machine;
use spinpark_sim::workload::{Report, Setting};
use spinpark_sim::{Record, perfetto};

use super::{distinct, many, stop_on_ctrl_c};
use crate::cli::{SimRun, nanos};
use spinpark_cli::files::open;
use spinpark_cli::own;
use spinpark_cli::say::Say;

/// Checks the request, simulates, reports.
pub(super) fn run(wanted: &SimRun) -> anyhow::Result<ExitCode> {
    let machine = Machine::choose(&wanted.machine)?;
    let settings = settings(wanted, &machine);
    settings[0].check()?;
    distinct(&[("--json", &wanted.out.json), ("--trace", &wanted.trace)])?;
    let json = open(&wanted.out.json)?;
    let trace = open(&wanted.trace)?;
    let say = Say::apart_from(&[&wanted.out.json, &wanted.trace]);
    stop_on_ctrl_c()?;
    let style = say.style();
    say.line(style.wrap(&intro(wanted, &settings[0]), 2));
    let made = many::run(&settings);
    let reports: Vec<Report> = made.reports.iter().flatten().cloned().collect();
    let end = made.end;
    if let Some(summary) = Summary::of(&machine, &reports) {
        say.line(format!("\n{}", run_report::render(&summary, style).trim_end()));
        if let Some(json) = json {
            let command = own::command_line();
            json.write_compact(&run_report::json(end.name(), &command, &summary, &reports))?;
        }
        Say { on_stderr: true }.wrapped(&made.speed(), 2);
    }
    if let (Some(file), Some(path), Some(Some(first))) = (trace, &wanted.trace, made.reports.first()) {
        write_trace(path, file, first)?;
    }
    made.say_end();
    Ok(end.code(reports.iter().any(|report| report.outcome.failure.is_some())))
}

fn settings(wanted: &SimRun, machine: &Machine) -> Vec<Setting> {
    let threads = wanted.threads.unwrap_or(machine.cpus());
    let first = Setting::new(machine.clone(), &wanted.lock, &wanted.workload, threads);
    let one = |number: usize| {
        let slices = if wanted.trace.is_some() && number == 0 { perfetto::MOST_SLICES } else { 0 };
        Setting {
            seed: wanted.seed.wrapping_add(number as u64),
            for_ns: nanos(wanted.duration),
            record: Record { slices, ..Record::default() },
            ..first.clone()
        }
    };
    (0..wanted.seeds).map(one).collect()
}

fn intro(wanted: &SimRun, first: &Setting) -> String {
    format!(
        "{} on {} ({}), {} × {}: {} of {}, from seed {}.",
        first.lock,
        first.machine.name,
        counted(first.machine.cpus() as usize, "CPU"),
        first.workload,
        counted(first.threads as usize, "thread"),
        counted(wanted.seeds, "run"),
        units::seconds(wanted.duration.as_secs_f64()),
        wanted.seed
    )
}

fn write_trace(path: &Path, file: Output, report: &Report) -> anyhow::Result<()> {
    let mut text = Vec::new();
    perfetto::write(report, &mut text)?;
    file.write_plain(&String::from_utf8(text).context("the timeline is no text")?)?;
    note!("Timeline: {} (open it in https://ui.perfetto.dev)", path.display());
    if report.outcome.slices_cut > 0 {
        let cut = units::number(report.outcome.slices_cut as f64);
        let line = format!(
            "It is cut: {cut} later slices are left out. A shorter --duration, or fewer threads, fits."
        );
        Say { on_stderr: true }.wrapped(&line, 2);
    }
    Ok(())
}
