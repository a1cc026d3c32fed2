//! What there is to choose from.

use spinpark_documents::registry::tables;
use spinpark_lockbench::report::locks::list::ITERATION;
use spinpark_measure::report::{Style, table, text};
use spinpark_sim::locks::locks;
use spinpark_sim::machine::{Machine, machines};
use spinpark_sim::workload::workloads;

/// Everything.
#[must_use]
pub fn render(style: Style) -> String {
    let mut out = all_machines(style);
    let others =
        "`plain-N` is a machine of N cores in round figures; NAME:N uses the first N CPUs of a machine.";
    out += &(style.wrap(others, 0) + "\n\n");
    out += &all_locks(style);
    out += "\n";
    out += &all_workloads(style);
    out += &(style.wrap(ITERATION, 0) + "\n\n");
    out += &all_tables(style);
    out
}

fn all_machines(style: Style) -> String {
    let mut rows = table(style, &["machine", "CPUs", "about"]);
    align_left(&mut rows, 2);
    for name in machines() {
        if let Ok(machine) = Machine::load(name) {
            rows.add_row([machine.name.clone(), machine.cpus().to_string(), machine.about]);
        }
    }
    text(&rows)
}

fn all_locks(style: Style) -> String {
    let mut rows = table(style, &["lock", "is a", "about"]);
    align_left(&mut rows, 1);
    align_left(&mut rows, 2);
    for lock in locks() {
        rows.add_row([lock.name.to_owned(), lock.kinds().join(", "), lock.about.to_owned()]);
    }
    text(&rows)
}

fn all_workloads(style: Style) -> String {
    let mut rows = table(style, &["workload", "needs a", "about"]);
    align_left(&mut rows, 1);
    align_left(&mut rows, 2);
    for workload in workloads() {
        let needs = workload.needs().unwrap_or("–");
        rows.add_row([workload.name, needs, workload.about]);
    }
    let numbers =
        "plane-… and moves-… take any numbers of iterations: plane-150-700 has 150 inside and 700 outside.";
    format!("{}{}\n", text(&rows), style.wrap(numbers, 0))
}

fn all_tables(style: Style) -> String {
    if tables().is_empty() {
        return String::from("There are no tables of documents yet.\n");
    }
    let mut rows = table(style, &["table", "about"]);
    align_left(&mut rows, 1);
    for table in tables() {
        rows.add_row([table.name, table.about]);
    }
    text(&rows)
}

fn align_left(table: &mut comfy_table::Table, column: usize) {
    if let Some(column) = table.column_mut(column) {
        column.set_cell_alignment(comfy_table::CellAlignment::Left);
    }
}
