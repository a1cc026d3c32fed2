//! What an operation costs, how evenly tasks were served, and the workload's own columns.

use spinpark_lockbench::report::locks::{dash, threads};
use spinpark_measure::report::{Style, table, text};
use spinpark_measure::units::{bytes, number, per_operation, percent, seconds};

use crate::workloads::result::{CellResult, ConfigurationResult};
use crate::workloads::workload::Kind;
use crate::workloads::{Column, Workload};

/// A row per cell and configuration of one variant.
#[must_use]
pub fn render(workload: &Workload, results: &[&CellResult], cpus: usize, style: Style) -> String {
    let configurations = || results.iter().flat_map(|result| &result.configurations);
    let has = |column: &&Column| {
        configurations().any(|configuration| configuration.columns.contains_key(column.key))
    };
    let columns: Vec<&Column> = workload.columns.iter().filter(has).collect();
    let has_spread = configurations().any(|configuration| configuration.spread.is_some());
    let mut header = vec![workload.tasks, "configuration", "user/op", "system/op", "switches/op"];
    if has_spread {
        header.extend(["least", "most", "Jain"]);
    }
    header.extend(columns.iter().map(|column| column.header));
    let mut rows = table(style, &header);
    if let Some(column) = rows.column_mut(1) {
        column.set_cell_alignment(comfy_table::CellAlignment::Left);
    }
    for result in results {
        for (place, configuration) in result.configurations.iter().enumerate() {
            let mut cells = vec![
                if place == 0 { threads(result.tasks, cpus) } else { String::new() },
                configuration.configuration.clone(),
                per_operation(configuration.user_s),
                per_operation(configuration.system_s),
                small(configuration.switches),
            ];
            if has_spread {
                cells.extend(spread(configuration));
            }
            cells.extend(columns.iter().map(|column| shown(configuration, column)));
            rows.add_row(cells);
        }
    }
    text(&rows)
}

fn spread(configuration: &ConfigurationResult) -> [String; 3] {
    configuration.spread.map_or_else(
        || [dash(), dash(), dash()],
        |spread| [number(spread.least as f64), number(spread.most as f64), format!("{:.3}", spread.jain)],
    )
}

/// A number of the workload's own.
pub(crate) fn shown(configuration: &ConfigurationResult, column: &Column) -> String {
    let Some(&value) = configuration.columns.get(column.key) else { return dash() };
    match column.kind {
        Kind::Number => number(value),
        Kind::Seconds => seconds(value),
        Kind::Bytes => bytes(value),
        Kind::Share => percent(value),
    }
}

/// A count per operation: mostly far below one.
fn small(count: f64) -> String {
    match count {
        0.0 => String::from("0"),
        c if c < 0.001 => format!("{c:.0e}"),
        c if c < 1.0 => format!("{c:.3}"),
        c => number(c),
    }
}
