//! The report: everything that it says, before it is Markdown or HTML; what of a run stands next to a
//! published number; and all that a run gave: its own tables, a plot, what makes it weak.

use serde::Serialize;
use spinpark_charts::plot::{Chart, Line};
use spinpark_lockbench::locks::result as of_locks;
use spinpark_lockbench::report::document::Record;
use spinpark_lockbench::report::locks::{effects, plot as plot_of_locks};
use spinpark_measure::rounds::environment::Environment;
use spinpark_measure::stats::Ratio;
use spinpark_measure::text::units::{change, number, percent, seconds};

use crate::documents::{CounterpartNote, Definition, Ours, RunReport, Show, Table, What};
use crate::published::by_name;
use crate::report::workloads::{self as tables, value, word};
use crate::workloads::result::{CellResult, ConfigurationResult};
use crate::workloads::{Figure, Workload};

#[derive(Debug, Serialize)]
pub struct Page {
    pub environment: Environment,
    pub command: String,
    /// "complete", "interrupted" or "failed".
    pub end: String,
    /// Short runs, wide intervals.
    pub is_quick: bool,
    pub documents: Vec<Section>,
}

#[derive(Debug, Serialize)]
pub struct Section {
    pub number: String,
    pub title: String,
    pub link: Option<String>,
    pub machine: String,
    pub claim: String,
    /// What our own counterpart is, and is not.
    pub notes: Vec<String>,
    pub tables: Vec<Comparison>,
    pub runs: Vec<Ran>,
}

/// A published table, with our numbers.
#[derive(Debug, Serialize)]
pub struct Comparison {
    pub name: String,
    pub title: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
    /// What a reader of it must know.
    pub sentences: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Column {
    pub header: String,
    /// Whether the numbers are ours.
    pub is_ours: bool,
}

#[derive(Debug, Serialize)]
pub struct Row {
    pub mark: Mark,
    pub cells: Vec<Counterpart>,
}

/// Whether a machine can show a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// It has the CPUs.
    Here,
    /// It has not.
    Beyond,
    /// Nothing of the row was measured.
    Published,
}

impl Mark {
    /// As it stands in the first column.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Here => "✓",
            Self::Beyond => "*",
            Self::Published => "",
        }
    }
}

pub fn section(
    number: &str,
    definition: &Definition,
    outcomes: &[RunReport],
    environment: &Environment,
) -> Section {
    let cpus = environment.cpus;
    let kernel = version(&environment.kernel);
    let notes = definition.notes.iter().filter(|note| is_about(note, kernel));
    Section {
        number: number.to_owned(),
        title: definition.title.clone(),
        link: definition.link.clone(),
        machine: definition.machine.clone(),
        claim: definition.claim.clone(),
        notes: notes.map(|note| note.text.replace("{kernel}", &environment.kernel)).collect(),
        tables: definition.tables.iter().filter_map(|table| compare(table, outcomes, cpus)).collect(),
        runs: outcomes.iter().map(|outcome| ran(outcome, cpus)).collect(),
    }
}

/// The first two numbers of a kernel's release.
fn version(release: &str) -> [u32; 2] {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    [numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)]
}

fn is_about(note: &CounterpartNote, kernel: [u32; 2]) -> bool {
    note.since.is_none_or(|since| since <= kernel) && note.before.is_none_or(|before| kernel < before)
}

/// A column's standard deviation is the column after it.
const DEVIATION: &str = "sd_pct";

fn compare(table: &Table, outcomes: &[RunReport], cpus: usize) -> Option<Comparison> {
    let published = by_name(&table.published)?.table();
    let names = &published.header;
    let mut columns = Vec::new();
    let mut rows: Vec<Row> =
        published.rows.iter().map(|_| Row { mark: Mark::Published, cells: Vec::new() }).collect();
    let plain = |text: &str| Counterpart { text: or_dash(text), detail: String::new() };
    for (place, &name) in names.iter().enumerate().filter(|(_, name)| **name != DEVIATION) {
        let header = table.headers.get(name).cloned().unwrap_or_else(|| name.replace('_', " "));
        columns.push(Column { header, is_ours: false });
        let has_deviation = names.get(place + 1) == Some(&DEVIATION);
        for (row, cells) in rows.iter_mut().zip(&published.rows) {
            let deviation = if has_deviation { format!(" ±{}", cells[place + 1]) } else { String::new() };
            row.cells.push(plain(&(cells[place].to_owned() + &deviation)));
        }
        add_ours(table, name, outcomes, cpus, &mut columns, &mut rows);
    }
    for extra in &table.extra {
        if !extra.values.is_empty() {
            columns.push(Column { header: extra.column.clone(), is_ours: false });
            for (row, value) in rows.iter_mut().zip(&extra.values) {
                row.cells.push(plain(value));
            }
        }
        add_ours(table, &extra.column, outcomes, cpus, &mut columns, &mut rows);
    }
    let is_beyond = rows.iter().any(|row| row.mark == Mark::Beyond);
    let beyond = table.beyond.as_ref().filter(|_| is_beyond);
    let beyond = beyond.map(|sentence| sentence.replace("{cpus}", &cpus.to_string()));
    let sentences = table.note.clone().into_iter().chain(beyond).collect();
    Some(Comparison { name: table.published.clone(), title: table.title.clone(), columns, rows, sentences })
}

/// Adds the columns of ours that belong to the published one `name`.
fn add_ours(
    table: &Table,
    name: &str,
    outcomes: &[RunReport],
    cpus: usize,
    columns: &mut Vec<Column>,
    rows: &mut [Row],
) {
    let own = || table.ours.iter().filter(|ours| ours.column == name);
    let mut headers: Vec<&str> = Vec::new();
    for ours in own() {
        let header = ours.header.as_deref().unwrap_or("here");
        if !headers.contains(&header) {
            headers.push(header);
        }
    }
    for header in headers {
        columns.push(Column { header: header.to_owned(), is_ours: true });
        for (place, row) in rows.iter_mut().enumerate() {
            let is_it = |ours: &&Ours| {
                ours.header.as_deref().unwrap_or("here") == header
                    && (ours.rows.is_empty() || ours.rows.contains(&place))
            };
            let found = own().find(is_it).and_then(|ours| {
                let tasks = ours.tasks.or_else(|| tasks(table, place))?;
                Some((counterpart(ours, tasks, outcomes)?, ours.cpus.unwrap_or(tasks)))
            });
            let Some((cell, needed)) = found else {
                row.cells.push(Counterpart { text: or_dash(""), detail: String::new() });
                continue;
            };
            row.cells.push(cell);
            let is_here = needed <= cpus && row.mark != Mark::Beyond;
            row.mark = if is_here || row.mark == Mark::Here { Mark::Here } else { Mark::Beyond };
        }
    }
}

/// The number of tasks that a row of the published table has.
fn tasks(table: &Table, row: usize) -> Option<usize> {
    let column = table.tasks.as_ref()?;
    let number = by_name(&table.published)?.table().number(row, column)?;
    Some(number as usize)
}

fn or_dash(text: &str) -> String {
    String::from(if text.is_empty() { "–" } else { text })
}

/// A number with what says how good it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Counterpart {
    /// The number, with the standard deviation of the runs in % of their mean.
    pub text: String,
    /// The interval, and the verdict.
    pub detail: String,
}

/// Our counterpart at `tasks`; none if it was not measured.
fn counterpart(ours: &Ours, tasks: usize, outcomes: &[RunReport]) -> Option<Counterpart> {
    let outcome = outcomes.iter().find(|outcome| outcome.name == ours.run)?;
    match &outcome.what {
        What::Workload { workload, results, .. } => of_workload(ours, tasks, workload, results),
        What::Locks { results, .. } => of_lock(ours, tasks, results),
        What::Nothing(_) => None,
    }
}

fn of_workload(
    ours: &Ours,
    tasks: usize,
    workload: &Workload,
    results: &[CellResult],
) -> Option<Counterpart> {
    let is_it = |result: &&CellResult| {
        result.tasks == tasks && ours.variant.as_ref().is_none_or(|variant| *variant == result.variant)
    };
    let configuration = results.iter().find(is_it)?.configuration(&ours.configuration)?;
    let (means, figure) = (configuration.of_means, workload.figure);
    let plain = |text: String| Counterpart { text, detail: String::new() };
    let deviating = |text: String| with_deviation(text, configuration.relative_deviation());
    let compared = |of_means: f64, of: fn(Ratio) -> Ratio, shown: fn(f64) -> String| {
        let (word, _) = word(figure, configuration.verdict);
        let detail = |ratio| format!("{} {word}", interval(of(ratio), shown));
        let detail = configuration.ratio.map_or_else(String::new, detail);
        Counterpart { text: deviating(shown(of_means)), detail }
    };
    Some(match &ours.show {
        Show::Mean => plain(deviating(value(figure, configuration.mean))),
        Show::Change => compared(means?, |ratio| ratio, change),
        Show::Ratio => compared(means?, |ratio| ratio, two_digits),
        // The baseline is as fast as itself.
        Show::SpeedUp => {
            means.map_or_else(|| plain(two_digits(1.0)), |means| compared(1.0 / means, inverse, two_digits))
        }
        Show::Tasks => plain(tasks.to_string()),
        Show::Seconds(key) => plain(column(configuration, key, seconds)?),
        Show::Number(key) => plain(column(configuration, key, number)?),
    })
}

/// The mean of one of the workload's own numbers.
fn column(configuration: &ConfigurationResult, key: &str, shown: fn(f64) -> String) -> Option<String> {
    let value = *configuration.columns.get(key)?;
    let deviation = configuration.column_deviations.get(key).map(|deviation| deviation / value);
    Some(with_deviation(shown(value), deviation.filter(|deviation| deviation.is_finite())))
}

/// Locks have times per operation; what documents publish is throughput.
fn of_lock(ours: &Ours, tasks: usize, results: &[of_locks::CellResult]) -> Option<Counterpart> {
    let result = results.iter().find(|result| result.threads == tasks)?;
    let implementation = result
        .implementations
        .iter()
        .find(|implementation| implementation.implementation == ours.configuration)?;
    let ratio = inverse(implementation.ratio?);
    let detail = format!("{} {}", interval(ratio, change), effects::word(implementation.verdict));
    (ours.show == Show::Change).then(|| Counterpart { text: change(ratio.median), detail })
}

fn inverse(ratio: Ratio) -> Ratio {
    Ratio { median: 1.0 / ratio.median, low: 1.0 / ratio.high, high: 1.0 / ratio.low }
}

fn interval(ratio: Ratio, shown: fn(f64) -> String) -> String {
    format!("[{}, {}]", shown(ratio.low), shown(ratio.high))
}

fn two_digits(value: f64) -> String {
    format!("{value:.2}")
}

fn with_deviation(text: String, deviation: Option<f64>) -> String {
    match deviation {
        Some(deviation) => format!("{text} ±{}", percent(deviation)),
        None => text,
    }
}

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
pub fn ran(outcome: &RunReport, cpus: usize) -> Ran {
    let (tables, plots) = match &outcome.what {
        What::Nothing(_) => (Vec::new(), Vec::new()),
        What::Workload { workload, results, .. } => run_of_workload(workload, results, cpus),
        What::Locks { record, results, .. } => run_of_locks(record, results, cpus),
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

fn run_of_workload(workload: &Workload, results: &[CellResult], cpus: usize) -> (Vec<Plain>, Vec<String>) {
    let own = tables::own_columns(workload, results);
    let own_headers = own.iter().map(|column| column.header.to_owned());
    let header: Vec<String> = tables::header(workload).into_iter().chain(own_headers).collect();
    let (mut tables, mut plots) = (Vec::new(), Vec::new());
    for variant in results.chunk_by(|a, b| a.variant == b.variant) {
        let rows = variant.iter().flat_map(|result| {
            let own = &own;
            result.configurations.iter().enumerate().map(move |(place, configuration)| {
                let (cells, _) = tables::row(workload, result, place, cpus);
                cells
                    .into_iter()
                    .chain(own.iter().map(|column| tables::shown(configuration, column)))
                    .collect()
            })
        });
        let baseline = variant.iter().find_map(|result| result.configurations.first());
        let explanation =
            baseline.map(|configuration| tables::explanation(workload, &configuration.configuration));
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

fn run_of_locks(record: &Record, results: &[of_locks::CellResult], cpus: usize) -> (Vec<Plain>, Vec<String>) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels() {
        assert_eq!(version("6.18.5-cloud"), [6, 18]);
        assert_eq!(version("strange"), [0, 0]);
        let note = CounterpartNote { text: String::new(), since: Some([6, 4]), before: Some([6, 18]) };
        assert!(is_about(&note, [6, 4]) && !is_about(&note, [6, 18]) && !is_about(&note, [5, 30]));
    }

    #[test]
    fn a_time_that_is_less_is_a_throughput_that_is_more() {
        let time = Ratio { median: 0.5, low: 0.4, high: 0.8 };
        assert_eq!(interval(inverse(time), change), "[+25.0 %, +150 %]");
        assert_eq!(with_deviation(two_digits(inverse(time).median), Some(0.012)), "2.00 ±1.2 %");
    }
}
