//! The final output of `compare`, on standard output and in the file.

use std::process::ExitCode;

use spinpark_measure::compare::Comparison;
use spinpark_measure::configuration::Baseline;
use spinpark_measure::environment::Environment;
use spinpark_measure::launch::OwnNumber;
use spinpark_measure::machine::own_peak_bytes;
use spinpark_measure::measure::{End, Measurement};
use spinpark_measure::report::json::{
    Document, FORMAT, FORMAT_VERSION, Record, RecordedSettings, Settings, metrics,
};
use spinpark_measure::report::{Printed, compare_table, reading};
use spinpark_measure::warnings::{self, Warning};

use super::Measured;
use super::request::Request;
use crate::exit;
use crate::say::Say;
use crate::session::Session;

/// Prints the table, writes the file, and decides the exit code.
pub(super) fn report(
    mut request: Request,
    session: &Session,
    measured: Measured,
) -> anyhow::Result<ExitCode> {
    let json = request.json.take();
    // Taken before the statistics, which need memory of their own.
    let memory_floor = own_peak_bytes();
    let comparison = compare(&request, &measured.measurement, session.seed);
    let warnings = warnings_of(&request, &comparison, &measured);
    print(&request, session, &comparison, (&warnings, measured.waiting.as_deref()), memory_floor);
    if let Some(json) = json.filter(|_| !measured.measurement.runs.is_empty()) {
        json.write(&document(&request, session, &measured, &comparison, &warnings, memory_floor))?;
    }
    exit::code_of_end(measured.measurement.end)
}

fn compare(request: &Request, measurement: &Measurement, seed: u64) -> Comparison {
    let has_own = !matches!(request.number, OwnNumber::None);
    Comparison::new(&measurement.runs, &metrics(has_own), seed)
}

fn warnings_of(request: &Request, comparison: &Comparison, measured: &Measured) -> Vec<Warning> {
    let interrupted = matches!(measured.measurement.end, End::Interrupted)
        .then_some(Warning::Interrupted { blocks: comparison.blocks, rounds: request.rounds });
    let others = warnings::of(comparison, &measured.noise, request.drop_in.is_debug_build());
    interrupted.into_iter().chain(others).collect()
}

fn print(
    request: &Request,
    session: &Session,
    comparison: &Comparison,
    (warnings, waiting): (&[Warning], Option<&str>),
    memory_floor: u64,
) {
    let say = request.say;
    tables(say, comparison, &request.printed, memory_floor, &session.environment);
    if let Some(waiting) = waiting.filter(|_| comparison.blocks > 0) {
        say.wrapped(waiting, 0);
    }
    let warnings = compare_table::warnings(warnings, say.style());
    if !warnings.is_empty() {
        say.line(warnings.trim_end());
    }
    if request.is_demo {
        say.line(
            "\nNow your own program, as it is, without a rebuild:\n\n    spinpark compare -- PROGRAM ARGUMENTS…\n",
        );
        say.wrapped(
            "`spinpark compare --help` has examples; `spinpark run -- PROGRAM` just runs it on these locks.",
            0,
        );
    }
}

/// The same from a file; `text` is all of it.
pub(in super::super) fn show(text: &str, say: Say) -> Result<(), String> {
    let record = Record::parse(text)?;
    let RecordedSettings { printed, memory_floor_bytes, .. } = &record.settings;
    tables(say, &record.comparison(), printed, *memory_floor_bytes, &record.environment);
    crate::say::warnings(&reading::warnings(text));
    Ok(())
}

fn tables(
    say: Say,
    comparison: &Comparison,
    printed: &Printed,
    memory_floor: u64,
    environment: &Environment,
) {
    if comparison.blocks == 0 {
        return; // a warning says so
    }
    say.line(format!("\n{}", compare_table::render(comparison, printed, memory_floor as f64, say.style())));
    if let Some(sentence) = compare_table::conclusion(comparison, printed, say.style()) {
        say.line(sentence);
    }
    say.wrapped(&environment.line(), 2);
}

fn document<'a>(
    request: &'a Request,
    session: &'a Session,
    measured: &'a Measured,
    comparison: &'a Comparison,
    warnings: &'a [Warning],
    memory_floor_bytes: u64,
) -> Document<'a> {
    let metric_from_output = match &request.number {
        OwnNumber::Output(metric) => Some(metric.expression()),
        _ => None,
    };
    Document {
        format: FORMAT,
        format_version: FORMAT_VERSION,
        end: measured.measurement.end.name(),
        command: request.command.clone(),
        drop_in: request.drop_in.path.display().to_string(),
        settings: Settings {
            rounds: request.rounds,
            seed: session.seed,
            baseline: if measured.had_drop_in { Baseline::Disabled } else { request.baseline },
            metric_from_output,
            printed: &request.printed,
            memory_floor_bytes,
        },
        environment: &session.environment,
        noise: &measured.noise,
        usage: measured.prepared.usage,
        comparison,
        warnings,
        runs: &measured.measurement.runs,
    }
}
