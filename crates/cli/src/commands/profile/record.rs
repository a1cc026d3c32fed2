//! A recording, from the program's start to its end.

use std::path::Path;
use std::process::ExitStatus;
use std::time::SystemTime;

use anyhow::Context;
use spinpark_measure::process::apart::release_inherited;
use spinpark_measure::process::ended::in_words;
use spinpark_profile::attach::{PythonSites, PythonWatch};
use spinpark_profile::keeper::Keeper;
use spinpark_profile::model::Cost;
use spinpark_profile::read::{compact, note_end};
use spinpark_profile::symbols::Kept;
use spinpark_profile::watch::{self, Observation};

use super::launch::Running;
use super::request::Request;
use super::{overhead, recording_directory};
use crate::say::Say;

/// A program that was recorded and has ended, and what this process knows of its run.
pub(super) struct Ended {
    /// Before it was started.
    pub(super) started: SystemTime,
    pub(super) running: Running,
    pub(super) status: ExitStatus,
    /// The cost of recording it, if it was asked for.
    pub(super) measured: Option<Cost>,
    /// What was seen of it in `/proc`.
    pub(super) seen: Option<Observation>,
    /// Where threads of Python waited.
    pub(super) python: PythonSites,
    /// Its files, opened before they vanished.
    pub(super) kept: Kept,
}

/// Runs the program; it records into `directory`.
///
/// # Errors
///
/// If it cannot be started or waited for.
pub(super) fn record(request: &Request<'_>, directory: &Path) -> anyhow::Result<Ended> {
    let (launch, say) = (&request.launch, Say { on_stderr: true });
    let started = SystemTime::now();
    let begun = (|| {
        let measured =
            request.options.overhead.then(|| overhead::measure(launch, request.options)).transpose()?;
        let (running, watch) = if request.becomes_program {
            let running = launch.start_as_this_process(directory)?;
            (running, watch::prepare(launch.recorder()))
        } else {
            let watch = watch::prepare(launch.recorder());
            (launch.start(directory)?, watch)
        };
        let watch = watch.start(running.id());
        Ok((measured, running, watch))
    })();
    let (measured, mut running, watch) =
        begun.inspect_err(|_: &anyhow::Error| recording_directory::remove_if_empty(directory))?;
    release_inherited(request.keeps_stdout);
    if !Path::new("/proc/self/maps").exists() {
        say.wrapped(
            "Warning: /proc is not mounted here. The recorder cannot see which files the program has loaded, so functions have no \
             names. Mount it first: `mount -t proc proc /proc`.",
            0,
        );
    }
    // Files that the program removes or replaces keep their names this way.
    let keeper = Keeper::start(directory);
    let python = PythonWatch::start(running.id());
    let status = running.wait_for_end(request.options.duration).context("cannot wait for the program")?;
    let seen = watch.finish();
    let python = python.finish();
    // Without it, the recording ends with the last sign of life.
    let _ = note_end(directory, running.id());
    compact(directory);
    if !status.success() && !running.was_asked() {
        let ended = running.why(status).unwrap_or_else(|| in_words(status));
        say.line(format_args!("{} {ended}; this is what was recorded.", launch.name()));
    }
    Ok(Ended { started, running, status, measured, seen, python, kept: keeper.stop() })
}
