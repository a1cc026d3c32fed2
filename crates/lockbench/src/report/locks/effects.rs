//! Variants of one lock: which of the differences have an effect, at which number of threads.

use spinpark_measure::report::{Goodness, Style, table, text};
use spinpark_measure::stats::verdict::Verdict;
use spinpark_show::units::{change, percent};

use super::{dash, interval, threads, time};
use crate::locks::definitions::Target;
use crate::locks::result::{CellResult, TargetResult};

/// The baseline, if every other target is a variant of it.
#[must_use]
pub fn baseline<'a>(targets: impl IntoIterator<Item = &'a Target>) -> Option<&'a str> {
    let mut targets = targets.into_iter();
    let baseline = targets.next()?.name.as_str();
    let mut others = targets.peekable();
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
fn row(result: &CellResult, target: &TargetResult, baseline: &str, cpus: usize) -> [String; 6] {
    [
        short(&target.target, baseline).to_owned(),
        threads(result.threads, cpus),
        time(target.time_ns),
        target.ratio.map_or_else(dash, |ratio| change(ratio.median)),
        target.ratio.as_ref().map_or_else(dash, interval),
        word(target.verdict).to_owned(),
    ]
}

/// The targets in the order of the first cell that has them.
fn variants<'a>(results: &[&'a CellResult]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for target in results.iter().flat_map(|result| &result.targets) {
        if !names.contains(&target.target.as_str()) {
            names.push(&target.target);
        }
    }
    names
}

/// The change of the time per operation by each difference, a column per cell.
#[must_use]
pub fn render(results: &[CellResult], baseline: &str, cpus: usize, style: Style) -> String {
    let shapes: Vec<&str> = results.iter().map(|result| result.shape.as_str()).collect();
    let mut tables = Vec::new();
    for (place, shape) in shapes.iter().enumerate() {
        if !shapes[..place].contains(shape) {
            let cells: Vec<&CellResult> = results.iter().filter(|result| result.shape == *shape).collect();
            tables.extend(cells.chunks(CELLS).map(|cells| render_shape(shape, cells, baseline, cpus, style)));
        }
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

/// So many cells fit side by side.
const CELLS: usize = 4;

fn render_shape(shape: &str, cells: &[&CellResult], baseline: &str, cpus: usize, style: Style) -> String {
    let headers: Vec<String> = cells.iter().map(|cell| threads(cell.threads, cpus)).collect();
    let header: Vec<&str> = std::iter::once(shape).chain(headers.iter().map(String::as_str)).collect();
    let mut rows = table(style, &header);
    for name in variants(cells) {
        let mut row = vec![comfy_table::Cell::new(short(name, baseline))];
        for cell in cells {
            let target = cell.targets.iter().find(|target| target.target == name);
            row.push(entry(target, name == baseline, style));
        }
        rows.add_row(row);
    }
    let noise =
        |cell: &&CellResult| cell.again.map_or_else(dash, |again| format!("±{}", percent(again.reach())));
    rows.add_row(std::iter::once(String::from("noise")).chain(cells.iter().map(noise)));
    text(&rows)
}

fn entry(target: Option<&TargetResult>, is_baseline: bool, style: Style) -> comfy_table::Cell {
    let Some(target) = target else { return comfy_table::Cell::new(dash()) };
    match target.ratio {
        _ if is_baseline => comfy_table::Cell::new(time(target.time_ns)),
        None if target.time_ns.is_infinite() => comfy_table::Cell::new(time(target.time_ns)),
        None => comfy_table::Cell::new(dash()),
        Some(ratio) => {
            let text = format!("{} {}", change(ratio.median), word(target.verdict));
            style.verdict(&text, goodness(target.verdict))
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
    results
        .iter()
        .flat_map(move |result| result.targets.iter().map(move |target| row(result, target, baseline, cpus)))
}
