//! What is to hold in planes, and whether it does.

use serde::Serialize;
use spinpark_measure::stats::bootstrap::ratio_interval;
use spinpark_measure::stats::paired::ByRound;
use spinpark_measure::stats::{geometric_mean, median};

use super::cells::GridCell;
use super::comparison::{Compared, Context};
use super::definition::{Bound, Over};
use super::figure::{Against, Figure};
use crate::locks::bounds::Judgement;

/// A round belongs to a mean if it has at least this part of the cells.
const NEARLY_ALL: f64 = 0.9;

/// A bound in one plane, for one implementation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BoundResult {
    /// In words.
    pub what: String,
    /// The plane.
    pub plane: String,
    /// The number of threads, if each is judged by itself.
    pub threads: Option<usize>,
    /// The figure.
    pub figure: Figure,
    /// What is made of the cells.
    pub over: Over,
    /// Ours.
    pub ours: String,
    /// What it is divided by.
    pub against: Against,
    /// The largest ratio that is fine, if it is one of those.
    pub at_most: Option<f64>,
    /// The smallest ratio that is fine, if it is one of those.
    pub at_least: Option<f64>,
    /// How many cells have the figure.
    pub cells: usize,
    /// Cells whose interval is beyond the limit, where each is judged.
    pub missed: usize,
    /// Cells of which neither can be said.
    pub undecided: usize,
    /// The geometric mean, or the worst cell's ratio.
    pub ratio: Option<f64>,
    /// Its 95 % interval.
    pub interval: Option<[f64; 2]>,
    /// The worst cell, where each is judged.
    pub worst_cell: Option<String>,
    /// Whether it holds.
    pub judgement: Judgement,
}

/// Judges `bounds` in the planes that were measured.
#[must_use]
pub fn judge_all(context: &Context<'_>, bounds: &[Bound], cells: &[GridCell]) -> Vec<BoundResult> {
    let mut results = Vec::new();
    for bound in bounds {
        for plane in &bound.planes {
            for ours in bound.ours.iter().filter(|ours| context.ours(cells).any(|name| name == **ours)) {
                let is_in = |cell: &&GridCell| {
                    let has_writes = |writes: u16| bound.writes.is_empty() || bound.writes.contains(&writes);
                    cell.place.plane == *plane
                        && (bound.threads.is_empty() || bound.threads.contains(&cell.threads()))
                        && cell.writes().is_none_or(has_writes)
                };
                let compared: Vec<(&GridCell, Compared)> = cells
                    .iter()
                    .filter(is_in)
                    .filter_map(|cell| {
                        Some((cell, context.compare(cell, ours, bound.figure, &bound.against)?))
                    })
                    .collect();
                results.extend(judge(context, bound, plane, ours, &compared));
            }
        }
    }
    results
}

fn judge(
    context: &Context<'_>,
    bound: &Bound,
    plane: &str,
    ours: &str,
    compared: &[(&GridCell, Compared)],
) -> Vec<BoundResult> {
    if compared.is_empty() {
        return Vec::new();
    }
    let of = |threads, judged: &[&(&GridCell, Compared)]| {
        let mut result = BoundResult {
            what: bound.what.clone(),
            plane: plane.to_owned(),
            threads,
            figure: bound.figure,
            over: bound.over,
            ours: ours.to_owned(),
            against: bound.against.clone(),
            at_most: bound.at_most,
            at_least: bound.at_least,
            cells: judged.len(),
            missed: 0,
            undecided: 0,
            ratio: None,
            interval: None,
            worst_cell: None,
            judgement: Judgement::Undecided,
        };
        match bound.over {
            Over::EachCell => result.judge_cells(judged),
            Over::GeometricMean | Over::EachThreads => result.judge_mean(judged, context.seed),
        }
        result
    };
    if bound.over != Over::EachThreads {
        return vec![of(None, &compared.iter().collect::<Vec<_>>())];
    }
    let mut numbers: Vec<usize> = compared.iter().map(|(cell, _)| cell.threads()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let with = |threads| compared.iter().filter(|(cell, _)| cell.threads() == threads).collect::<Vec<_>>();
    numbers.into_iter().map(|threads| of(Some(threads), &with(threads))).collect()
}

impl BoundResult {
    fn is_within(&self, ratio: f64) -> bool {
        self.at_most.is_none_or(|limit| ratio <= limit) && self.at_least.is_none_or(|limit| ratio >= limit)
    }

    fn judgement_of(&self, interval: Option<[f64; 2]>) -> Judgement {
        match interval.map(|ends| ends.map(|end| self.is_within(end))) {
            Some([true, true]) => Judgement::Holds,
            Some([false, false]) => Judgement::Missed,
            _ => Judgement::Undecided,
        }
    }

    /// Holds if all cells do; missed if one cell is.
    fn judge_cells(&mut self, judged: &[&(&GridCell, Compared)]) {
        let judgements: Vec<Judgement> =
            judged.iter().map(|(_, compared)| self.judgement_of(compared.interval)).collect();
        let count = |judgement| judgements.iter().filter(|one| **one == judgement).count();
        (self.missed, self.undecided) = (count(Judgement::Missed), count(Judgement::Undecided));
        self.judgement = match (self.missed, self.undecided) {
            (0, 0) => Judgement::Holds,
            (0, _) => Judgement::Undecided,
            _ => Judgement::Missed,
        };
        let badness = |ratio: f64| if self.at_least.is_some() { -ratio } else { ratio };
        let worst = judged.iter().max_by(|a, b| badness(a.1.ratio).total_cmp(&badness(b.1.ratio)));
        if let Some((cell, compared)) = worst {
            self.ratio = Some(compared.ratio);
            self.interval = compared.interval;
            self.worst_cell = Some(cell.name());
        }
    }

    fn judge_mean(&mut self, judged: &[&(&GridCell, Compared)], seed: u64) {
        let ratios: Vec<&ByRound> = judged.iter().map(|(_, compared)| &compared.by_round).collect();
        let means: Vec<f64> = mean_by_round(&ratios).into_values().collect();
        self.ratio = median(&means);
        self.interval = ratio_interval(&means, seed).map(|ratio| [ratio.low, ratio.high]);
        self.judgement = self.judgement_of(self.interval);
    }
}

/// The geometric mean of cells in each round that nearly all of them have; a cell without it has its median
/// there.
fn mean_by_round(cells: &[&ByRound]) -> ByRound {
    let middles: Vec<f64> =
        cells.iter().map(|cell| median(&cell.values().copied().collect::<Vec<_>>()).unwrap_or(1.0)).collect();
    let mut rounds: Vec<usize> = cells.iter().flat_map(|cell| cell.keys().copied()).collect();
    rounds.sort_unstable();
    rounds.dedup();
    let of_round = |round: usize| {
        let there = cells.iter().filter(|cell| cell.contains_key(&round)).count();
        let ratios = cells.iter().zip(&middles).map(|(cell, middle)| *cell.get(&round).unwrap_or(middle));
        let mean = geometric_mean(&ratios.collect::<Vec<_>>())?;
        (there as f64 >= NEARLY_ALL * cells.len() as f64).then_some((round, mean))
    };
    rounds.into_iter().filter_map(of_round).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_that_few_cells_have_are_left_out() {
        let whole = ByRound::from([(0, 4.0), (1, 9.0)]);
        let half = ByRound::from([(0, 1.0)]);
        let means = mean_by_round(&[&whole, &half]);
        assert_eq!(means.keys().copied().collect::<Vec<_>>(), [0]);
        assert!((means[&0] - 2.0).abs() < 1e-12);
        let many: Vec<&ByRound> = std::iter::repeat_n(&whole, 19).chain([&half]).collect();
        let means = mean_by_round(&many);
        assert_eq!(means.len(), 2, "one of twenty cells lacks the round");
        assert!((means[&1].ln() - 9_f64.ln() * 19.0 / 20.0).abs() < 1e-12);
    }
}
