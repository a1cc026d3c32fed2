//! `spinpark profile`, `report`, `diff`: record a program, show what was recorded.

mod launch;
mod likely_mistakes;
mod overhead;
mod python;
mod recording_directory;
mod show;
pub(crate) mod top;
mod untimed_use;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail};
use spinpark_measure::process::apart::release_inherited;
use spinpark_measure::process::ended::in_words;
use spinpark_measure::report::json::Output;
use spinpark_profile::keeper::Keeper;
use spinpark_profile::load::{self, CostSource, ProgramEnd, Recorded, Surroundings};
use spinpark_profile::model::{self, Detail, LocksOf, RecordingEnd};
use spinpark_profile::read::{ReadError, compact, note_end};
use spinpark_profile::symbols::Symbols;
use spinpark_profile::waits::Waits;
use spinpark_profile::{diff as comparison, saved, silence, text, watch};

use self::launch::{Launch, becomes_program};
use self::show::Shower;
use crate::cli::{Diff, Profile, Report, Showing, ViewChoice};
use crate::exit::{self, Exit};
use crate::files::open;
use crate::own::quoted;
use crate::say::Say;

pub(crate) use self::untimed_use::calibrate;

/// Runs the program, and reports.
pub(crate) fn run(profile: &Profile) -> anyhow::Result<Exit> {
    let mut launch = Launch::new(&profile.program, profile.locks, profile.detail, profile.max_size)
        .map_err(|error| likely_mistakes::process(&profile.program, error))?;
    launch.slower_than = profile.slower_than;
    let becomes_program = becomes_program(profile.keep_pid)?;
    let waits = waits(&profile.show)?;
    let say = Say { on_stderr: true };
    likely_mistakes::note::<Profile>("profile", &profile.program).into_iter().for_each(|note| say.line(note));
    let shower = Shower::new(&profile.show, true)?;
    let directory = recording_directory::create(profile.output.as_deref())?;
    let started = SystemTime::now();
    let begun = (|| {
        let measured = profile.overhead.then(|| overhead::measure(&launch, profile)).transpose()?;
        let (running, watch) = if becomes_program {
            let running = launch.start_as_this_process(&directory)?;
            (running, watch::prepare(launch.recorder()))
        } else {
            let watch = watch::prepare(launch.recorder());
            (launch.start(&directory)?, watch)
        };
        let watch = watch.start(running.id());
        Ok((measured, running, watch))
    })();
    let (measured, mut running, watch) =
        begun.inspect_err(|_: &anyhow::Error| recording_directory::remove_if_empty(&directory))?;
    release_inherited(shower.is_taken());
    if !Path::new("/proc/self/maps").exists() {
        say.wrapped(
            "Warning: /proc is not mounted here. The recorder cannot see which files the program has loaded, so functions have no \
             names. Mount it first: `mount -t proc proc /proc`.",
            0,
        );
    }
    // Files that the program removes or replaces keep their names this way.
    let keeper = Keeper::start(&directory);
    let status = running.wait_for_end(profile.duration).context("cannot wait for the program")?;
    let mut seen = watch.finish();
    // Without it, the recording ends with the last sign of life.
    let _ = note_end(&directory, running.id());
    compact(&directory);
    if !status.success() && !running.was_asked() {
        let ended = running.why(status).unwrap_or_else(|| in_words(status));
        say.line(format_args!("{} {ended}; this is what was recorded.", launch.name()));
    }
    let mut symbols = Symbols::new().with_debuginfod().with_kept(keeper.stop()).with_waits(waits);
    let recorded = Recorded::read(&directory, &mut symbols);
    python::remove_maps(started);
    let recorded = match recorded {
        Ok(recorded) => recorded,
        Err(error) => {
            let full = full_disk(&error, &directory);
            // The program has done its work; this command has not.
            let is_lost = full.is_some() && status.success();
            let why = full.or_else(|| seen.as_ref().and_then(silence::nothing));
            let why = why.unwrap_or_else(|| why_nothing(&error, &launch));
            say.wrapped(&format!("Nothing was recorded: {why}"), 0);
            recording_directory::remove_if_empty(&directory);
            if let Some(limit) = rustix::process::getrlimit(rustix::process::Resource::Fsize).current {
                say.line(format_args!(
                    "Files may not be longer than {} KiB here (`ulimit -f`): perhaps too short for a recording. `ulimit -f unlimited` \
                     before the command allows any length.",
                    limit >> 10
                ));
            }
            return Ok(if is_lost { Exit::Code(exit::FAILED.into()) } else { status.into() });
        }
    };
    if let Some(seen) = &mut seen {
        seen.name_glibcs(&mut symbols);
    }
    // Measured once, however many processes there are.
    let cost = match measured {
        Some(measured) => CostSource::Measured(measured),
        None => CostSource::Estimated(untimed_use::measure(&launch).unwrap_or_default()),
    };
    let has_exited = running.knows_status() && status.code().is_some();
    let end = ProgramEnd { pid: running.id(), why: running.why(status), has_exited };
    let loaded =
        recorded.complete(&Surroundings { observation: seen.as_ref(), end: Some(end), cost: Some(cost) });
    if let Some(seen) = &mut seen {
        // A report without it says that threads were not observed.
        let left = saved::bytes_left(&directory, profile.max_size).unwrap_or(0);
        if let Err(error) = seen.save(&directory, left) {
            say.line(format_args!(
                "Warning: cannot write {}: {error}",
                directory.join(watch::FILE).display()
            ));
        }
    }
    let saved = saved::save(&directory, &loaded.profiles, profile.max_size);
    let shown = shower.show(&loaded);
    if let Some(text) = unmet(&symbols) {
        say.wrapped(&text, 0);
    }
    if let Err(error) = saved {
        say.line(format_args!(
            "Warning: cannot write {}: {error}. The recording is there, but without symbols: they are looked up again by \
             `spinpark report`, as long as the programs do not change.",
            directory.join(saved::FILE).display()
        ));
    }
    if let Some(text) = still_running(&loaded.profiles, &directory) {
        say.line(text);
    }
    say.line(format_args!(
        "Kept in {}: spinpark report {}",
        directory.display(),
        quoted(&directory.to_string_lossy())
    ));
    shown.map(|()| status.into())
}

/// Reports that there is no recording because the disk of `directory` is full, if that is so.
fn full_disk(error: &ReadError, directory: &Path) -> Option<String> {
    /// Less than a recording needs to begin.
    const LITTLE: u64 = 1 << 20;
    let disk = rustix::fs::statvfs(directory).ok()?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    (matches!(error, ReadError::Empty(_)) && free < LITTLE).then(|| {
        format!(
            "the disk of {} is full ({} KiB free). Use --output to name a directory with free space.",
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

/// Shows a recording again.
pub(crate) fn report(report: &Report) -> anyhow::Result<ExitCode> {
    let shower = Shower::new(&report.show, false)?.of_part(part(report)?);
    compact(&report.directory);
    let mut symbols = Symbols::new().with_debuginfod().with_waits(waits(&report.show)?);
    let loaded = load::load(&report.directory, &mut symbols)?;
    shower.show(&loaded)?;
    if let Some(text) = unmet(&symbols) {
        Say { on_stderr: true }.wrapped(&text, 0);
    }
    Ok(ExitCode::SUCCESS)
}

/// The entries of the user's table of waits that matched nothing.
fn unmet(symbols: &Symbols) -> Option<String> {
    let unmet = symbols.unmet_waits();
    (!unmet.is_empty()).then(|| {
        format!(
            "No waiting thread had a function of these entries of the table of waits on its stack: {}. A pattern fits the whole name \
             of a function, without its parameters.",
            unmet.join(", ")
        )
    })
}

/// The part of the run that is wanted, ns after the start.
fn part(report: &Report) -> anyhow::Result<Option<(u64, u64)>> {
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    if report.from.is_none() && report.to.is_none() {
        return Ok(None);
    }
    let show = &report.show;
    let others = [
        ("--json", show.json.is_some()),
        ("--html", show.html.is_some()),
        ("--pprof", show.pprof.is_some()),
        ("--folded", show.folded.is_some()),
        ("--view", show.view != ViewChoice::Summary),
    ];
    if let Some((option, _)) = others.iter().find(|(_, is_there)| *is_there) {
        bail!(
            "{option} is of the whole run: what it has is not recorded by parts\nOf a part there are the table that --from and --to \
             print, and the longest waits: --slow, --perfetto, --speedscope"
        );
    }
    let (from, to) = (report.from.map_or(0, ns), report.to.map_or(u64::MAX, ns));
    if from >= to {
        bail!("--from must be before --to");
    }
    Ok(Some((from, to)))
}

/// The table of what stacks wait for, with the user's if there is one.
fn waits(showing: &Showing) -> anyhow::Result<Waits> {
    let told = |path: &PathBuf| Waits::with_file(path).map_err(anyhow::Error::msg);
    Ok(showing.waits.as_ref().map(told).transpose()?.unwrap_or_default())
}

/// Compares two recordings.
pub(crate) fn diff(diff: &Diff) -> anyhow::Result<ExitCode> {
    let output = open(&diff.json)?;
    let is_taken = diff.json.as_deref().is_some_and(Output::is_stdout);
    let mut symbols = Symbols::new().with_debuginfod();
    let before = load::load(&diff.before, &mut symbols)?;
    let after = load::load(&diff.after, &mut symbols)?;
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
        ViewChoice::Others => "No thread waited for anything but locks and condition variables.",
        ViewChoice::Slow => "No wait was longer than 0.1 ms.",
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
        ViewChoice::Summary => text::overview(profile, style, usize::MAX),
        ViewChoice::All => text::report(profile, style),
        ViewChoice::Locks => text::locks(profile, style),
        ViewChoice::Classes => text::locks(&spinpark_profile::classes::by_class(profile), style),
        ViewChoice::Split => text::split(profile, style),
        ViewChoice::Blocking => text::blocking(profile, style),
        ViewChoice::HeldWaits => text::held_waits(profile, style),
        ViewChoice::Sites => text::sites(profile, style),
        ViewChoice::Freebsd => text::freebsd(profile, style),
        ViewChoice::Condvars => text::condvars(profile, style),
        ViewChoice::Outcomes => text::outcomes(profile, style),
        ViewChoice::Others => text::other_waits(profile, style),
        ViewChoice::Slow => text::slow(profile, style),
    }
}
