//! What a workload's runs say: tables, warnings, JSON.

use spinpark_documents::report::workloads::{FEW_CELLS, breakdown, details, explanation, matrix, table};
use spinpark_documents::wake_op_2005::condvar::FUTEX_CALLS;
use spinpark_documents::workloads::Workload;
use spinpark_documents::workloads::result::{CellResult, Document, Record, of_workload};
use spinpark_lockbench::locks::counters;
use spinpark_measure::report::json::Output;
use spinpark_measure::rounds::machine::Noise;
use spinpark_measure::rounds::warnings::{self, Warning};

use spinpark_cli::say::Say;

/// A record, and what follows from it.
pub(in crate::commands) struct WorkloadReport {
    pub(in crate::commands) workload: &'static Workload,
    pub(in crate::commands) record: Record,
    pub(in crate::commands) results: Vec<CellResult>,
    pub(in crate::commands) noise: Noise,
    pub(in crate::commands) warnings: Vec<Warning>,
}

impl WorkloadReport {
    pub(super) fn new(workload: &'static Workload, record: Record, noise: Noise, is_debug: bool) -> Self {
        let results = results(workload, &record);
        let warnings = warnings_of(workload, &record, &results, &noise, is_debug);
        Self { workload, record, results, noise, warnings }
    }

    /// Prints tables, and on standard error what makes them weak; writes the JSON.
    pub(super) fn report(&self, is_detailed: bool, say: Say, json: Option<Output>) -> anyhow::Result<()> {
        let Self { workload, record, results, noise, warnings } = self;
        print(workload, record, results, is_detailed, say);
        spinpark_cli::say::warnings(warnings);
        if let Some(json) = json {
            json.write_compact(&Document { record, noise, warnings, results })?;
        }
        Ok(())
    }
}

/// What follows from the runs.
pub(super) fn results(workload: &Workload, record: &Record) -> Vec<CellResult> {
    record.cells.iter().filter_map(|cell| CellResult::new(cell, workload.figure, record.head.seed)).collect()
}

/// Prints the tables.
pub(super) fn print(
    workload: &Workload,
    record: &Record,
    results: &[CellResult],
    is_detailed: bool,
    say: Say,
) {
    let style = say.style();
    let cpus = record.head.environment.cpus;
    let Some(baseline) = results.first().and_then(|result| result.configurations.first()) else {
        say.line("\nNothing was measured.");
        return;
    };
    for cells in results.chunk_by(|a, b| a.variant == b.variant) {
        say.line("");
        if !cells[0].variant.is_empty() {
            say.line(format!("{}, {}:", workload.name, cells[0].variant));
        }
        let mut tables: Vec<String> = matrix(workload, cells, cpus, style).into_iter().collect();
        tables.push(table(workload, cells, cpus, style));
        tables.extend(workload.table.map(|table| table(cells, style)));
        if is_detailed || (workload.table.is_none() && results.len() <= FEW_CELLS) {
            tables.push(details(workload, cells, cpus, style));
        }
        if is_detailed {
            tables.extend(breakdown(workload, cells, cpus, style));
        }
        say.line(tables.join("\n"));
    }
    say.wrapped(&explanation(workload, &baseline.configuration), 0);
    say.line("");
    say.wrapped(&record.head.environment.line(), 2);
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
        (record.head.end == "interrupted", Warning::Interrupted { blocks, rounds: record.head.rounds }),
        (is_debug, Warning::DebugBuild),
        (name.is_some(), Warning::OtherFileSystem { name: name.unwrap_or_default() }),
    ];
    let applying = candidates.into_iter().filter_map(|(applies, warning)| applies.then_some(warning));
    let counts = workload.columns.iter().any(|column| column.key == FUTEX_CALLS);
    let uncounted = counts.then(counters::obstacle).flatten().map(|why| Warning::NoFutexCounter { why });
    applying
        .chain(uncounted)
        .chain(of_workload(workload.name, results, record.head.millis > 0, record.head.environment.cpus))
        .chain(warnings::of_machine(noise))
        .collect()
}
