//! The table of bounds.

use spinpark_measure::report::{Goodness, Style, table, text};
use spinpark_measure::units::counted;

use super::{dash, interval, threads};
use crate::locks::bounds::{BoundResult, Judgement};
use crate::locks::definitions::Figure;

/// The columns.
pub(super) const HEADER: [&str; 7] = ["what", "threads", "bound", "ratio", "95 % interval", "÷", "verdict"];

/// The cells of a row. What is not said to be another figure is time per operation.
pub(super) fn row(result: &BoundResult, cpus: usize) -> [String; 7] {
    let figure = match result.figure {
        Figure::Time => "",
        Figure::Throughput => ", throughput",
        Figure::Cpu => ", CPU time",
        Figure::Switches => ", context switches",
        Figure::LongestWait => ", longest wait",
    };
    let limit = match (result.at_most, result.at_least) {
        (Some(limit), _) => format!("≤ {limit:.2}"),
        (_, Some(limit)) => format!("≥ {limit:.2}"),
        _ => dash(),
    };
    let shown = match result.threads[..] {
        [first, .., last] => format!("{first}…{}", threads(last, cpus)),
        [only] => threads(only, cpus),
        [] => dash(),
    };
    let against = match &result.against[..] {
        [] => dash(),
        [only] => only.clone(),
        _ => String::from("best of each"),
    };
    [
        format!("{}: {}{figure}", result.ours, result.what),
        shown,
        limit,
        result.ratio.map_or_else(dash, |ratio| format!("{:.2}", ratio.median)),
        result.ratio.as_ref().map_or_else(dash, interval),
        against,
        word(result.judgement).0.to_owned(),
    ]
}

fn word(judgement: Judgement) -> (&'static str, Goodness) {
    match judgement {
        Judgement::Holds => ("holds", Goodness::Good),
        Judgement::Missed => ("missed", Goodness::Bad),
        Judgement::Undecided => ("undecided", Goodness::Neither),
        Judgement::NotMeasured => ("not measured", Goodness::Neither),
    }
}

/// All bounds, and how many hold. `cpus` decides which rows are oversubscribed.
#[must_use]
pub fn render(results: &[BoundResult], cpus: usize, style: Style) -> String {
    let mut rows = table(style, &HEADER);
    for result in results {
        let cells = row(result, cpus);
        let mut row: Vec<comfy_table::Cell> = cells[..6].iter().map(comfy_table::Cell::new).collect();
        row.push(style.verdict(&cells[6], word(result.judgement).1));
        rows.add_row(row);
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
    sentence += ". Ratios are ours ÷ the other (the best peer, where several could be meant).";
    format!("{}{}\n", text(&rows), style.wrap(&sentence, 0))
}
