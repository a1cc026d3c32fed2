//! The workloads, a few lines each.

use crate::report::{Style, table, text};
use crate::workloads::WORKLOADS;

/// All of them, with the document that each comes from.
#[must_use]
pub fn render(style: Style) -> String {
    let mut rows = table(style, &["workload", "what tasks do", "document and benchmark"]);
    for column in rows.column_iter_mut() {
        column.set_cell_alignment(comfy_table::CellAlignment::Left);
    }
    for workload in WORKLOADS {
        let rungs: Vec<String> = workload.rungs.iter().map(usize::to_string).collect();
        let about =
            format!("{}\n{}\n{} {}", workload.about, workload.variants, workload.tasks, rungs.join(" "));
        rows.add_row([workload.name, about.trim(), workload.source]);
    }
    text(&rows)
}
