//! Ours in one cell, divided by a peer: the ratio within rounds, its median and its interval.
//!
//! A read-write lock that starves writers is no peer in that cell: fast readers are no merit then.

use serde::Serialize;
use spinpark_measure::stats::bootstrap::ratio_interval_of;
use spinpark_measure::stats::median;
use spinpark_measure::stats::paired::{ByRound, paired};

use super::definitions::{Implementation, Role};
use super::experiment::Measured;
use super::figure::{Against, Figure};
use super::ideal::{self, Calibration};
use super::load::Placement;

/// Fewer than for a single number: a grid has thousands of intervals.
pub(super) const RESAMPLES: usize = 2_000;

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
    /// Our implementations that were measured in one of `cells`, in order.
    pub fn ours<'a>(
        &'a self,
        cells: impl IntoIterator<Item = &'a Measured> + Clone,
    ) -> impl Iterator<Item = &'a str> {
        let ours = self.of_role(Role::Ours);
        ours.filter(move |name| {
            cells.clone().into_iter().any(|cell| cell.cell.implementations.iter().any(|own| own == name))
        })
    }

    fn of_role(&self, role: Role) -> impl Iterator<Item = &str> {
        let all = self.implementations.iter().filter(move |implementation| implementation.role == role);
        all.map(|implementation| implementation.name.as_str())
    }

    fn peers<'a>(&'a self, cell: &'a Measured) -> impl Iterator<Item = &'a str> {
        self.of_role(Role::Peer).filter(|name| cell.cell.implementations.iter().any(|own| own == name))
    }

    /// The peer whose figure is best in a cell.
    fn best_figure<'a>(&'a self, cell: &'a Measured, figure: Figure) -> Option<&'a str> {
        let sign = if figure.more_is_better() { -1.0 } else { 1.0 };
        let cost = |name| Some((name, sign * figure_of(cell, name, figure)?));
        let best = self.peers(cell).filter_map(cost).min_by(|a, b| a.1.total_cmp(&b.1));
        best.map(|(name, _)| name)
    }

    /// The peer to compare a figure with; see [`Against::Best`].
    #[must_use]
    pub fn best_peer<'a>(&'a self, cell: &'a Measured, figure: Figure) -> Option<&'a str> {
        let middle = |name: &str, figure| middle(&by_round(cell, name, figure));
        let fair = self.peers(cell).filter(|name| Starvation::of(cell, name).is_none());
        let fast: Vec<(&str, f64)> =
            fair.filter_map(|name| Some((name, middle(name, Figure::Throughput)?))).collect();
        let best = fast.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        match figure {
            _ if figure.is_of_waits() => {
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
        cell: &Measured,
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
            Against::BestFigure => self.best_figure(cell, figure)?,
            _ => self.best_peer(cell, figure)?,
        };
        if figure == Figure::Futex {
            return futex(cell, ours, with);
        }
        let (own, other) = (by_round(cell, ours, figure), by_round(cell, with, figure));
        self.compared(with, &own, middle(&other)?, paired(&own, &other))
    }

    fn share_of_ideal(&self, cell: &Measured, ours: &str, figure: Figure) -> Option<Compared> {
        if !matches!(figure, Figure::Ideal | Figure::Throughput) {
            return None;
        }
        let load = &cell.cell.load;
        let cpus = if cell.cell.cpus == Placement::One { 1 } else { self.cpus };
        let ideal = ideal::throughput(load, cell.cell.threads, cpus, self.calibration.as_ref()?)?;
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
fn futex(cell: &Measured, ours: &str, with: &str) -> Option<Compared> {
    let of = |implementation| cell.futex_calls.get(implementation).copied();
    let (own, other) = (of(ours)?, of(with)?);
    let ratio = (own + FUTEX_FLOOR) / (other + FUTEX_FLOOR);
    let by_round = ByRound::from([(0, ratio)]);
    Some(Compared { with: with.to_owned(), own, other, ratio, interval: None, by_round })
}

/// The figure of each round; without the baseline's second runs.
fn by_round(cell: &Measured, implementation: &str, figure: Figure) -> ByRound {
    let runs = cell.runs.iter().filter(|run| run.implementation == implementation && !run.again);
    runs.filter_map(|run| Some((run.round, figure.of(&run.report)?))).collect()
}

/// The median of a figure of an implementation; futex calls are counted once.
#[must_use]
pub fn figure_of(cell: &Measured, implementation: &str, figure: Figure) -> Option<f64> {
    match figure {
        Figure::Futex => cell.futex_calls.get(implementation).copied(),
        _ => middle(&by_round(cell, implementation, figure)),
    }
}

fn middle(by_round: &ByRound) -> Option<f64> {
    median(&by_round.values().copied().collect::<Vec<_>>())
}

/// A writer that waits longer than this part of a run starves.
pub const LONG_WAIT: f64 = 0.25;
/// Writers that get less than this part of their share starve.
pub const SMALL_SHARE: f64 = 0.1;
/// With fewer writes expected, their share says nothing.
const FEW_WRITES: f64 = 20.0;

/// How an implementation starves its writers: medians over runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Starvation {
    /// Which implementation.
    pub implementation: String,
    /// The longest wait of a writer, as a part of the run.
    pub longest_wait: f64,
    /// Writes that were made, as a part of those that the load asks for; none if these are too few.
    pub share: Option<f64>,
}

impl Starvation {
    /// Whether, and how, `implementation` starves writers in a cell.
    #[must_use]
    pub fn of(cell: &Measured, implementation: &str) -> Option<Self> {
        let writes = f64::from(cell.writes().filter(|writes| *writes > 0)?) / 1000.0;
        let of_it = || cell.runs.iter().filter(|run| run.implementation == implementation);
        let runs = || of_it().map(|run| &run.report);
        let waits = runs().filter_map(|report| {
            Some(report.waits.as_ref()?.longest_write_ns.unwrap_or(0) as f64 * 1e-9 / report.elapsed_s)
        });
        let shares = runs().filter(|report| report.operations as f64 * writes >= FEW_WRITES);
        let shares = shares.filter_map(|report| Some(report.writes? / writes));
        let longest_wait = median(&waits.collect::<Vec<_>>()).unwrap_or_default();
        let share = median(&shares.collect::<Vec<_>>());
        let starves = longest_wait > LONG_WAIT || share.is_some_and(|share| share < SMALL_SHARE);
        starves.then(|| Self { implementation: implementation.to_owned(), longest_wait, share })
    }
}
