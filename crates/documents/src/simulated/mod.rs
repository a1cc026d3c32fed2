//! The tables of the four documents that need a bigger machine: published and simulated.

pub(crate) mod planes;
mod race;
pub(crate) mod readers;
pub(crate) mod scale;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::{Deserialize, Serialize};
use spinpark_measure::report::front::Front;
use spinpark_sim::machine::Machine;
use spinpark_sim::sweep::run_all;
use spinpark_sim::workload::{Report, Setting, SettingError};

/// What a simulated figure must be for its check to hold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Bound {
    Within(f64, f64),
    AtLeast(f64),
    AtMost(f64),
    /// On the same side of the neutral value (1 for ratios, 0 for differences) as what is published.
    Sign,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Unit {
    /// A ratio; 1: no effect.
    Ratio,
    /// A difference in percent; 0: no effect.
    Percent,
    PerSecond,
    Nanoseconds,
    Cycles,
    /// A count, or the number of a bin.
    Count,
}

/// A figure of a document, and the simulator's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// What it is: the row's name in the table.
    pub name: String,
    pub unit: Unit,
    /// What the document says, if it does.
    pub published: Option<f64>,
    /// What the simulation says: the mean over the seeds.
    pub simulated: f64,
    /// Its lowest and highest value over the seeds.
    pub range: (f64, f64),
    pub bound: Option<Bound>,
    /// Whether a constant of the model was chosen so that this figure comes out.
    pub fitted: bool,
}

impl Figure {
    /// How far the simulation is from the document, as a part of the latter.
    ///
    /// None: nothing is published, or 0, of which nothing is a part.
    pub fn relative_error(&self) -> Option<f64> {
        let error = self.published.map(|published| match self.unit {
            // +4 % against +2 % is 1.04 against 1.02.
            Unit::Percent => (100.0 + self.simulated) / (100.0 + published) - 1.0,
            _ => self.simulated / published - 1.0,
        });
        error.filter(|error| error.is_finite())
    }

    /// Whether both are on the same side of "no effect". None: nothing is published, or no effect, or the
    /// unit has no such value.
    pub fn same_sign(&self) -> Option<bool> {
        let neutral = match self.unit {
            Unit::Ratio => 1.0,
            Unit::Percent => 0.0,
            _ => return None,
        };
        let published = self.published.filter(|&published| published != neutral)?;
        Some((published > neutral) == (self.simulated > neutral))
    }

    /// Whether the bound holds. None: there is none.
    pub fn holds(&self) -> Option<bool> {
        Some(match self.bound? {
            Bound::Within(from, to) => (from..=to).contains(&self.simulated),
            Bound::AtLeast(least) => self.simulated >= least,
            Bound::AtMost(most) => self.simulated <= most,
            Bound::Sign => self.same_sign().unwrap_or(false),
        })
    }
}

/// A distribution over bins of powers of two, and the simulator's: parts of each bin, %.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bins {
    /// What was counted: `2.6.34`.
    pub name: String,
    /// What is in bins: `cycles`. Bin *n* holds what is below 2^n, and not below 2^(n−1).
    pub of: String,
    pub first: u32,
    /// From that on, %.
    pub published: Vec<f64>,
    /// As many: the mean over the seeds, %.
    pub simulated: Vec<f64>,
}

/// A table of a document, simulated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// The document: "001" to "004".
    pub document: String,
    pub title: String,
    pub machine: String,
    /// Which figure a constant was fitted to, and which constant; or that none was.
    pub fitted: String,
    pub figures: Vec<Figure>,
    pub distributions: Vec<Bins>,
    /// Throughput and CPU time, each with what it is of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fronts: Vec<(String, Front)>,
    /// What to keep in mind; what the model cannot show, and why.
    pub notes: Vec<String>,
}

impl Table {
    /// A table to which no constant was fitted, without distributions and fronts.
    pub(crate) fn new(
        document: &str,
        title: impl Into<String>,
        machine: impl Into<String>,
        figures: Vec<Figure>,
        notes: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        Self {
            document: document.to_owned(),
            title: title.into(),
            machine: machine.into(),
            fitted: "none".to_owned(),
            figures,
            distributions: Vec::new(),
            fronts: Vec::new(),
            notes: notes.into_iter().map(Into::into).collect(),
        }
    }
}

/// How much is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Effort {
    /// Seconds: for a first look, and for tests. Bounds may be missed by chance.
    Quick,
    /// Minutes.
    Full,
}

impl Effort {
    /// What is simulated with this effort.
    pub(crate) fn pick<T>(self, quick: T, full: T) -> T {
        match self {
            Self::Quick => quick,
            Self::Full => full,
        }
    }

    pub(crate) fn seeds(self) -> u64 {
        self.pick(1, 3)
    }
}

/// Progress: called with what is done, and with all that is to be done as far as that is known.
pub type Progress<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// A table that can be simulated.
#[derive(Clone, Copy)]
pub struct TableSpec {
    /// By which it is chosen: `001-v`, for example.
    pub name: &'static str,
    pub about: &'static str,
    /// CPU time that it takes on the machine `this-2` with [`Effort::Full`], seconds: for estimates of the
    /// time left.
    pub seconds: u32,
    pub run: fn(Effort, Progress<'_>) -> Result<Table, SettingError>,
}

/// A machine of this repository.
pub(crate) fn machine(name: &str) -> Result<Machine, SettingError> {
    Machine::load(name).map_err(|error| SettingError::Unfit(error.to_string()))
}

/// The reports of each setting, by seed.
pub(crate) fn run_seeds(
    settings: &[Setting],
    seeds: u64,
    progress: Progress<'_>,
) -> Result<Vec<Vec<Report>>, SettingError> {
    let with_seed = |setting: &Setting, seed| Setting { seed, ..setting.clone() };
    let all: Vec<_> =
        settings.iter().flat_map(|setting| (0..seeds).map(move |seed| with_seed(setting, seed))).collect();
    let done = AtomicU64::new(0);
    let reports = run_all(&all, |_| progress(done.fetch_add(1, Relaxed) + 1, all.len() as u64))?;
    Ok(reports.chunks(seeds as usize).map(<[Report]>::to_vec).collect())
}

/// A figure from its values by seed.
pub(crate) fn figure(
    name: impl Into<String>,
    unit: Unit,
    published: Option<f64>,
    values: &[f64],
    bound: Option<Bound>,
) -> Figure {
    Figure {
        name: name.into(),
        unit,
        published,
        simulated: values.iter().sum::<f64>() / values.len().max(1) as f64,
        range: (
            values.iter().copied().fold(f64::INFINITY, f64::min),
            values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        ),
        bound,
        fitted: false,
    }
}

/// What `of` says of `these` divided by what it says of `those`, by seed.
pub(crate) fn ratios(these: &[Report], those: &[Report], of: impl Fn(&Report) -> f64) -> Vec<f64> {
    these.iter().zip(those).map(|(this, that)| of(this) / of(that)).collect()
}

/// The longest wait at any of its locks, ns.
pub(crate) fn longest_wait(report: &Report) -> f64 {
    report.places.iter().map(|place| place.longest_wait_ns).fold(0.0, f64::max)
}

/// Jain's index over the threads: 1 is evenly, 1/threads is all by one.
pub(crate) fn evenness(report: &Report) -> f64 {
    let (sum, squares) = report.operations.iter().fold((0.0, 0.0), |(sum, squares), &operations| {
        let operations = operations as f64;
        (sum + operations, squares + operations * operations)
    });
    sum * sum / (squares * report.operations.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(unit: Unit, published: f64, simulated: f64, bound: Bound) -> Figure {
        let range = (simulated, simulated);
        Figure {
            name: String::new(),
            unit,
            published: Some(published),
            simulated,
            range,
            bound: Some(bound),
            fitted: false,
        }
    }

    #[test]
    fn errors_signs_and_bounds() {
        let gain = figure(Unit::Percent, 17.0, 5.3, Bound::Sign);
        assert_eq!((gain.same_sign(), gain.holds()), (Some(true), Some(true)));
        assert!((gain.relative_error().unwrap() + 0.1).abs() < 1e-9);
        let loss = figure(Unit::Ratio, 3.5, 0.9, Bound::AtLeast(2.0));
        assert_eq!((loss.same_sign(), loss.holds()), (Some(false), Some(false)));
        assert_eq!(figure(Unit::Cycles, 1.0, 2.0, Bound::AtMost(2.0)).holds(), Some(true));
    }

    #[test]
    fn of_nothing_nothing_is_a_part() {
        let none = figure(Unit::Count, 0.0, 2.0, Bound::AtLeast(1.0));
        assert_eq!((none.relative_error(), none.same_sign()), (None, None));
        assert_eq!(figure(Unit::Count, 0.0, 0.0, Bound::AtLeast(1.0)).relative_error(), None);
        assert_eq!(
            figure(Unit::Percent, 0.0, -1.0, Bound::Sign).same_sign(),
            None,
            "it says that there is none"
        );
    }
}
