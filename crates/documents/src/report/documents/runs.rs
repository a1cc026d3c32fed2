//! All that a run gave: its own tables, a plot, what makes it weak.

use serde::Serialize;
use spinpark_lockbench::report::locks::{effects, plot as plot_of_locks};
use spinpark_lockbench::{locks, report::document::Record};
use spinpark_measure::report::plot::{Chart, Line};

use crate::documents::{Outcome, What};
use crate::report::workloads as report;
use crate::workloads::Figure;
use crate::workloads::result::{CellResult, ConfigurationResult};
use crate::workloads::workload::Workload;

#[derive(Debug, Serialize)]
pub struct Ran {
    pub name: String,
    pub title: String,
    pub command: String,
    /// Why there is nothing, or less than there should be.
    pub obstacle: Option<String>,
    pub tables: Vec<Plain>,
    pub plots: Vec<String>,
    pub warnings: Vec<String>,
}

/// A table without a counterpart.
#[derive(Debug, Serialize)]
pub struct Plain {
    pub title: String,
    pub header: Vec<String>,
    pub rows: Vec<Vec<String>>,
    pub explanation: String,
}

/// What a run gave. `cpus` decides which rows are oversubscribed.
pub fn ran(outcome: &Outcome, cpus: usize) -> Ran {
    let (tables, plots) = match &outcome.what {
        What::Nothing(_) => (Vec::new(), Vec::new()),
        What::Workload { workload, results, .. } => of_workload(workload, results, cpus),
        What::Locks { record, results, .. } => of_locks(record, results, cpus),
    };
    Ran {
        name: outcome.name.clone(),
        title: outcome.title.clone(),
        command: outcome.command.clone(),
        obstacle: outcome.obstacle(),
        tables,
        plots,
        warnings: outcome.warnings.iter().map(ToString::to_string).collect(),
    }
}

fn of_workload(workload: &Workload, results: &[CellResult], cpus: usize) -> (Vec<Plain>, Vec<String>) {
    let own = report::own_columns(workload, results);
    let own_headers = own.iter().map(|column| column.header.to_owned());
    let header: Vec<String> = report::header(workload).into_iter().chain(own_headers).collect();
    let (mut tables, mut plots) = (Vec::new(), Vec::new());
    for variant in results.chunk_by(|a, b| a.variant == b.variant) {
        let rows = variant.iter().flat_map(|result| {
            let own = &own;
            result.configurations.iter().enumerate().map(move |(place, configuration)| {
                let (cells, _) = report::row(workload, result, place, cpus);
                cells
                    .into_iter()
                    .chain(own.iter().map(|column| report::shown(configuration, column)))
                    .collect()
            })
        });
        let baseline = variant.iter().find_map(|result| result.configurations.first());
        let explanation =
            baseline.map(|configuration| report::explanation(workload, &configuration.configuration));
        tables.push(Plain {
            title: variant[0].variant.clone(),
            header: header.clone(),
            rows: rows.collect(),
            explanation: explanation.unwrap_or_default().trim().to_owned(),
        });
        plots.extend(chart(workload, variant));
    }
    (tables, plots)
}

/// The figure over numbers of tasks, if there are several.
fn chart(workload: &Workload, results: &[CellResult]) -> Option<String> {
    let first = results.first().filter(|_| results.len() > 1)?;
    let names = first.names();
    let point = |(place, result): (usize, &CellResult), name: &str| {
        let configuration = result.configuration(name).filter(|configuration| configuration.mean > 0.0)?;
        Some((place, ends(configuration)))
    };
    let lines = names.iter().enumerate().map(|(number, name)| {
        let points = results.iter().enumerate().filter_map(|place| point(place, name)).collect();
        Line { name, number, points }
    });
    let better = if workload.figure.more_is_better() { "higher" } else { "lower" };
    let blank = if first.variant.is_empty() { "" } else { ", " };
    let unit = match workload.figure {
        Figure::Elapsed => String::from("seconds"),
        figure => figure.header(),
    };
    let chart = Chart {
        name: workload.name,
        caption: format!(
            "{}{blank}{}: {unit} by {} (log, {better} is better)",
            workload.name, first.variant, workload.tasks
        ),
        tasks: workload.tasks,
        places: results.iter().map(|result| result.tasks).collect(),
        names: names.len(),
        lines: lines.collect(),
    };
    // Without a number above zero there is nothing to draw, and nothing to say.
    chart.render().ok()
}

/// The mean, a standard deviation below and above it. The axis is logarithmic.
fn ends(configuration: &ConfigurationResult) -> [f64; 3] {
    let (mean, deviation) = (configuration.mean, configuration.standard_deviation.unwrap_or_default());
    [(mean - deviation).max(mean / 100.0), mean, mean + deviation]
}

fn of_locks(
    record: &Record,
    results: &[locks::result::CellResult],
    cpus: usize,
) -> (Vec<Plain>, Vec<String>) {
    let names = record.implementations.iter().map(|of| of.implementation.name.clone());
    let names: Vec<String> = names.collect();
    let Some(baseline) = names.first() else { return (Vec::new(), Vec::new()) };
    let table = Plain {
        title: String::from("Time per operation"),
        header: effects::HEADER.map(str::to_owned).to_vec(),
        rows: effects::rows(results, baseline, cpus).map(Vec::from).collect(),
        explanation: effects::explanation(baseline) + " * more threads than CPUs.",
    };
    let plots = plot_of_locks::render_all(results, &names).unwrap_or_default();
    (vec![table], plots.into_iter().map(|(_, svg)| svg).collect())
}
