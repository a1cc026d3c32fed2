//! Goals: a ratio of two implementations in one run, with a limit, and a verdict.
//!
//! The ratio is taken within rounds; its median has a 95 % interval. "Holds" and "missed" need the whole
//! interval on one side of the limit; anything else is undecided. "Best peer" is the one whose median is best
//! in that cell, among the peers that are present; nothing of ours is a peer. Picking it by the same runs
//! favours the peer, a little.

use std::collections::BTreeMap;

use serde::Serialize;
use spinpark_measure::stats::paired::{paired, ratio};
use spinpark_measure::stats::{Ratio, median};

use super::definitions::{Bound, Definitions, Figure, Implementation, Over, Role, Selection};
use super::experiment::Measured;
use super::result::by_round;

/// What a bound's implementation is divided by if it is not one by name.
pub const BEST: &str = "best";

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

/// One row of the table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BoundResult {
    /// What the bound is about.
    pub what: String,
    /// Which number.
    pub figure: Figure,
    /// In which workload.
    pub workload: String,
    /// At which numbers of threads.
    pub threads: Vec<usize>,
    /// Which implementation of ours.
    pub ours: String,
    /// Divided by which: one for each number of threads, or fewer if they are the same.
    pub against: Vec<String>,
    /// Whether that is the best peer.
    pub is_best_peer: bool,
    /// The largest ratio that is fine, if it is one of those.
    pub at_most: Option<f64>,
    /// The smallest ratio that is fine, if it is one of those.
    pub at_least: Option<f64>,
    /// Ours ÷ the other, within rounds.
    pub ratio: Option<Ratio>,
    /// Whether it holds.
    pub judgement: Judgement,
}

/// The cells that bounds need, each with its implementations.
///
/// # Errors
///
/// If a bound names what is not defined.
pub fn selections(definitions: &Definitions) -> Result<Vec<(Selection, Vec<String>)>, String> {
    let mut cells = BTreeMap::<(String, usize), Vec<String>>::new();
    for bound in &definitions.bounds {
        let peers =
            definitions.implementations.iter().filter(|implementation| implementation.role == Role::Peer);
        let against = match bound.against.as_str() {
            BEST => peers.map(|implementation| implementation.name.clone()).collect(),
            other => vec![other.to_owned()],
        };
        for threads in threads_of(bound, definitions)? {
            let wanted = cells.entry((bound.workload.clone(), threads)).or_default();
            wanted.extend(bound.ours.iter().cloned().chain(against.iter().cloned()));
        }
    }
    let rank = |name: &String| {
        definitions.implementations.iter().position(|implementation| implementation.name == *name)
    };
    let one = |((workload, threads), mut implementations): (_, Vec<String>)| {
        implementations.sort_by_key(rank);
        implementations.dedup();
        (Selection { workload, threads: vec![threads] }, implementations)
    };
    let mut selections: Vec<_> = cells.into_iter().map(one).collect();
    selections.sort_by_key(|(selection, _)| {
        definitions.workloads.iter().position(|workload| workload.name == selection.workload)
    });
    Ok(selections)
}

fn threads_of(bound: &Bound, definitions: &Definitions) -> Result<Vec<usize>, String> {
    match bound.threads.as_slice() {
        [] => Ok(definitions.workload(&bound.workload)?.threads.clone()),
        threads => Ok(threads.to_vec()),
    }
}

/// Judges all bounds.
///
/// # Errors
///
/// If a bound names what is not defined.
pub fn judge_all(
    definitions: &Definitions,
    measured: &[Measured],
    seed: u64,
) -> Result<Vec<BoundResult>, String> {
    let mut results = Vec::new();
    for bound in &definitions.bounds {
        let threads = threads_of(bound, definitions)?;
        for ours in &bound.ours {
            let judge = |thread_counts: &[usize]| {
                judge(bound, ours, thread_counts, &definitions.implementations, measured, seed)
            };
            match bound.over {
                Over::Each => results.extend(threads.chunks(1).map(judge)),
                Over::GeometricMean => results.push(judge(&threads)),
            }
        }
    }
    Ok(results)
}

fn judge(
    bound: &Bound,
    ours: &str,
    thread_counts: &[usize],
    implementations: &[Implementation],
    measured: &[Measured],
    seed: u64,
) -> BoundResult {
    let each: Option<Vec<_>> = thread_counts
        .iter()
        .map(|&threads| {
            let is_it = |m: &&Measured| m.cell.workload == bound.workload && m.cell.threads == threads;
            ratios(bound, ours, measured.iter().find(is_it)?, implementations)
        })
        .collect();
    let mut result = BoundResult {
        what: bound.what.clone(),
        figure: bound.figure,
        workload: bound.workload.clone(),
        threads: thread_counts.to_vec(),
        ours: ours.to_owned(),
        against: Vec::new(),
        is_best_peer: bound.against == BEST,
        at_most: bound.at_most,
        at_least: bound.at_least,
        ratio: None,
        judgement: Judgement::NotMeasured,
    };
    if let Some(each) = each {
        result.against = each.iter().map(|(against, _)| (*against).clone()).collect();
        result.against.dedup();
        let each: Vec<_> = each.into_iter().map(|(_, ratios)| ratios).collect();
        result.ratio = ratio(&geometric_mean(&each), seed);
        result.judgement = judgement(bound, result.ratio.as_ref());
    }
    result
}

/// Which implementation ours is divided by in a cell, and the ratios, round by round.
fn ratios<'a>(
    bound: &Bound,
    ours: &str,
    measured: &Measured,
    implementations: &'a [Implementation],
) -> Option<(&'a String, BTreeMap<usize, f64>)> {
    let figure = bound.figure;
    let candidates = implementations.iter().filter(|implementation| match bound.against.as_str() {
        BEST => implementation.role == Role::Peer,
        name => implementation.name == name,
    });
    let rounds = |name: &str| by_round(measured, name, false, figure);
    let best = candidates
        .filter_map(|implementation| {
            let rounds = rounds(&implementation.name);
            let middle = median(&rounds.values().copied().collect::<Vec<_>>())?;
            Some((&implementation.name, rounds, if figure.more_is_better() { -middle } else { middle }))
        })
        .min_by(|a, b| a.2.total_cmp(&b.2));
    let (against, theirs, _) = best?;
    let ratios = paired(&rounds(ours), &theirs);
    (!ratios.is_empty()).then_some((against, ratios))
}

/// Round by round, where all have that round.
fn geometric_mean(each: &[BTreeMap<usize, f64>]) -> BTreeMap<usize, f64> {
    let Some((first, others)) = each.split_first() else { return BTreeMap::new() };
    let of_round = |(&round, &ratio): (&usize, &f64)| {
        let logs: Option<f64> = others.iter().map(|ratios| ratios.get(&round).map(|ratio| ratio.ln())).sum();
        Some((round, ((ratio.ln() + logs?) / each.len() as f64).exp()))
    };
    first.iter().filter_map(of_round).collect()
}

fn judgement(bound: &Bound, ratio: Option<&Ratio>) -> Judgement {
    let Some(ratio) = ratio else { return Judgement::Undecided };
    let within = |value: f64| {
        bound.at_most.is_none_or(|limit| value <= limit) && bound.at_least.is_none_or(|limit| value >= limit)
    };
    match (within(ratio.low), within(ratio.high)) {
        (true, true) => Judgement::Holds,
        (false, false) => Judgement::Missed,
        _ => Judgement::Undecided,
    }
}
