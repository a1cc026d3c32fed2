//! A plane in one line: the geometric mean of its ratios, the worst cell, and how many cells are clearly
//! worse than the peer.

use serde::Serialize;
use spinpark_measure::report::distinct;
use spinpark_measure::stats::geometric_mean;

use super::comparison::{Compared, Context};
use super::experiment::Measured;
use super::figure::{Against, Figure};

/// A ratio of throughputs below this is a loss; of a cost, one above its inverse.
pub const LOSS: f64 = 0.90;

/// Whether a cell is a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// It is not.
    No,
    /// The median is, but the interval is not clear of the limit, or there is none.
    Perhaps,
    /// The whole interval is.
    Clear,
}

impl Loss {
    /// Judges a ratio. A share of the ideal is never a loss: locks cost something.
    #[must_use]
    pub fn of(figure: Figure, compared: &Compared) -> Self {
        let is_loss = |ratio: f64| match figure.more_is_better() {
            true => ratio < LOSS,
            false => ratio > 1.0 / LOSS,
        };
        match compared.interval {
            _ if compared.with == "ideal" || !is_loss(compared.ratio) => Self::No,
            Some([low, high]) if is_loss(low) && is_loss(high) => Self::Clear,
            _ => Self::Perhaps,
        }
    }

    /// What stands behind the figure.
    #[must_use]
    pub fn mark(self) -> char {
        match self {
            Self::No => ' ',
            Self::Perhaps => '?',
            Self::Clear => '!',
        }
    }
}

/// What follows from some cells.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// The geometric mean of their ratios.
    pub geometric_mean: f64,
    /// The worst of them.
    pub worst: f64,
    /// In which cell.
    pub worst_cell: String,
    /// How many cells there are.
    pub cells: usize,
    /// Cells whose median is a loss.
    pub losses: usize,
    /// Those whose interval is clear of the limit.
    pub clear_losses: usize,
}

impl Summary {
    /// Sums up cells with their ratios; none without any.
    #[must_use]
    pub fn of<'a>(
        figure: Figure,
        compared: impl IntoIterator<Item = (&'a Measured, Compared)>,
    ) -> Option<Self> {
        let all: Vec<(&Measured, Compared)> = compared.into_iter().collect();
        let badness = |ratio: f64| if figure.more_is_better() { -ratio } else { ratio };
        let worst = all.iter().max_by(|a, b| badness(a.1.ratio).total_cmp(&badness(b.1.ratio)))?;
        let ratios: Vec<f64> = all.iter().map(|(_, compared)| compared.ratio).collect();
        let losses: Vec<Loss> = all.iter().map(|(_, compared)| Loss::of(figure, compared)).collect();
        Some(Self {
            geometric_mean: geometric_mean(&ratios)?,
            worst: worst.1.ratio,
            worst_cell: worst.0.name(),
            cells: all.len(),
            losses: losses.iter().filter(|loss| **loss != Loss::No).count(),
            clear_losses: losses.iter().filter(|loss| **loss == Loss::Clear).count(),
        })
    }
}

/// The summary of one plane for one of our implementations.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlaneSummary {
    /// The plane.
    pub plane: String,
    /// The number of threads, or none for all cells of the plane.
    pub threads: Option<usize>,
    /// Ours.
    pub ours: String,
    /// The figure.
    pub figure: Figure,
    /// What it is divided by.
    pub against: Against,
    /// The line.
    #[serde(flatten)]
    pub summary: Summary,
}

/// The planes of `cells`, in order.
#[must_use]
pub fn planes(cells: &[Measured]) -> Vec<&str> {
    distinct(cells.iter().map(Measured::plane))
}

/// The numbers of threads that have a table of their own in a plane.
#[must_use]
pub fn tables_of<'a>(cells: &'a [Measured], plane: &str) -> Vec<(&'a str, usize)> {
    let own = cells.iter().filter(|cell| cell.plane() == plane && !cell.table().is_empty());
    distinct(own.map(|cell| (cell.table(), cell.cell.threads)))
}

/// All planes for all of our implementations: one summary each, and one for each number of threads that has a
/// table.
#[must_use]
pub fn summaries(
    context: &Context<'_>,
    cells: &[Measured],
    figure: Figure,
    against: &Against,
) -> Vec<PlaneSummary> {
    let mut all = Vec::new();
    for plane in planes(cells) {
        let tables = tables_of(cells, plane);
        let parts = tables.iter().map(|(_, threads)| Some(*threads)).chain([None]);
        let parts: Vec<Option<usize>> = parts.collect();
        for ours in context.ours(cells) {
            for &threads in &parts {
                let is_part = |cell: &&Measured| {
                    cell.plane() == plane && threads.is_none_or(|threads| cell.cell.threads == threads)
                };
                let compared = cells
                    .iter()
                    .filter(is_part)
                    .filter_map(|cell| Some((cell, context.compare(cell, ours, figure, against)?)));
                let Some(summary) = Summary::of(figure, compared) else { continue };
                let (plane, ours, against) = (plane.to_owned(), ours.to_owned(), against.clone());
                all.push(PlaneSummary { plane, threads, ours, figure, against, summary });
            }
        }
    }
    all
}
