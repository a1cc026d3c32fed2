//! Where the time of all tasks went: a row per part, a column per number of tasks.

use spinpark_lockbench::report::locks::{dash, threads};
use spinpark_measure::report::{Style, table, text};
use spinpark_measure::units::percent;

use crate::workloads::Workload;
use crate::workloads::result::{CellResult, ConfigurationResult};

/// Numbers of tasks that fit beside each other.
const COLUMNS: usize = 8;

/// The table of one variant, for its baseline; none if the workload has no parts. The largest part of the
/// first column is first.
#[must_use]
pub fn render(workload: &Workload, results: &[&CellResult], cpus: usize, style: Style) -> Option<String> {
    let columns: Vec<(usize, &ConfigurationResult)> = results
        .iter()
        .take(COLUMNS)
        .filter_map(|result| Some((result.tasks, result.configurations.first()?)))
        .collect();
    let (_, first) = columns.first()?;
    let mut parts: Vec<(&String, f64)> = first.breakdown.iter().map(|(part, share)| (part, *share)).collect();
    if parts.is_empty() {
        return None;
    }
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    let title = format!("share of time, {}", workload.tasks);
    let headers: Vec<String> = columns.iter().map(|(tasks, _)| threads(*tasks, cpus)).collect();
    let header: Vec<&str> =
        std::iter::once(title.as_str()).chain(headers.iter().map(String::as_str)).collect();
    let mut rows = table(style, &header);
    for (part, _) in parts {
        let shares = columns.iter().map(|(_, configuration)| {
            configuration.breakdown.get(part).map_or_else(dash, |share| percent(*share))
        });
        rows.add_row(std::iter::once(part.clone()).chain(shares));
    }
    Some(text(&rows))
}
