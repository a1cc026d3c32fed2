//! `spinpark sim tables`: the four documents' tables.

use std::env;
use std::process::ExitCode;

use anyhow::Context;
use spinpark_documents::simulated::{Effort, Table, TableSpec, choose};
use spinpark_measure::report::Style;
use spinpark_measure::report::json::Output;
use spinpark_simlab::report::sim::{html, json, tables as report};
use spinpark_simlab::simulate::sim::workload::SettingError;

use super::{End, counted, distinct, stop_on_ctrl_c};
use crate::cli::Tables;
use crate::commands::bench::command;
use crate::progress::Progress;
use crate::say::Say;

/// Simulates one table after the other; the runs of each go side by side.
pub(super) fn run(wanted: &Tables) -> anyhow::Result<ExitCode> {
    let specs = choose(&wanted.names)?;
    distinct(&[("--json", &wanted.json), ("--html", &wanted.html)])?;
    let json = wanted.json.as_deref().map(Output::open).transpose()?;
    let html = wanted.html.as_deref().map(Output::open).transpose()?;
    let outputs = [&wanted.json, &wanted.html];
    let say = Say { on_stderr: outputs.into_iter().flatten().any(|path| Output::is_stdout(path)) };
    if specs.is_empty() {
        say.line("There are no tables of documents yet.");
    }
    stop_on_ctrl_c()?;
    let style = Style::of_terminal();
    let effort = if wanted.quick { Effort::Quick } else { Effort::Full };
    let (mut made, mut end, mut has_failed) = (Vec::new(), End::Complete, false);
    for (number, spec) in specs.iter().enumerate() {
        let place = format!("{} of {}", number + 1, specs.len());
        match simulate(*spec, effort, &place) {
            Ok(table) => {
                say.line(report::render(spec.name, &table, style));
                made.push((spec.name.to_owned(), table));
            }
            Err(SettingError::Stopped) => {
                end = End::Interrupted;
                break;
            }
            Err(error) => {
                has_failed = true;
                note!("{}", style.wrap(&format!("{} could not be simulated: {error}", spec.name), 2));
            }
        }
    }
    if let Some(verdict) = report::verdict(&made, style) {
        say.line(verdict.trim_end());
    }
    let command = command(env::args_os().skip(1));
    // What an earlier run has written is worth more than nothing.
    let has_data = !made.is_empty() || end == End::Complete;
    if let Some(file) = json.filter(|_| has_data) {
        file.write(&json::Tables::new(end.name(), &command, wanted.quick, &made))?;
    }
    if let Some(file) = html.filter(|_| has_data) {
        let page = html::tables(&command, end.name(), &made);
        file.write_plain(&page.context("cannot write the tables as HTML")?)?;
    }
    if end == End::Interrupted {
        note!("Interrupted after {} of {}.", counted(made.len(), "table"), specs.len());
    }
    Ok(end.code(has_failed || report::is_missed(&made)))
}

fn simulate(spec: TableSpec, effort: Effort, place: &str) -> Result<Table, SettingError> {
    let progress = Progress::free();
    let now = |done: u64, all: u64| {
        let part = done as f64 / all.max(1) as f64;
        progress.at(part, format!("{} (table {place}): {done}/{all}", spec.name));
    };
    now(0, 1);
    (spec.run)(effort, &now)
}
