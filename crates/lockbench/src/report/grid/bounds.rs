//! The table of bounds of planes.

use spinpark_measure::report::{Goodness, Style, table, text};

use super::figure;
use crate::grid::bounds::BoundResult;
use crate::grid::definition::Over;
use crate::grid::figure::Against;
use crate::locks::bounds::Judgement;

fn row(result: &BoundResult) -> [String; 7] {
    let against = match &result.against {
        Against::Best => String::new(),
        other => format!(" ÷ {}", other.in_words()),
    };
    let limit = match (result.at_most, result.at_least) {
        (Some(limit), _) => format!("≤ {limit:.2}"),
        (_, Some(limit)) => format!("≥ {limit:.2}"),
        _ => String::from("–"),
    };
    let dash = || String::from("–");
    [
        format!("{}{against}", result.what),
        result.threads.map_or_else(|| String::from("all"), |threads| threads.to_string()),
        result.ours.clone(),
        limit,
        result.ratio.map_or_else(dash, figure),
        result.interval.map_or_else(dash, |[low, high]| format!("[{}, {}]", figure(low), figure(high))),
        verdict(result),
    ]
}

fn verdict(result: &BoundResult) -> String {
    let word = match result.judgement {
        Judgement::Holds => "holds",
        Judgement::Missed => "missed",
        Judgement::Undecided => "undecided",
        Judgement::NotMeasured => "not measured",
    };
    match (result.over, result.judgement) {
        (Over::EachCell, Judgement::Missed) => format!("{word} {}/{}", result.missed, result.cells),
        (Over::EachCell, Judgement::Undecided) => {
            format!("{word} {}/{}", result.undecided, result.cells)
        }
        _ => String::from(word),
    }
}

fn goodness(judgement: Judgement) -> Goodness {
    match judgement {
        Judgement::Holds => Goodness::Good,
        Judgement::Missed => Goodness::Bad,
        _ => Goodness::Neither,
    }
}

/// All bounds, a table for each plane, and how many hold.
#[must_use]
pub fn render(results: &[BoundResult], style: Style) -> String {
    if results.is_empty() {
        return String::from("No bound is about the planes and implementations that were measured.\n");
    }
    let mut planes: Vec<&str> = Vec::new();
    for result in results {
        if !planes.contains(&result.plane.as_str()) {
            planes.push(&result.plane);
        }
    }
    let mut tables = String::new();
    for plane in planes {
        let mut rows =
            table(style, &[plane, "threads", "ours", "bound", "ratio", "95 % interval", "verdict"]);
        for result in results.iter().filter(|result| result.plane == plane) {
            let cells = row(result);
            let mut row: Vec<comfy_table::Cell> = cells[..6].iter().map(comfy_table::Cell::new).collect();
            row.push(style.verdict(&cells[6], goodness(result.judgement)));
            rows.add_row(row);
        }
        tables += &text(&rows);
    }
    let count = |judgement| results.iter().filter(|result| result.judgement == judgement).count();
    let sentence = format!(
        "{} bounds: {} hold, {} missed, {} undecided. Ratios are ours ÷ the best peer, unless another is named; where \
         every cell is judged, that of the worst, and in how many cells.",
        results.len(),
        count(Judgement::Holds),
        count(Judgement::Missed),
        count(Judgement::Undecided),
    );
    format!("{tables}{}\n", style.wrap(&sentence, 0))
}
