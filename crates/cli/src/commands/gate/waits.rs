//! `spinpark gate waits`: threads wait for locks for at most a share of their time.

use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

use serde::Serialize;
use spinpark_profile::share::{Waited, figure_name};

use super::baseline::bound;
use super::outputs::Outputs;
use crate::cli::{GateWaits, Profile};
use crate::commands::profile::{processes_now, processes_of};
use crate::say::Say;
use crate::{exit, own};

/// What was read, one entry per process, and added up.
#[derive(Serialize)]
struct Measurement {
    /// As they were named; none if the program was recorded for this.
    recordings: Vec<String>,
    processes: Vec<Process>,
    all: Waited,
}

#[derive(Serialize)]
struct Process {
    program: String,
    pid: u32,
    #[serde(flatten)]
    waited: Waited,
}

/// Reads the recording, or makes one, and judges the share.
pub(super) fn run(gate: &GateWaits) -> anyhow::Result<ExitCode> {
    let lock = gate.lock.as_deref();
    let bound = bound(
        gate.at_most,
        &gate.kept,
        &figure_name(lock),
        |then| then.high,
        |then, worse| (then + worse).min(1.0),
    )?;
    let outputs = Outputs::open(&gate.out)?;
    let (subject, profiles, unread) = match &gate.recordings[..] {
        recordings @ [_, ..] => {
            let names: Vec<String> = recordings.iter().map(|path| path.display().to_string()).collect();
            let (profiles, unread) = processes_of(recordings)?;
            (names.join(" "), profiles, unread)
        }
        [] => {
            let recorded = processes_now(&Profile::of(&gate.program, gate.output.clone()))?;
            let profiles = match recorded {
                Some((_, status)) if !status.success() => return Ok(failed(status)),
                Some((profiles, _)) => profiles,
                None => Vec::new(),
            };
            let command: Vec<String> =
                gate.program.iter().map(|word| word.to_string_lossy().into_owned()).collect();
            (own::line(&command), profiles, Vec::new())
        }
    };
    let of_each = profiles.iter().map(|profile| Process {
        program: profile.program.clone(),
        pid: profile.pid,
        waited: Waited::of(std::slice::from_ref(profile), lock),
    });
    let mut all = Waited::of(&profiles, lock);
    all.missing.extend(unread);
    let recordings = gate.recordings.iter().map(|path| path.display().to_string());
    let measurement = Measurement { recordings: recordings.collect(), processes: of_each.collect(), all };
    let mut judged = measurement.all.judged(&subject, bound.is);
    judged.notes.extend(bound.note);
    outputs.report(&judged, &measurement, |_| ())
}

/// A program that did not do its work says nothing of its locks.
fn failed(status: ExitStatus) -> ExitCode {
    let say = Say { on_stderr: true };
    say.line("No verdict: the program failed. Make it succeed by itself first, or judge its recording.");
    let is_interrupted = status.signal() == Some(libc::SIGINT);
    ExitCode::from(if is_interrupted { exit::INTERRUPTED } else { exit::FAILED })
}
