//! The table of bounds: of workloads, and of each plane.

use spinpark_measure::report::{Goodness, Style, distinct, table, text};
use spinpark_measure::text::units::counted;

use super::{dash, figure, threads};
use crate::locks::bounds::{BoundResult, Judgement};
use crate::locks::definitions::Over;
use crate::locks::figure::{Against, Figure};

/// The columns.
pub(super) const HEADER: [&str; 7] = ["what", "threads", "bound", "ratio", "95 % interval", "÷", "verdict"];

/// The cells of a row. In a workload, what is not said to be another figure is time per operation; `what` of
/// a plane names its figure.
pub(super) fn row(result: &BoundResult, cpus: usize) -> [String; 7] {
    let figure_name = match result.figure {
        _ if result.is_plane => "",
        Figure::Time => "",
        Figure::Throughput => ", throughput",
        Figure::Cpu => ", CPU time",
        Figure::WaitP999 => ", p99.9 of waits",
        Figure::LongestWait => ", longest wait",
        Figure::Writes => ", writes",
        Figure::WriteWait => ", waits of writers",
        Figure::Futex => ", futex calls",
        Figure::Switches => ", voluntary switches",
        Figure::AllSwitches => ", context switches",
        Figure::Ideal => ", share of the ideal",
    };
    let limit = match (result.at_most, result.at_least) {
        (Some(limit), _) => format!("≤ {limit:.2}"),
        (_, Some(limit)) => format!("≥ {limit:.2}"),
        _ => dash(),
    };
    let shown = match result.threads[..] {
        [first, .., last] => format!("{first}…{}", threads(last, cpus)),
        [only] => threads(only, cpus),
        [] => String::from("all"),
    };
    let against = match &result.with[..] {
        [] => dash(),
        [only] => only.clone(),
        _ => String::from("best of each"),
    };
    [
        format!("{}: {}{figure_name}", result.ours, result.what),
        shown,
        limit,
        result.ratio.map_or_else(dash, figure),
        result.interval.map_or_else(dash, |[low, high]| format!("[{}, {}]", figure(low), figure(high))),
        against,
        verdict(result).0,
    ]
}

fn verdict(result: &BoundResult) -> (String, Goodness) {
    let (word, goodness) = match result.judgement {
        Judgement::Holds => ("holds", Goodness::Good),
        Judgement::Missed => ("missed", Goodness::Bad),
        Judgement::Undecided => ("undecided", Goodness::Neither),
        Judgement::NotMeasured => ("not measured", Goodness::Neither),
    };
    let text = match (result.over, result.judgement) {
        (Over::EachCell, Judgement::Missed) => format!("{word} {}/{}", result.missed, result.cells),
        (Over::EachCell, Judgement::Undecided) => format!("{word} {}/{}", result.undecided, result.cells),
        _ => word.to_owned(),
    };
    (text, goodness)
}

/// All bounds, a table for each plane, and how many hold. `cpus` decides which rows are oversubscribed.
#[must_use]
pub fn render(results: &[BoundResult], cpus: usize, style: Style) -> String {
    if results.is_empty() {
        return String::from("No bound is about what was measured.\n");
    }
    let title =
        |result: &BoundResult| if result.is_plane { result.place.clone() } else { HEADER[0].to_owned() };
    let mut tables = String::new();
    for name in distinct(results.iter().map(title)) {
        let mut header = HEADER;
        header[0] = &name;
        let mut rows = table(style, &header);
        for result in results.iter().filter(|result| title(result) == name) {
            let cells = row(result, cpus);
            let mut row: Vec<comfy_table::Cell> = cells[..6].iter().map(comfy_table::Cell::new).collect();
            row.push(style.verdict(&cells[6], verdict(result).1));
            rows.add_row(row);
        }
        tables += &text(&rows);
    }
    let count = |judgement| results.iter().filter(|result| result.judgement == judgement).count();
    let mut sentence = format!(
        "{}: {} hold, {} missed, {} undecided",
        counted(results.len(), "bound"),
        count(Judgement::Holds),
        count(Judgement::Missed),
        count(Judgement::Undecided),
    );
    match count(Judgement::NotMeasured) {
        0 => {}
        more => sentence += &format!(", {more} not measured"),
    }
    sentence += ". Ratios are ours ÷ the other";
    let is_best = |result: &BoundResult| !matches!(result.against, Against::Implementation(_));
    if results.iter().any(is_best) {
        sentence += " (the best peer, unless a bound names one)";
    }
    if results.iter().any(|result| result.over == Over::EachCell) {
        sentence += "; where every cell is judged, that of the worst, and in how many cells";
    }
    format!("{tables}{}\n", style.wrap(&(sentence + "."), 0))
}
