//! Before anything is measured: one run on each kind of lock, to warm caches and to see that there is
//! something to compare.

use std::io::Write;

use anyhow::Context;
use spinpark_measure::configuration::Configuration;
use spinpark_measure::executable::usage::{NoUse, Usage};
use spinpark_measure::launch::Launcher;
use spinpark_measure::sample::Sample;

/// The results of the first runs.
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

/// Runs each kind once. The drop-in's own report shows a program that brings spinpark's locks itself: from
/// then on they are off in the baseline.
pub(crate) fn prepare(launcher: &mut Launcher<'_>) -> anyhow::Result<Prepared> {
    let (mut glibc, mut seen, _) = reported(launcher, Configuration::Glibc)?;
    if seen.has_our_locks() {
        launcher.switch_off_drop_in();
        (glibc, seen, _) = reported(launcher, Configuration::Glibc)?;
        if seen.has_our_locks() {
            return Err(NoUse::NoBaseline.into());
        }
    }
    let (spinpark, usage) = on_spinpark(launcher)?;
    Ok(Prepared { glibc, spinpark, usage })
}

/// Runs once on spinpark, and fails if the drop-in was not loaded or not used.
fn on_spinpark(launcher: &Launcher<'_>) -> anyhow::Result<(Sample, Usage)> {
    let (spinpark, usage, output) = reported(launcher, Configuration::Spinpark)?;
    usage.check(&output)?;
    Ok((spinpark, usage))
}

/// Runs once; what the drop-in reports, and what the program printed.
fn reported(
    launcher: &Launcher<'_>,
    configuration: Configuration,
) -> anyhow::Result<(Sample, Usage, String)> {
    let report = tempfile::Builder::new().prefix("spinpark-report-").tempfile();
    let mut report = report.context("cannot create a temporary file; is TMPDIR writable?")?;
    // This allocates the block for the drop-in's lines, which would be lost silently on a full disk.
    report.write_all(b"spinpark\n").and_then(|()| report.as_file().sync_data()).with_context(|| {
        format!("cannot write to {}; set TMPDIR to a directory with free space", report.path().display())
    })?;
    let (sample, output) = launcher.run(configuration, 0, Some(report.path()))?;
    Ok((sample, Usage::read(report.path())?, output))
}
