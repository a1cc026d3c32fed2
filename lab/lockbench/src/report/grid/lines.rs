//! Sentences about planes.

use spinpark_measure::report::{Style, table, text};
use spinpark_measure::stats::median;
use spinpark_measure::text::units::{counted, percent};

use super::{Shown, figure};
use crate::locks::comparison::{Context, LONG_WAIT, SMALL_SHARE, Starvation};
use crate::locks::definitions::Definitions;
use crate::locks::experiment::Measured;
use crate::locks::figure::Figure;
use crate::locks::ideal::Calibration;
use crate::locks::planes::Kind;
use crate::locks::summary::{LOSS, PlaneSummary, Summary, planes};

/// The planes of `spinpark-lab bench grid`, a line each.
#[must_use]
pub fn planes_of(definitions: &Definitions, style: Style) -> String {
    let lines = definitions
        .planes
        .iter()
        .map(|plane| style.wrap(&format!("  {:<18} {}", plane.name, plane.about), 21) + "\n");
    format!("Planes of `spinpark-lab bench grid`:\n{}", lines.collect::<String>())
}

/// What the names of rows and columns mean.
#[must_use]
pub fn legend(kind: Kind) -> &'static str {
    match kind {
        Kind::Mutex => "rows: critical iterations, columns: non-critical",
        Kind::Rwlock => "rows: writes, critical iterations; columns: non-critical",
        Kind::Queue => {
            "rows: producers, consumers, capacity; columns: signal under or after the unlock/waiters woken/iterations \
             an item"
        }
        Kind::Handoff => "rows: what, threads; columns: iterations of work",
        Kind::Pipeline => {
            "rows: stages, items of a queue; columns: signal (un: under the lock, af: after it) / work of a stage"
        }
    }
}

/// "spinpark: geometric mean 1.02, worst 0.56 (300 300), 3 of 49 cells below 0.90 (2 clearly)".
pub(super) fn sentence(ours: &str, shown: &Shown, summary: &Summary) -> String {
    let Summary { geometric_mean, worst, worst_cell, cells, losses, clear_losses } = summary;
    let start = format!(
        "{ours}: geometric mean {}, worst {} ({worst_cell})",
        figure(*geometric_mean),
        figure(*worst)
    );
    let limit = limit(shown);
    match shown.is_ideal() {
        true => format!("{start}; {}", counted(*cells, "cell")),
        false => format!("{start}; {losses} of {} {limit}, {clear_losses} clearly", counted(*cells, "cell")),
    }
}

/// A row for each plane and each of our locks.
#[must_use]
pub fn summaries(all: &[PlaneSummary], shown: &Shown, style: Style) -> String {
    let limit = limit(shown);
    let header = ["plane", "ours", "mean", "worst", "worst cell", "cells", &limit, "clearly"];
    let columns = if shown.is_ideal() { 6 } else { 8 };
    let mut rows = table(style, &header[..columns]);
    for PlaneSummary { plane, ours, summary, .. } in all.iter().filter(|summary| summary.threads.is_none()) {
        let row = [
            plane.clone(),
            ours.clone(),
            figure(summary.geometric_mean),
            figure(summary.worst),
            summary.worst_cell.clone(),
            summary.cells.to_string(),
            summary.losses.to_string(),
            summary.clear_losses.to_string(),
        ];
        rows.add_row(row[..columns].iter());
    }
    text(&rows)
}

/// What throughput costs: CPU time an operation ÷ that of the fastest peer of each cell, and ÷ glibc's, whose
/// locks sleep at once. A row for each plane and each of our locks; the cell is that of the worst ratio to
/// glibc.
#[must_use]
pub fn cpu_time(against_best: &[PlaneSummary], against_glibc: &[PlaneSummary], style: Style) -> String {
    let header = ["plane", "ours", "CPU time ÷ fastest's", "worst", "÷ glibc's", "worst", "worst cell"];
    let mut rows = table(style, &header);
    let is_whole = |summary: &&PlaneSummary| summary.threads.is_none();
    for PlaneSummary { plane, ours, summary, .. } in against_best.iter().filter(is_whole) {
        let same = |other: &&PlaneSummary| (&other.plane, &other.ours) == (plane, ours);
        let mut row =
            vec![plane.clone(), ours.clone(), figure(summary.geometric_mean), figure(summary.worst)];
        if let Some(PlaneSummary { summary, .. }) = against_glibc.iter().filter(is_whole).find(same) {
            row.extend([figure(summary.geometric_mean), figure(summary.worst), summary.worst_cell.clone()]);
        }
        rows.add_row(row);
    }
    text(&rows)
}

/// "below 0.90".
fn limit(shown: &Shown) -> String {
    match shown.figure.more_is_better() {
        true => format!("below {LOSS:.2}"),
        false => format!("above {:.2}", 1.0 / LOSS),
    }
}

/// What the marks mean.
#[must_use]
pub fn marks(shown: &Shown, has_intervals: bool) -> String {
    if shown.is_ideal() {
        return String::from(
            "1.00 is a lock that costs nothing: bounded by the sections that exclude each other, and by the CPUs.",
        );
    }
    let limit = limit(shown);
    let better = if shown.figure.more_is_better() { "more" } else { "less" };
    match has_intervals {
        true => format!(
            "Medians within rounds; {better} is better. `!`: {limit}, and so is the whole 95 % interval. `?`: {limit}, \
             but the interval is not clear of it."
        ),
        false => format!(
            "Medians within rounds; {better} is better. `?`: {limit}; too few rounds for an interval."
        ),
    }
}

/// How long an iteration takes.
#[must_use]
pub fn calibration(all: &[Calibration]) -> Option<String> {
    let Calibration { iteration_ns, empty_section_ns } = Calibration::middle(all)?;
    Some(format!(
        "An iteration takes {iteration_ns:.2} ns, a section without any {empty_section_ns:.2} ns (one thread, no lock; median of {} \
         calibrations).",
        all.len()
    ))
}

/// Which peers, and which of ours, starve writers, and how much.
#[must_use]
pub fn starving(context: &Context<'_>, cells: &[Measured]) -> Vec<String> {
    let mut lines = Vec::new();
    for plane in planes(cells) {
        let cells: Vec<&Measured> = cells.iter().filter(|cell| cell.plane() == plane).collect();
        let with_writes = cells.iter().filter(|cell| cell.writes().is_some_and(|writes| writes > 0)).count();
        for implementation in &context.implementations {
            let found: Vec<(&Measured, Starvation)> = cells
                .iter()
                .filter_map(|cell| Some((*cell, Starvation::of(cell, &implementation.name)?)))
                .collect();
            let Some((worst, how)) =
                found.iter().max_by(|a, b| a.1.longest_wait.total_cmp(&b.1.longest_wait))
            else {
                continue;
            };
            let shares = found.iter().filter_map(|(_, how)| how.share).fold(f64::INFINITY, f64::min);
            let share = match shares < SMALL_SHARE {
                true => format!(", least {} of the writes asked for", percent(shares)),
                false => String::new(),
            };
            lines.push(format!(
                "{plane}: {} starves writers in {} of {}; longest wait of a writer {} of the run \
                 ({}){share}.",
                implementation.name,
                found.len(),
                counted(with_writes, "cell"),
                percent(how.longest_wait),
                worst.name(),
            ));
        }
    }
    if !lines.is_empty() {
        lines.push(format!(
            "Starving: the longest wait of a writer is above {} of the run, or writers get less than {} of their share. \
             Such a lock is not a peer in that cell.",
            percent(LONG_WAIT),
            percent(SMALL_SHARE),
        ));
    }
    lines
}

/// How much the baseline differs from itself.
#[must_use]
pub fn noise(cells: &[Measured]) -> Option<String> {
    let baseline = cells.iter().find_map(|cell| cell.cell.implementations.first())?;
    let of_cell = |cell: &Measured| {
        let baseline = cell.cell.implementations.first()?;
        let middle = |again| {
            let runs = cell.runs.iter();
            let runs = runs.filter(|run| run.implementation == *baseline && run.again == again);
            median(&runs.filter_map(|run| Figure::Throughput.of(&run.report)).collect::<Vec<_>>())
        };
        Some((middle(true)?.ln() - middle(false)?.ln()).abs().exp_m1())
    };
    let mut all: Vec<f64> = cells.iter().filter_map(of_cell).collect();
    all.sort_unstable_by(f64::total_cmp);
    let half = median(&all)?;
    let most = spinpark_measure::stats::quantile(&all, 0.9);
    Some(format!(
        "Noise: the throughput of {baseline} differs from itself by {} in the median cell, by {} in one of ten.",
        percent(half),
        percent(most)
    ))
}
