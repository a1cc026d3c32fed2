//! The tables of the four documents that need a bigger machine: published and simulated.

pub(crate) mod planes;
mod race;
pub(crate) mod readers;
pub(crate) mod scale;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::{Deserialize, Serialize};
use spinpark_sim::machine::Machine;
use spinpark_sim::parallel::run_all;
pub use spinpark_sim::table::{Bins, Bound, Figure, Table, Unit};
use spinpark_sim::workload::{Report, Setting, SettingError};

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
