//! The result of `spinpark bench` for a README: the table, and what one needs to know to believe it.

use std::fmt::Write;

use super::micro_table::row;
use crate::environment::Environment;
use crate::micro::CellResult;

/// A Markdown table with date, machine and command.
#[must_use]
pub fn render(results: &[CellResult], environment: &Environment, command: &str) -> String {
    let mut text = String::from(
        "| shape | threads | glibc | spinpark | ratio | 95 % interval | noise | verdict |\n\
         |---|--:|--:|--:|--:|--:|--:|---|\n",
    );
    for result in results {
        let (cells, _) = row(result, environment.cpus);
        let _ = writeln!(text, "| {} |", cells.map(|cell| cell.replace('*', "\\*")).join(" | "));
    }
    let _ = writeln!(text, "\n`{command}`: {}.", environment.line());
    text.push_str(
        "Time per operation; the ratio is spinpark ÷ glibc, so less than 1 is faster. \\* more threads than CPUs.\n",
    );
    text
}
