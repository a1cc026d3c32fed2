//! Before anything is measured: one run on each kind of lock, to warm caches and to see that there is
//! something to compare.

use std::io::Write;

use anyhow::Context;
use spinpark_measure::process::executable::usage::{NoUse, Usage};
use spinpark_measure::rounds::configuration::{Configuration, Subject};
use spinpark_measure::rounds::launch::Launcher;
use spinpark_measure::rounds::sample::Sample;

/// The results of the first runs.
pub(crate) struct Prepared {
    /// The run of the baseline.
    pub(crate) baseline: Sample,
    /// The run of the candidate.
    pub(crate) candidate: Sample,
    /// What the drop-in saw in it, if it was used.
    pub(crate) usage: Option<Usage>,
}

impl Prepared {
    /// How long `rounds` blocks will take, in seconds.
    pub(crate) fn estimate_s(&self, rounds: usize) -> f64 {
        rounds as f64 * (2.0 * self.baseline.wall_s + self.candidate.wall_s)
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
    let (candidate, usage) = on_spinpark(launcher)?;
    Ok(Prepared { baseline: glibc, candidate, usage: Some(usage) })
}

/// Runs each of two programs once; also returns sentences on whose locks they use. With `on_drop_in` both must
/// load it, and one must use it: a mended program may have no lock left.
pub(crate) fn prepare_programs(
    launcher: &Launcher<'_>,
    on_drop_in: bool,
) -> anyhow::Result<(Prepared, Vec<String>)> {
    let [before, _, after] = Subject::Programs.configurations();
    let (baseline, of_before, output) = reported(launcher, before)?;
    let (candidate, of_after, output_after) = reported(launcher, after)?;
    if !on_drop_in {
        let seen = [(before, of_before), (after, of_after)];
        let own = seen.into_iter().filter(|(_, usage)| usage.has_our_locks()).map(|(which, _)| {
            format!(
                "`{which}` runs on spinpark's locks by itself (linked with the drop-in, or preloaded on the way)."
            )
        });
        return Ok((Prepared { baseline, candidate, usage: None }, own.collect()));
    }
    let checked = [(before, of_before.check(&output)), (after, of_after.check(&output_after))];
    let is_used = checked.iter().any(|(_, checked)| checked.is_ok());
    let mut notes = Vec::new();
    for (configuration, checked) in checked {
        match checked {
            Err(NoUse::NotUsed) if is_used => {
                notes.push(format!("`{configuration}` used no pthread lock in its trial run."));
            }
            checked => {
                checked.with_context(|| format!("`{configuration}` cannot run on spinpark's locks"))?;
            }
        }
    }
    Ok((Prepared { baseline, candidate, usage: Some(of_after) }, notes))
}

/// Runs once on spinpark, and fails if the drop-in was not loaded or not used.
pub(super) fn on_spinpark(launcher: &Launcher<'_>) -> anyhow::Result<(Sample, Usage)> {
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
