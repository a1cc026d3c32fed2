//! Variants of one lock: which of the differences have an effect, at which number of threads.

use spinpark_measure::report::{Goodness, Style, distinct, table, text};
use spinpark_measure::stats::verdict::Verdict;
use spinpark_measure::text::units::{change, percent};

use super::{dash, interval, names, threads, time};
use crate::locks::definitions::Implementation;
use crate::locks::result::{CellResult, ImplementationResult};

/// The baseline, if every other implementation is a variant of it.
#[must_use]
pub fn baseline<'a>(implementations: impl IntoIterator<Item = &'a Implementation>) -> Option<&'a str> {
    let mut implementations = implementations.into_iter();
    let baseline = implementations.next()?.name.as_str();
    let mut others = implementations.peekable();
    others.peek()?;
    others.all(|other| other.varies.as_deref() == Some(baseline)).then_some(baseline)
}

/// What a verdict says of a difference.
pub fn word(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        Some(Verdict::Lower | Verdict::Higher) => "effect",
        Some(Verdict::Equivalent) => "none",
        Some(Verdict::Undecided) => "undecided",
        None => "–",
    }
}

fn goodness(verdict: Option<Verdict>) -> Goodness {
    match verdict {
        Some(Verdict::Lower) => Goodness::Good,
        Some(Verdict::Higher) => Goodness::Bad,
        _ => Goodness::Neither,
    }
}

/// The name of a variant without what all of them share.
fn short<'a>(name: &'a str, baseline: &str) -> &'a str {
    name.strip_prefix(baseline).and_then(|rest| rest.strip_prefix('-')).unwrap_or(name)
}

/// One row: what differs, where, by how much, and whether that is an effect.
fn row(
    result: &CellResult,
    implementation: &ImplementationResult,
    baseline: &str,
    cpus: usize,
) -> [String; 6] {
    [
        short(&implementation.implementation, baseline).to_owned(),
        threads(result.threads, cpus),
        time(implementation.time_ns),
        implementation.ratio.map_or_else(dash, |ratio| change(ratio.median)),
        implementation.ratio.as_ref().map_or_else(dash, interval),
        word(implementation.verdict).to_owned(),
    ]
}

/// The change of the time per operation by each difference, a column per cell.
#[must_use]
pub fn render(results: &[CellResult], baseline: &str, cpus: usize, style: Style) -> String {
    let mut tables = Vec::new();
    for workload in distinct(results.iter().map(|result| result.workload.as_str())) {
        let cells: Vec<&CellResult> = results.iter().filter(|result| result.workload == workload).collect();
        tables
            .extend(cells.chunks(CELLS).map(|cells| render_workload(workload, cells, baseline, cpus, style)));
    }
    tables.join("\n")
}

/// What stands below the table.
#[must_use]
pub fn explanation(baseline: &str) -> String {
    format!(
        "Time per operation: the first row, and each variant's change to {baseline}: less is faster. An effect is beyond \
         the noise (the baseline against itself); none is within 2 %, or within the noise up to 5 %."
    )
}

/// Cells that fit side by side.
const CELLS: usize = 4;

fn render_workload(
    workload: &str,
    cells: &[&CellResult],
    baseline: &str,
    cpus: usize,
    style: Style,
) -> String {
    let headers: Vec<String> = cells.iter().map(|cell| threads(cell.threads, cpus)).collect();
    let header: Vec<&str> = std::iter::once(workload).chain(headers.iter().map(String::as_str)).collect();
    let mut rows = table(style, &header);
    for name in names(cells.iter().copied()) {
        let mut row = vec![comfy_table::Cell::new(short(name, baseline))];
        for cell in cells {
            let implementation =
                cell.implementations.iter().find(|implementation| implementation.implementation == name);
            row.push(entry(implementation, name == baseline, style));
        }
        rows.add_row(row);
    }
    let noise =
        |cell: &&CellResult| cell.again.map_or_else(dash, |again| format!("±{}", percent(again.reach())));
    rows.add_row(std::iter::once(String::from("noise")).chain(cells.iter().map(noise)));
    text(&rows)
}

fn entry(
    implementation: Option<&ImplementationResult>,
    is_baseline: bool,
    style: Style,
) -> comfy_table::Cell {
    let Some(implementation) = implementation else { return comfy_table::Cell::new(dash()) };
    match implementation.ratio {
        _ if is_baseline => comfy_table::Cell::new(time(implementation.time_ns)),
        None if implementation.time_ns.is_infinite() => comfy_table::Cell::new(time(implementation.time_ns)),
        None => comfy_table::Cell::new(dash()),
        Some(ratio) => {
            let text = format!("{} {}", change(ratio.median), word(implementation.verdict));
            style.verdict(&text, goodness(implementation.verdict))
        }
    }
}

/// The header of the long form.
pub const HEADER: [&str; 6] =
    ["variant", "threads", "time per operation", "change", "95 % interval", "verdict"];

/// The long form: a row per cell and variant.
pub fn rows<'a>(
    results: &'a [CellResult],
    baseline: &'a str,
    cpus: usize,
) -> impl Iterator<Item = [String; 6]> + 'a {
    results.iter().flat_map(move |result| {
        result.implementations.iter().map(move |implementation| row(result, implementation, baseline, cpus))
    })
}
