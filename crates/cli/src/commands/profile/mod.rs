//! `spinpark profile`, `report`, `diff`: record a program, show what was recorded.

mod cost;
mod launch;
mod overhead;
mod recording_directory;
mod show;
mod slips;
pub(crate) mod top;

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitCode, ExitStatus};

use anyhow::{Context, bail};
use spinpark_measure::failure::in_words;
use spinpark_measure::report::json::Output;
use spinpark_profile::model::{self, Detail, Ended, LocksOf};
use spinpark_profile::read::{ReadError, note_end};
use spinpark_profile::{diff as comparison, json, symbols::Symbols, text};

use self::launch::Launch;
use self::show::Shower;
use crate::cli::{Diff, Profile, Report, ViewChoice};
use crate::say::Say;

pub(crate) use self::cost::calibrate;

/// Runs the program, and reports.
pub(crate) fn run(profile: &Profile) -> anyhow::Result<ExitCode> {
    let launch = Launch::new(&profile.program, profile.locks, profile.detail, profile.max_size)
        .map_err(|error| slips::process(&profile.program, error))?;
    let say = Say { on_stderr: true };
    slips::note::<Profile>("profile", &profile.program).into_iter().for_each(|note| say.line(note));
    let shower = Shower::new(&profile.show, true)?;
    let directory = recording_directory::create(profile.output.as_deref())?;
    let begun = (|| {
        let measured = profile.overhead.then(|| overhead::measure(&launch, profile)).transpose()?;
        Ok((measured, launch.start(&directory)?))
    })();
    let (measured, mut running) =
        begun.inspect_err(|_: &anyhow::Error| recording_directory::remove_if_empty(&directory))?;
    let status = running.wait_for_end(profile.duration).context("cannot wait for the program")?;
    // Without it, the recording ends with the last sign of life.
    let _ = note_end(&directory, running.id());
    if !status.success() && !running.was_asked() {
        let ended = running.why(status).unwrap_or_else(|| in_words(status));
        say.line(format_args!("{} {ended}; this is what was recorded.", launch.name()));
    }
    let loaded = json::load(&directory, &mut Symbols::new());
    let mut loaded = match loaded {
        Ok(loaded) => loaded,
        Err(error) => {
            recording_directory::remove_if_empty(&directory);
            say.line(format_args!("Nothing was recorded: {}", why_nothing(&error)));
            if let Some(limit) = rustix::process::getrlimit(rustix::process::Resource::Fsize).current {
                say.line(format_args!(
                    "Files may not be longer than {} KiB here (`ulimit -f`), and a recording is some hundred MB long, though \
                     most of it is holes: `ulimit -f unlimited` before helps.",
                    limit >> 10
                ));
            }
            return Ok(code_of(status));
        }
    };
    // Measured once, however many processes there are.
    let costs = if measured.is_none() { cost::measure(&launch) } else { None };
    let why = running.why(status);
    for recorded in &mut loaded.profiles {
        if recorded.pid == running.id() {
            recorded.ended_by.clone_from(&why);
            // Its status is known: no signal ended it.
            if status.code().is_some() && recorded.ended == Ended::Killed {
                recorded.ended_by.get_or_insert_with(|| String::from("ended by `_exit` or `exec`"));
            }
        }
        recorded.cost = measured.clone().or_else(|| cost::estimate(costs?, recorded));
    }
    let saved = json::save(&directory, &loaded.profiles, profile.max_size);
    let shown = shower.show(&loaded);
    if let Err(error) = saved {
        say.line(format_args!(
            "Warning: cannot write {}: {error}. The recording is there, but without symbols: they are looked up again by \
             `spinpark report`, as long as the programs do not change.",
            directory.join(json::FILE).display()
        ));
    }
    if let Some(text) = still_running(&loaded.profiles, &directory) {
        say.line(text);
    }
    say.line(format_args!("Kept in {0}: spinpark report {0}", directory.display()));
    shown.map(|()| code_of(status))
}

/// Why there is no recording after a program has run.
fn why_nothing(error: &ReadError) -> String {
    match error {
        ReadError::Empty(_) => String::from(
            "the program ended before the recorder was loaded. Does it start at all, and is it linked to glibc dynamically?",
        ),
        error => error.to_string(),
    }
}

/// What is said of processes that the program leaves behind.
fn still_running(profiles: &[model::Profile], directory: &Path) -> Option<String> {
    let running = profiles.iter().filter(|profile| profile.ended == Ended::Running);
    let pids: Vec<String> = running.map(|profile| profile.pid.to_string()).collect();
    let (process, verb) = match pids.len() {
        0 => return None,
        1 => ("Process", "still runs and is"),
        _ => ("Processes", "still run and are"),
    };
    Some(format!(
        "{process} {} {verb} recorded: `spinpark report {}` shows later what became of it.",
        pids.join(", "),
        directory.display()
    ))
}

/// The program's own exit status, as a shell has it.
fn code_of(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX))
}

/// Shows a recording again.
pub(crate) fn report(report: &Report) -> anyhow::Result<ExitCode> {
    let shower = Shower::new(&report.show, false)?;
    let loaded = json::load(&report.directory, &mut Symbols::new())?;
    shower.show(&loaded)?;
    Ok(ExitCode::SUCCESS)
}

/// Compares two recordings.
pub(crate) fn diff(diff: &Diff) -> anyhow::Result<ExitCode> {
    let output = diff.json.as_deref().map(Output::open).transpose()?;
    let is_taken = diff.json.as_deref().is_some_and(Output::is_stdout);
    let mut symbols = Symbols::new();
    let before = json::load(&diff.before, &mut symbols)?;
    let after = json::load(&diff.after, &mut symbols)?;
    let (Some(before), Some(after)) = (show::most(&before.profiles), show::most(&after.profiles)) else {
        bail!("there is no process in the recording");
    };
    for (path, profile) in [(&diff.before, before), (&diff.after, after)] {
        if profile.detail == Detail::Off {
            bail!(
                "{} was recorded with `--detail off`: nothing was recorded, so there is nothing to compare\nRecord it again with \
                 the detail of the other one",
                path.display()
            );
        }
    }
    let compared = comparison::diff(before, after);
    if let Some(output) = output {
        output.write(&compared)?;
    }
    if !is_taken {
        let style = text::Style { rows: diff.rows, ..text::Style::of_stdout() };
        Say { on_stderr: false }.line(comparison::text(&compared, before, after, style));
    }
    Ok(ExitCode::SUCCESS)
}

/// The tables of a view, or a line that says why there are none.
fn view(profile: &model::Profile, view: ViewChoice, style: text::Style) -> String {
    let shown = tables(profile, view, style);
    if !shown.is_empty() {
        return shown;
    }
    let has_waited = profile.lock_wait() > 0;
    let why = match view {
        _ if profile.detail == model::Detail::Off => "Nothing is known: recording was off.",
        ViewChoice::Condvars => "No thread waited for a condition variable.",
        ViewChoice::Outcomes if has_waited && profile.locks_of == LocksOf::Glibc => {
            "The outcomes of waits are not known: glibc's locks do not report them. Record with `--locks spinpark`, or with \
             `--detail full` to see whether threads slept."
        }
        ViewChoice::Outcomes if has_waited => "The outcomes of waits are not known.",
        ViewChoice::HeldWaits => "No thread blocked while holding a contended lock.",
        ViewChoice::Split if has_waited => {
            "Whether these locks were held or free while threads waited is not known."
        }
        ViewChoice::Blocking | ViewChoice::Outcomes | ViewChoice::Split => "No thread waited for a lock.",
        _ => "No lock was waited for or counted.",
    };
    text::wrap(why, style.width, 0)
}

fn tables(profile: &model::Profile, view: ViewChoice, style: text::Style) -> String {
    match view {
        ViewChoice::Summary => text::report(profile, style),
        ViewChoice::Locks => text::locks(profile, style),
        ViewChoice::Classes => text::locks(&spinpark_profile::classes::by_class(profile), style),
        ViewChoice::Split => text::split(profile, style),
        ViewChoice::Blocking => text::blocking(profile, style),
        ViewChoice::HeldWaits => text::held_waits(profile, style),
        ViewChoice::Sites => text::sites(profile, style),
        ViewChoice::Freebsd => text::freebsd(profile, style),
        ViewChoice::Condvars => text::condvars(profile, style),
        ViewChoice::Outcomes => text::outcomes(profile, style),
    }
}
