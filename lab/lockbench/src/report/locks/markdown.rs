//! The result for a README: tables, and what one needs to know to believe them.

use std::fmt::Write;

use spinpark_measure::rounds::environment::Environment;

use super::matrix::matrices;
use super::{effects, pairwise};
use crate::locks::bounds::BoundResult;
use crate::locks::result::CellResult;
use crate::report::bounds as bounds_table;

/// Markdown tables with date, machine and command. `varied`: the implementation of which all others are
/// variants.
#[must_use]
pub fn render(
    results: &[CellResult],
    bounds: &[BoundResult],
    varied: Option<&str>,
    environment: &Environment,
    command: &str,
) -> String {
    const MARK: &str = "\\* more threads than CPUs.";
    let cpus = environment.cpus;
    let mut text = String::new();
    let explanation = match (pairwise::names(results), bounds.is_empty()) {
        (_, true) if varied.is_some() => {
            let baseline = varied.unwrap_or_default();
            table(&mut text, &effects::HEADER, 5, effects::rows(results, baseline, cpus));
            effects::explanation(baseline) + " " + MARK
        }
        (_, false) => {
            let rows = bounds.iter().map(|bound| bounds_table::row(bound, cpus));
            table(&mut text, &bounds_table::HEADER, 6, rows);
            String::from(
                "Time per operation, unless said otherwise. Ratios are ours ÷ the other, within rounds, with 95 % intervals.",
            )
        }
        (Some(names), true) => {
            let rows = results.iter().filter_map(|result| pairwise::row(result, cpus));
            table(&mut text, &pairwise::header(names), 7, rows.map(|(cells, _)| cells));
            let [baseline, other] = names;
            format!("Time per operation; the ratio is {other} ÷ {baseline}, so less than 1 is faster. {MARK}")
        }
        (None, true) => {
            for matrix in matrices(results, cpus) {
                let headers = matrix.columns.iter().map(|(header, _)| header.as_str());
                let header: Vec<&str> = std::iter::once(matrix.title.as_str()).chain(headers).collect();
                let rows = matrix.rows.iter().map(|row| {
                    let times = (0..matrix.columns.len()).map(|column| match matrix.time(row, column) {
                        Some((time, true)) => format!("**{time}**"),
                        Some((time, false)) => time,
                        None => super::dash(),
                    });
                    std::iter::once((*row).to_owned()).chain(times).collect::<Vec<_>>()
                });
                table(&mut text, &header, header.len(), rows);
                text.push('\n');
            }
            String::from(
                "Time per operation of all threads together, by number of threads; bold: the shortest",
            )
        }
    };
    let _ = writeln!(text, "\n`{command}`: {}.", environment.line());
    let _ = writeln!(text, "{explanation}");
    text
}

/// A table whose columns from the second one to the `right`-th are aligned to the right.
fn table<R: AsRef<[String]>>(
    text: &mut String,
    header: &[&str],
    right: usize,
    rows: impl Iterator<Item = R>,
) {
    let _ = writeln!(text, "| {} |", header.join(" | ").replace('*', "\\*"));
    let align = |column| if (1..right).contains(&column) { "--:" } else { "---" };
    let _ = writeln!(text, "|{}|", (0..header.len()).map(align).collect::<Vec<_>>().join("|"));
    for row in rows {
        let cells: Vec<String> = row.as_ref().iter().map(|cell| escape(cell)).collect();
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
}

/// `16*` is not emphasis; `**1 ns**` is.
fn escape(cell: &str) -> String {
    if cell.starts_with("**") { cell.to_owned() } else { cell.replace('*', "\\*") }
}
