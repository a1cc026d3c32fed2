//! Runs for a table: several seeds of each, side by side, and figures from them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use spinpark_sim::machine::Machine;
use spinpark_sim::parallel::run_all;
use spinpark_sim::workload::{Report, Setting, SettingError};

use super::{Bound, Effort, Figure, Progress, Unit};

/// A machine of this repository.
pub(crate) fn machine(name: &str) -> Result<Machine, SettingError> {
    Machine::load(name).map_err(|error| SettingError::Unfit(error.to_string()))
}

/// Seeds by effort.
pub(crate) fn seeds(effort: Effort) -> u64 {
    match effort {
        Effort::Quick => 1,
        Effort::Full => 3,
    }
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
pub(super) fn longest_wait(report: &Report) -> f64 {
    report.places.iter().map(|place| place.longest_wait_ns).fold(0.0, f64::max)
}

/// Jain's index over the threads: 1 is evenly, 1/threads is all by one.
pub(super) fn evenness(report: &Report) -> f64 {
    let (sum, squares) = report.operations.iter().fold((0.0, 0.0), |(sum, squares), &operations| {
        let operations = operations as f64;
        (sum + operations, squares + operations * operations)
    });
    sum * sum / (squares * report.operations.len() as f64)
}
