//! The profiles of what was recorded, or why there are none.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use spinpark_measure::report::unwritten::Unwritten;
use spinpark_profile::load::{self, CostSource, ProgramEnd, Recorded, Surroundings};
use spinpark_profile::model::{self, RecordingEnd};
use spinpark_profile::read::{ReadError, compact};
use spinpark_profile::symbols::Symbols;
use spinpark_profile::waits::Waits;
use spinpark_profile::{saved, silence, watch};

use super::launch::Launch;
use super::record::Ended;
use super::request::Request;
use super::{python, recording_directory, untimed_use};
use crate::exit::{self, Exit};
use crate::own::quoted;
use crate::say::Say;

/// Profiles, and what is to be said after them.
pub(super) struct Loaded {
    pub(super) profiles: load::Loaded,
    /// A message about entries of the user's table of waits that matched nothing.
    pub(super) unmet: Option<String>,
}

/// The profiles of a run; if there are none, the reason is said, and this is the exit status.
pub(super) fn profiles(request: &Request<'_>, ended: &mut Ended, directory: &Path) -> Result<Loaded, Exit> {
    let say = Say { on_stderr: true };
    let kept = std::mem::take(&mut ended.kept);
    let mut symbols = Symbols::new().with_debuginfod().with_kept(kept).with_waits(request.waits.clone());
    let recorded = Recorded::read(directory, &mut symbols);
    python::remove_maps(ended.started);
    let recorded = recorded.map_err(|error| nothing(&error, request, ended, directory))?;
    if let Some(seen) = &mut ended.seen {
        seen.name_glibcs(&mut symbols);
    }
    // Measured once, however many processes there are.
    let cost = match ended.measured.take() {
        Some(measured) => CostSource::Measured(measured),
        None => CostSource::Estimated(untimed_use::measure(&request.launch).unwrap_or_default()),
    };
    let (running, status) = (&ended.running, ended.status);
    let end = ProgramEnd {
        pid: running.id(),
        why: running.why(status),
        has_exited: running.knows_status() && status.code().is_some(),
    };
    let known = Surroundings { observation: ended.seen.as_ref(), end: Some(end), cost: Some(cost) };
    let mut profiles = on_this_host(recorded.complete(&known));
    ended.python.name(&mut profiles.profiles);
    if let Some(seen) = &mut ended.seen {
        // A report without it says that threads were not observed.
        let left = saved::bytes_left(directory, request.options.max_size).unwrap_or(0);
        if let Err(error) = seen.save(directory, left) {
            let why = Unwritten::of(directory, &error, None);
            say.line(format_args!("Warning: cannot write {}: {why}.", directory.join(watch::FILE).display()));
        }
    }
    Ok(Loaded { profiles, unmet: unmet(&symbols) })
}

/// Notes where profiles are from, for a report of many: of a file that was copied, nothing else tells.
pub(super) fn on_this_host(loaded: load::Loaded) -> load::Loaded {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = Some(host.trim().to_owned()).filter(|host| !host.is_empty());
    let profiles = loaded.profiles.into_iter();
    let profiles = profiles.map(|profile| model::Profile { host: host.clone(), ..profile }).collect();
    load::Loaded { profiles, ..loaded }
}

/// The profiles of a recording that was made before.
pub(super) fn again(path: &Path, waits: Waits) -> Result<Loaded, ReadError> {
    compact(path);
    let mut symbols = Symbols::new().with_debuginfod().with_waits(waits);
    let profiles = load::load(path, &mut symbols)?;
    Ok(Loaded { profiles, unmet: unmet(&symbols) })
}

impl Loaded {
    /// Keeps the profiles in the recording's directory.
    pub(super) fn save(&self, directory: &Path, max_size: u64) -> io::Result<PathBuf> {
        saved::save(directory, &self.profiles.profiles, max_size)
    }
}

/// What is said after the report: what it lacks, and where to find it again.
pub(super) fn notes(loaded: &Loaded, saved: io::Result<PathBuf>, directory: &Path) {
    let say = Say { on_stderr: true };
    if let Some(text) = &loaded.unmet {
        say.wrapped(text, 0);
    }
    if let Some(text) = still_running(&loaded.profiles.profiles, directory) {
        say.line(text);
    }
    if let Err(error) = saved {
        let why = Unwritten::of(directory, &error, Some(saved::needed(&loaded.profiles.profiles)));
        say.line(format_args!(
            "Warning: cannot write {}: {}. The recording is there, but without symbols: they are looked up again by \
             `spinpark report`, as long as the programs do not change.",
            directory.join(saved::FILE).display(),
            why.why
        ));
    }
    kept(directory);
}

/// Where profiles are kept of which there is no recording, or that they are not: whether they are. There is nothing that
/// they could be made of again.
pub(super) fn kept_alone(saved: io::Result<PathBuf>, loaded: &load::Loaded, directory: &Path) -> bool {
    let why = match saved {
        Ok(path) if path.exists() => {
            kept(directory);
            return true;
        }
        Ok(_) => String::from("it is larger than --max-size allows"),
        Err(error) => {
            let why = Unwritten::of(directory, &error, Some(saved::needed(&loaded.profiles)));
            format!("cannot write to {}: {}", directory.display(), why.why)
        }
    };
    recording_directory::remove_if_empty(directory);
    Say { on_stderr: true }.line(format_args!(
        "Nothing is kept: {why}. What is shown is all that there is; --output names a directory with space."
    ));
    false
}

/// Where the profiles are kept.
fn kept(directory: &Path) {
    Say { on_stderr: true }.line(format_args!(
        "Kept in {}: spinpark report {}",
        directory.display(),
        quoted(&directory.to_string_lossy())
    ));
}

/// Says why nothing was recorded, and returns the exit status.
fn nothing(error: &ReadError, request: &Request<'_>, ended: &Ended, directory: &Path) -> Exit {
    let say = Say { on_stderr: true };
    let full = full_disk(error, directory);
    // The program has done its work; this command has not.
    let is_lost = full.is_some() && ended.status.success();
    let why = full.or_else(|| ended.seen.as_ref().and_then(silence::nothing));
    let why = why.unwrap_or_else(|| why_nothing(error, &request.launch));
    say.wrapped(&format!("Nothing was recorded: {why}"), 0);
    recording_directory::remove_if_empty(directory);
    if let Some(limit) = rustix::process::getrlimit(rustix::process::Resource::Fsize).current {
        say.line(format_args!(
            "Files may not be longer than {} KiB here (`ulimit -f`): perhaps too short for a recording. `ulimit -f unlimited` \
             before the command allows any length.",
            limit >> 10
        ));
    }
    if is_lost { Exit::Code(exit::FAILED.into()) } else { ended.status.into() }
}

/// Reports that there is no recording because the disk of `directory` is full, if that is so.
fn full_disk(error: &ReadError, directory: &Path) -> Option<String> {
    /// Less than a recording needs to begin.
    const LITTLE: u64 = 1 << 20;
    /// KiB of the smallest recording.
    const LEAST: u64 = 56;
    let disk = rustix::fs::statvfs(directory).ok()?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let is_it = match error {
        ReadError::Empty(_) => true,
        ReadError::Unrecorded(_, why) => why.contains("the disk is full"),
        _ => false,
    };
    (is_it && free < LITTLE).then(|| {
        format!(
            "the disk of {} is full: {} KiB are free, and a recording needs {LEAST} KiB at least. Make room there, or use --output to \
             name a directory with free space.",
            directory.display(),
            free >> 10
        )
    })
}

/// Why there is no recording after a program has run.
fn why_nothing(error: &ReadError, launch: &Launch) -> String {
    match error {
        ReadError::Empty(_) if launch.has_thread_sanitizer() => String::from(
            "the program is built with ThreadSanitizer, which would report the recorder's own memory accesses, so the recorder \
             stays off. Profile a build without it, or set SPINPARK_FORCE=1 and ignore what ThreadSanitizer reports.",
        ),
        ReadError::Empty(_) => String::from(
            "the program ended before the recorder was loaded. Does it start at all, and is it linked to glibc dynamically?",
        ),
        error => error.to_string(),
    }
}

/// A message about processes that the program leaves behind.
fn still_running(profiles: &[model::Profile], directory: &Path) -> Option<String> {
    let running = profiles.iter().filter(|profile| profile.ended == RecordingEnd::Running);
    let pids: Vec<String> = running.map(|profile| profile.pid.to_string()).collect();
    let (process, verb) = match pids.len() {
        0 => return None,
        1 => ("Process", "still runs and is"),
        _ => ("Processes", "still run and are"),
    };
    Some(format!(
        "{process} {} {verb} recorded: `spinpark report {}` shows later what became of it.",
        pids.join(", "),
        quoted(&directory.to_string_lossy())
    ))
}

/// The entries of the user's table of waits that matched nothing.
pub(super) fn unmet(symbols: &Symbols) -> Option<String> {
    let unmet = symbols.unmet_waits();
    (!unmet.is_empty()).then(|| {
        format!(
            "No waiting thread had a function of these entries of the table of waits on its stack: {}. A pattern fits the whole name \
             of a function, without its parameters.",
            unmet.join(", ")
        )
    })
}
