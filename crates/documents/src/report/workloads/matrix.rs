//! The table of the documents: a row per number of tasks, and for each configuration the change against the
//! baseline in %, with the standard deviation in %.

use spinpark_lockbench::report::locks::{dash, threads};
use spinpark_measure::report::{Style, table, text};
use spinpark_measure::units::change;

use super::{deviation, value};
use crate::workloads::Workload;
use crate::workloads::result::{CellResult, ConfigurationResult};

/// Of a column beside its longest word, and of the deviation beside it.
const BLANKS: usize = 3;
const DEVIATION: usize = 11;

/// Configurations whose columns fit beside each other, with the baseline's.
fn chunks<'a>(names: &[&'a str], baseline: &str, width: usize) -> Vec<Vec<&'a str>> {
    let column = |name: &str| {
        let word = name.split(' ').map(|word| word.chars().count()).max().unwrap_or_default();
        word.max(8) + BLANKS + DEVIATION
    };
    let first = 10 + column(baseline);
    let mut chunks: Vec<Vec<&str>> = Vec::new();
    let mut used = usize::MAX;
    for name in names {
        used = used.saturating_add(column(name));
        match chunks.last_mut().filter(|chunk| used <= width && chunk.len() < CONFIGURATIONS) {
            Some(chunk) => chunk.push(name),
            None => {
                chunks.push(vec![name]);
                used = first + column(name);
            }
        }
    }
    chunks
}

/// No more configurations beside each other: more columns do not fit a line that is read at a glance.
const CONFIGURATIONS: usize = 3;

/// The table of one variant; none if there is nothing to compare.
#[must_use]
pub fn render(workload: &Workload, results: &[&CellResult], cpus: usize, style: Style) -> Option<String> {
    let first = results.first()?;
    let (baseline, others) = first.configurations.split_first().filter(|(_, others)| !others.is_empty())?;
    if results.len() < 2 {
        return None;
    }
    let names: Vec<&str> = others.iter().map(|configuration| configuration.configuration.as_str()).collect();
    let chunks = chunks(&names, &baseline.configuration, usize::from(style.width));
    let tables =
        chunks.iter().map(|names| part(workload, results, &baseline.configuration, names, cpus, style));
    Some(tables.collect::<Vec<_>>().join("\n"))
}

fn part(
    workload: &Workload,
    results: &[&CellResult],
    baseline: &str,
    names: &[&str],
    cpus: usize,
    style: Style,
) -> String {
    let figure = workload.figure;
    let base = format!("{baseline}, {}", figure.header());
    let mut header = vec![workload.tasks, &base, "sd"];
    for name in names {
        header.extend([name, "sd"]);
    }
    let mut rows = table(style, &header);
    for result in results {
        let configuration = |name: &str| {
            result.configurations.iter().find(|configuration| configuration.configuration == name)
        };
        let mut cells = vec![threads(result.tasks, cpus)];
        let base = configuration(baseline);
        cells.push(base.map_or_else(dash, |configuration| value(figure, configuration.mean)));
        cells.push(deviation(base.and_then(ConfigurationResult::relative_deviation)));
        for name in names {
            let configuration = configuration(name);
            cells.push(
                configuration.and_then(|configuration| configuration.of_means).map_or_else(dash, change),
            );
            cells.push(deviation(configuration.and_then(ConfigurationResult::relative_deviation)));
        }
        rows.add_row(cells);
    }
    text(&rows)
}
