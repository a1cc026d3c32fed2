//! Goals: a ratio of two implementations in one run, with a limit, and a verdict.
//!
//! The ratio is taken within rounds; its median has a 95 % interval. "Holds" and "missed" need the whole
//! interval on one side of the limit; anything else is undecided. The best peer is picked by the same runs,
//! which favours it a little.

use std::collections::BTreeMap;

use serde::Serialize;
use spinpark_measure::report::distinct;
use spinpark_measure::stats::bootstrap::ratio_interval;
use spinpark_measure::stats::paired::ByRound;
use spinpark_measure::stats::{geometric_mean, median};

use super::comparison::{Compared, Context};
use super::definitions::{Bound, Definitions, Over, Role, Selection};
use super::experiment::Measured;
use super::figure::{Against, Figure};

/// A round belongs to a mean if it has at least this part of the cells.
const NEARLY_ALL: f64 = 0.9;

/// Whether a bound holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// The whole interval is within the limit.
    Holds,
    /// The whole interval is beyond the limit.
    Missed,
    /// The limit is inside the interval, or there is no interval.
    Undecided,
    /// One of the two implementations was not measured.
    NotMeasured,
}

/// A bound in a workload or one plane, for one implementation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BoundResult {
    /// In words.
    pub what: String,
    /// The workload or the plane.
    pub place: String,
    /// Whether that is a plane.
    pub is_plane: bool,
    /// The numbers of threads; none: all of the plane.
    pub threads: Vec<usize>,
    /// The figure.
    pub figure: Figure,
    /// What is made of the cells.
    pub over: Over,
    /// Ours.
    pub ours: String,
    /// What it is divided by.
    pub against: Against,
    /// Which implementations that is; of judged cells, the one of the worst.
    pub with: Vec<String>,
    /// The largest ratio that is fine, if it is one of those.
    pub at_most: Option<f64>,
    /// The smallest ratio that is fine, if it is one of those.
    pub at_least: Option<f64>,
    /// How many cells have the figure.
    pub cells: usize,
    /// Cells whose interval is beyond the limit, where each is judged.
    pub missed: usize,
    /// Cells that are undecided, where each is judged.
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

/// The cells of workloads that bounds need, each with its implementations.
///
/// # Errors
///
/// If a bound names what is not defined.
pub fn selections(
    definitions: &Definitions,
    bounds: &[Bound],
) -> Result<Vec<(Selection, Vec<String>)>, String> {
    let mut cells = BTreeMap::<(usize, usize), Vec<String>>::new();
    for bound in bounds {
        let Some(name) = &bound.workload else { continue };
        definitions.workload(name)?;
        let place = definitions.workloads.iter().position(|workload| workload.name == *name);
        let is_needed = |implementation: &str, role| match &bound.against {
            Against::Implementation(name) => implementation == name,
            _ => role == Role::Peer,
        };
        let all = definitions.implementations.iter();
        let needed = all.filter(|it| bound.ours.contains(&it.name) || is_needed(&it.name, it.role));
        let needed: Vec<String> = needed.map(|implementation| implementation.name.clone()).collect();
        for &threads in &bound.threads {
            cells.entry((place.unwrap_or_default(), threads)).or_default().extend(needed.clone());
        }
    }
    let rank = |name: &String| {
        definitions.implementations.iter().position(|implementation| implementation.name == *name)
    };
    let one = |((place, threads), mut implementations): ((usize, usize), Vec<String>)| {
        implementations.sort_by_key(rank);
        implementations.dedup();
        let workload = definitions.workloads[place].name.clone();
        (Selection { workload, threads: vec![threads] }, implementations)
    };
    Ok(cells.into_iter().map(one).collect())
}

/// Judges `bounds`: those of a workload in any case, those of planes in what was measured of them.
#[must_use]
pub fn judge_all(context: &Context<'_>, bounds: &[Bound], cells: &[Measured]) -> Vec<BoundResult> {
    let mut results = Vec::new();
    for bound in bounds {
        for place in bound.workload.iter().chain(&bound.planes) {
            for ours in &bound.ours {
                let is_in = |cell: &&Measured| {
                    let is_there = match bound.workload {
                        Some(_) => cell.cell.place.is_none() && cell.cell.workload == *place,
                        None => cell.plane() == place,
                    };
                    is_there
                        && (bound.threads.is_empty() || bound.threads.contains(&cell.cell.threads))
                        && cell
                            .writes()
                            .is_none_or(|writes| bound.writes.is_empty() || bound.writes.contains(&writes))
                };
                let compare = |cell| Some((cell, context.compare(cell, ours, bound.figure, &bound.against)?));
                let compared: Vec<_> = cells.iter().filter(is_in).filter_map(compare).collect();
                results.extend(groups(bound, &compared).into_iter().filter_map(|threads| {
                    let is_in = |cell: &Measured| threads.is_empty() || threads.contains(&cell.cell.threads);
                    let group: Vec<_> = compared.iter().filter(|(cell, _)| is_in(cell)).collect();
                    BoundResult::judge(bound, place, threads, ours, &group, context.seed)
                }));
            }
        }
    }
    results
}

/// The numbers of threads that have a row together; none stands for all of a plane.
fn groups(bound: &Bound, compared: &[(&Measured, Compared)]) -> Vec<Vec<usize>> {
    let mut threads = match bound.workload {
        Some(_) => bound.threads.clone(),
        None => distinct(compared.iter().map(|(cell, _)| cell.cell.threads)),
    };
    match (bound.over, &bound.workload) {
        (Over::EachThreads, Some(_)) => threads.into_iter().map(|one| vec![one]).collect(),
        (Over::EachThreads, None) => {
            threads.sort_unstable();
            threads.into_iter().map(|one| vec![one]).collect()
        }
        (_, Some(_)) => vec![threads],
        (_, None) => vec![Vec::new()],
    }
}

impl BoundResult {
    /// None of a plane without cells; a workload's row says that it was not measured.
    fn judge(
        bound: &Bound,
        place: &str,
        threads: Vec<usize>,
        ours: &str,
        judged: &[&(&Measured, Compared)],
        seed: u64,
    ) -> Option<Self> {
        let is_plane = bound.workload.is_none();
        if is_plane && judged.is_empty() {
            return None;
        }
        let is_measured = is_plane || judged.len() == threads.len();
        let mut result = Self {
            what: bound.what.clone(),
            place: place.to_owned(),
            is_plane,
            threads,
            figure: bound.figure,
            over: bound.over,
            ours: ours.to_owned(),
            against: bound.against.clone(),
            with: Vec::new(),
            at_most: bound.at_most,
            at_least: bound.at_least,
            cells: judged.len(),
            missed: 0,
            undecided: 0,
            ratio: None,
            interval: None,
            worst_cell: None,
            judgement: Judgement::NotMeasured,
        };
        match bound.over {
            _ if !is_measured => {}
            Over::EachCell => result.judge_cells(judged),
            Over::GeometricMean | Over::EachThreads => result.judge_mean(judged, seed),
        }
        Some(result)
    }

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
    fn judge_cells(&mut self, judged: &[&(&Measured, Compared)]) {
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
            self.with = vec![compared.with.clone()];
        }
    }

    fn judge_mean(&mut self, judged: &[&(&Measured, Compared)], seed: u64) {
        let ratios: Vec<&ByRound> = judged.iter().map(|(_, compared)| &compared.by_round).collect();
        let means: Vec<f64> = mean_by_round(&ratios).into_values().collect();
        self.ratio = median(&means);
        self.interval = ratio_interval(&means, seed).map(|ratio| [ratio.low, ratio.high]);
        self.judgement = self.judgement_of(self.interval);
        self.with = distinct(judged.iter().map(|(_, compared)| compared.with.clone()));
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
