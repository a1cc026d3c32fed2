//! Before anything is measured: one run on each kind of lock, to warm caches and to see that there is something to compare.

use anyhow::Context;
use spinpark_measure::configuration::Configuration;
use spinpark_measure::executable::usage::Usage;
use spinpark_measure::launch::Launcher;
use spinpark_measure::sample::Sample;

/// What was learnt.
pub(crate) struct Prepared {
    /// The run on glibc.
    pub(crate) glibc: Sample,
    /// The run on spinpark.
    pub(crate) spinpark: Sample,
    /// What the drop-in saw in it.
    pub(crate) usage: Usage,
}

impl Prepared {
    /// How long `rounds` blocks will take, in seconds.
    pub(crate) fn estimate_s(&self, rounds: usize) -> f64 {
        rounds as f64 * (2.0 * self.glibc.wall_s + self.spinpark.wall_s)
    }
}

/// Runs each kind once.
pub(crate) fn prepare(launcher: &Launcher<'_>) -> anyhow::Result<Prepared> {
    let (glibc, _) = launcher.run(Configuration::Glibc, 0, None)?;
    let (spinpark, usage) = on_spinpark(launcher)?;
    Ok(Prepared { glibc, spinpark, usage })
}

/// Runs once on spinpark, and fails if the drop-in was not loaded or not used.
pub(crate) fn on_spinpark(launcher: &Launcher<'_>) -> anyhow::Result<(Sample, Usage)> {
    let report = tempfile::Builder::new().prefix("spinpark-report-").tempfile();
    let report = report.context("cannot create a temporary file; is TMPDIR writable?")?;
    let (spinpark, output) = launcher.run(Configuration::Spinpark, 0, Some(report.path()))?;
    let usage = Usage::read(report.path())?;
    usage.check(&output)?;
    Ok((spinpark, usage))
}
