//! Many implementations: a row per implementation, a column per number of threads; workloads that have only
//! one share a table.

use spinpark_measure::report::{Style, table, text};

use super::{dash, names, threads, time};
use crate::locks::result::CellResult;

/// A table before it is drawn.
#[derive(Debug, PartialEq)]
pub(super) struct Matrix<'a> {
    /// What it is about: a workload, or several.
    pub(super) title: String,
    /// The columns with their headers.
    pub(super) columns: Vec<(String, &'a CellResult)>,
    /// The implementations.
    pub(super) rows: Vec<&'a str>,
}

/// Groups cells into tables.
pub(super) fn matrices(results: &[CellResult], cpus: usize) -> Vec<Matrix<'_>> {
    let mut groups: Vec<(&str, Vec<&CellResult>)> = Vec::new();
    for result in results {
        match groups.iter_mut().find(|(workload, _)| *workload == result.workload) {
            Some((_, cells)) => cells.push(result),
            None => groups.push((&result.workload, vec![result])),
        }
    }
    let (single, many): (Vec<_>, Vec<_>) = groups.into_iter().partition(|(_, cells)| cells.len() == 1);
    let mut matrices = Vec::new();
    if !single.is_empty() {
        let columns = single.into_iter().flat_map(|(_, cells)| cells);
        let columns = columns.map(|cell| (cell.workload.clone(), cell)).collect();
        matrices.push(Matrix::new(String::from("workload"), columns));
    }
    for (workload, cells) in many {
        let columns = cells.into_iter().map(|cell| (threads(cell.threads, cpus), cell)).collect();
        matrices.push(Matrix::new(workload.to_owned(), columns));
    }
    matrices
}

impl<'a> Matrix<'a> {
    fn new(title: String, columns: Vec<(String, &'a CellResult)>) -> Self {
        let rows = names(columns.iter().map(|(_, cell)| *cell));
        Self { title, columns, rows }
    }

    /// The time per operation, and whether it is the shortest of its column.
    pub(super) fn time(&self, row: &str, column: usize) -> Option<(String, bool)> {
        let cell = self.columns[column].1;
        let own = cell.implementations.iter().find(|implementation| implementation.implementation == row)?;
        let is_best =
            own.time_ns.is_finite() && cell.implementations.iter().all(|other| own.time_ns <= other.time_ns);
        Some((time(own.time_ns), is_best))
    }

    fn render(&self, style: Style) -> String {
        /// A cell's blanks and the longest time.
        const COLUMN: usize = 10;
        let first = self.rows.iter().map(|row| row.chars().count()).max().unwrap_or_default().max(14) + 2;
        let mut tables = String::new();
        let mut left = 0;
        while left < self.columns.len() {
            let mut used = first;
            let mut right = left;
            while let Some((header, _)) = self.columns.get(right) {
                used += COLUMN.max(header.chars().count() + 2);
                if used > usize::from(style.width) && right > left {
                    break;
                }
                right += 1;
            }
            tables += &self.render_columns(left..right, style);
            left = right;
        }
        tables
    }

    fn render_columns(&self, columns: std::ops::Range<usize>, style: Style) -> String {
        let headers = self.columns[columns.clone()].iter().map(|(header, _)| header.as_str());
        let header: Vec<&str> = std::iter::once(self.title.as_str()).chain(headers).collect();
        let mut rows = table(style, &header);
        for row in &self.rows {
            let mut cells = vec![comfy_table::Cell::new(row)];
            for column in columns.clone() {
                let (time, is_best) = self.time(row, column).unwrap_or_else(|| (dash(), false));
                let cell = comfy_table::Cell::new(time);
                let bold = is_best && style.color;
                cells.push(if bold { cell.add_attribute(comfy_table::Attribute::Bold) } else { cell });
            }
            rows.add_row(cells);
        }
        text(&rows)
    }
}

/// Time per operation of everything.
#[must_use]
pub fn render(results: &[CellResult], cpus: usize, style: Style) -> String {
    let tables: Vec<String> = matrices(results, cpus).iter().map(|matrix| matrix.render(style)).collect();
    tables.join("\n")
}
