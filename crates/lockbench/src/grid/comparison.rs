//! Ours in one cell, divided by a peer: the ratio within rounds, its median and its interval.

use serde::Serialize;
use spinpark_measure::stats::bootstrap::ratio_interval_of;
use spinpark_measure::stats::median;
use spinpark_measure::stats::paired::{ByRound, paired};

use super::calibration::Calibration;
use super::cells::GridCell;
use super::figure::{Against, Figure};
use super::ideal;
use super::starvation::Starvation;
use crate::locks::definitions::{Implementation, Role};
use crate::locks::load::Placement;

/// Fewer than for a single number: a grid has thousands of intervals.
const RESAMPLES: usize = 2_000;

/// A peer is fair only if it is not bought with throughput: at least this part of the best.
pub const FAST_ENOUGH: f64 = 0.8;

/// Added to futex calls an operation before a ratio is taken; they may be zero.
const FUTEX_FLOOR: f64 = 0.001;

/// What is the same for all cells.
#[derive(Debug, Clone)]
pub struct Context<'a> {
    /// All implementations.
    pub implementations: Vec<&'a Implementation>,
    /// How long an iteration takes.
    pub calibration: Option<Calibration>,
    /// CPUs of the machine.
    pub cpus: usize,
    /// Makes intervals reproducible.
    pub seed: u64,
}

/// One figure of one of our implementations in one cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// What it is divided by: an implementation's name, or "ideal".
    pub with: String,
    /// The figure itself: median over rounds.
    pub own: f64,
    /// The other's.
    pub other: f64,
    /// Ours ÷ the other: the median of the ratios within rounds.
    pub ratio: f64,
    /// The 95 % interval of that median, if there are enough rounds.
    pub interval: Option<[f64; 2]>,
    /// The ratios.
    #[serde(skip)]
    pub by_round: ByRound,
}

impl Context<'_> {
    /// Our implementations that were measured, in order.
    pub fn ours<'a>(&'a self, cells: &'a [GridCell]) -> impl Iterator<Item = &'a str> {
        self.ours_of(move |name| cells.iter().any(|cell| cell.measured.cell.implementations.contains(name)))
    }

    /// Those of some cells.
    pub fn ours_in<'a>(&'a self, cells: &'a [&'a GridCell]) -> impl Iterator<Item = &'a str> {
        self.ours_of(move |name| cells.iter().any(|cell| cell.measured.cell.implementations.contains(name)))
    }

    fn ours_of<'a>(&'a self, is_there: impl Fn(&String) -> bool + 'a) -> impl Iterator<Item = &'a str> {
        let ours = self.implementations.iter().filter(|implementation| implementation.role == Role::Ours);
        ours.map(|implementation| &implementation.name).filter(move |name| is_there(name)).map(String::as_str)
    }

    /// The peers in a cell, without those that starve writers.
    fn peers<'a>(&'a self, cell: &'a GridCell) -> impl Iterator<Item = &'a str> {
        let is_peer = |name: &&String| {
            self.implementations
                .iter()
                .any(|implementation| implementation.name == **name && implementation.role == Role::Peer)
        };
        let names = cell.measured.cell.implementations.iter().filter(is_peer).map(String::as_str);
        names.filter(|name| Starvation::of(cell, name).is_none())
    }

    /// The peer to compare a figure with; see [`Against::Best`].
    #[must_use]
    pub fn best_peer<'a>(&'a self, cell: &'a GridCell, figure: Figure) -> Option<&'a str> {
        let middle = |name: &str, figure| middle(&by_round(cell, name, figure));
        let fast: Vec<(&str, f64)> =
            self.peers(cell).filter_map(|name| Some((name, middle(name, Figure::Throughput)?))).collect();
        let best = fast.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        match figure {
            Figure::WaitP999 | Figure::LongestWait => {
                let enough = fast.iter().filter(|(_, throughput)| *throughput >= FAST_ENOUGH * best.1);
                let waits = enough.filter_map(|(name, _)| Some((*name, middle(name, figure)?)));
                waits.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(name, _)| name)
            }
            _ => Some(best.0),
        }
    }

    /// Compares `ours` in a cell. None if one of the two has no such figure.
    #[must_use]
    pub fn compare(
        &self,
        cell: &GridCell,
        ours: &str,
        figure: Figure,
        against: &Against,
    ) -> Option<Compared> {
        let is_ideal = figure == Figure::Ideal || *against == Against::Ideal;
        if is_ideal {
            return self.share_of_ideal(cell, ours, figure);
        }
        let with = match against {
            Against::Implementation(name) => name.as_str(),
            _ => self.best_peer(cell, figure)?,
        };
        if figure == Figure::Futex {
            return futex(cell, ours, with);
        }
        let (own, other) = (by_round(cell, ours, figure), by_round(cell, with, figure));
        self.compared(with, &own, middle(&other)?, paired(&own, &other))
    }

    fn share_of_ideal(&self, cell: &GridCell, ours: &str, figure: Figure) -> Option<Compared> {
        if !matches!(figure, Figure::Ideal | Figure::Throughput) {
            return None;
        }
        let load = &cell.measured.cell.load;
        let cpus = if cell.measured.cell.cpus == Placement::One { 1 } else { self.cpus };
        let ideal = ideal::throughput(load, cell.threads(), cpus, self.calibration.as_ref()?)?;
        let own = by_round(cell, ours, Figure::Throughput);
        let shares = own.iter().map(|(round, own)| (*round, own / ideal)).collect();
        self.compared("ideal", &own, ideal, shares)
    }

    fn compared(&self, with: &str, own: &ByRound, other: f64, by_round: ByRound) -> Option<Compared> {
        let ratios: Vec<f64> = by_round.values().copied().collect();
        let interval = ratio_interval_of(RESAMPLES, &ratios, self.seed);
        Some(Compared {
            with: with.to_owned(),
            own: middle(own)?,
            other,
            ratio: median(&ratios)?,
            interval: interval.map(|ratio| [ratio.low, ratio.high]),
            by_round,
        })
    }
}

/// Futex calls are counted once, so there is no interval.
fn futex(cell: &GridCell, ours: &str, with: &str) -> Option<Compared> {
    let of = |implementation| cell.measured.futex_calls.get(implementation).copied();
    let (own, other) = (of(ours)?, of(with)?);
    let ratio = (own + FUTEX_FLOOR) / (other + FUTEX_FLOOR);
    let by_round = ByRound::from([(0, ratio)]);
    Some(Compared { with: with.to_owned(), own, other, ratio, interval: None, by_round })
}

/// The figure of each round; without the baseline's second runs.
fn by_round(cell: &GridCell, implementation: &str, figure: Figure) -> ByRound {
    let runs = cell.measured.runs.iter().filter(|run| run.implementation == implementation && !run.again);
    runs.filter_map(|run| Some((run.round, figure.of(&run.report)?))).collect()
}

/// The median of a figure of an implementation; futex calls are counted once.
#[must_use]
pub fn figure_of(cell: &GridCell, implementation: &str, figure: Figure) -> Option<f64> {
    match figure {
        Figure::Futex => cell.measured.futex_calls.get(implementation).copied(),
        _ => middle(&by_round(cell, implementation, figure)),
    }
}

fn middle(by_round: &ByRound) -> Option<f64> {
    median(&by_round.values().copied().collect::<Vec<_>>())
}
