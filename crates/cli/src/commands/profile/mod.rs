//! `spinpark profile`, `record`, `report`, `diff`, `top`: record a program, show what was recorded.
//!
//! | module                | what it has                                                              |
//! |-----------------------|--------------------------------------------------------------------------|
//! | `request`             | what is asked for, checked before anything runs                          |
//! | `likely_mistakes`     | options behind the program, a process id in place of one                 |
//! | `launch`              | a program with the recorder in front of its locks, while it runs         |
//! | `python`              | names of Python's functions, which it is asked to write                  |
//! | `overhead`            | `--overhead`: the cost of recording, measured on the program             |
//! | `untimed_use`         | the part of it that the recorder does not time, measured on this machine |
//! | `recording_directory` | where the recording is                                                   |
//! | `record`              | from the program's start to its end                                      |
//! | `dormant`             | `--dormant`: the program records when it is asked to; `record` asks it     |
//! | `attach`              | `--pid`: a process that runs, sampled                                      |
//! | `load`                | profiles of what was recorded, or why there are none                     |
//! | `merge`               | many recordings, added up                                                |
//! | `show`                | outputs: tables, a page, files for other tools                           |
//! | `top`                 | the same while the program runs, interval by interval                    |

mod attach;
mod dormant;
mod launch;
mod likely_mistakes;
mod load;
mod merge;
mod overhead;
mod python;
mod record;
mod recording_directory;
mod request;
mod show;
pub(crate) mod top;
mod untimed_use;

use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus};

use anyhow::bail;
use spinpark_measure::report::json::Output;
use spinpark_profile::load::{Loaded, load};
use spinpark_profile::model::{Detail, Profile as Recording};
use spinpark_profile::symbols::Symbols;
use spinpark_profile::waits::Waits;
use spinpark_profile::{diff as comparison, measured, text};

use self::request::Request;
use self::show::Shower;
use crate::cli::{Diff, Profile, Report};
use crate::exit::Exit;
use crate::files::open;
use crate::say::Say;

pub(crate) use self::dormant::record as record_dormant;
pub(crate) use self::show::most;
pub(crate) use self::untimed_use::calibrate;

/// Runs the program, and reports.
pub(crate) fn run(profile: &Profile) -> anyhow::Result<Exit> {
    if let Some(pid) = profile.pid {
        return attach::run(profile, pid).map(Exit::from);
    }
    if profile.dormant {
        return dormant::launch(profile).map(Exit::from);
    }
    match record_with(Request::new(profile)?, Shower::show)? {
        Ok((_, status)) => Ok(status.into()),
        Err(nothing) => Ok(nothing),
    }
}

/// Records the program and keeps its profiles, which `show` shows; and how the program ended. If there are none, the
/// reason is said, and the error is the exit.
fn record_with<'a>(
    request: Request<'a>,
    show: impl FnOnce(Shower<'a>, &Loaded) -> anyhow::Result<()>,
) -> anyhow::Result<Result<(Loaded, ExitStatus), Exit>> {
    let directory = recording_directory::create(request.options.output.as_deref())?;
    let mut ended = record::record(&request, &directory)?;
    let status = ended.status;
    let loaded = match load::profiles(&request, &mut ended, &directory) {
        Ok(loaded) => loaded,
        Err(nothing) => return Ok(Err(nothing)),
    };
    let saved = loaded.save(&directory, request.options.max_size);
    let shown = show(request.shower, &loaded.profiles);
    load::notes(&loaded, saved, &directory);
    shown.map(|()| Ok((loaded.profiles, status)))
}

/// The processes of a program that is recorded now, as [`run`] does it without showing them, and how it ended. None if
/// nothing was recorded: the reason is said.
pub(crate) fn processes_now(profile: &Profile) -> anyhow::Result<Option<(Vec<Recording>, ExitStatus)>> {
    // The caller has a verdict to print, and an exit status of its own.
    let request = Request { becomes_program: false, keeps_stdout: true, ..Request::new(profile)? };
    let recorded = record_with(request, |_, _| Ok(()))?;
    Ok(recorded.ok().map(|(loaded, status)| (loaded.profiles, status)))
}

/// The processes of recordings that were made before, and of those below directories, as `report` finds them; and a
/// sentence on each that cannot be read, if others can be.
pub(crate) fn processes_of(recordings: &[PathBuf]) -> anyhow::Result<(Vec<Recording>, Vec<String>)> {
    let (mut profiles, mut unread) = (Vec::new(), Vec::new());
    let mut first = None;
    for source in merge::recordings(recordings)? {
        match load::again(&source, Waits::default()) {
            Ok(loaded) => {
                profiles.extend(loaded.profiles.profiles);
                unread.extend(loaded.profiles.broken.iter().map(merge::first_line));
            }
            Err(error) => {
                unread.push(merge::first_line(&error));
                first.get_or_insert(error);
            }
        }
    }
    match first.filter(|_| profiles.is_empty()) {
        Some(error) => Err(error.into()),
        None => Ok((profiles, unread)),
    }
}

/// Shows a recording again.
pub(crate) fn report(report: &Report) -> anyhow::Result<ExitCode> {
    if let Some(sources) = merge::sources(report)? {
        return merge::report(report, sources);
    }
    let shower = Shower::new(&report.show, false)?.of_part(request::part(report)?);
    let mut loaded = load::again(report.first(), request::waits(&report.show)?)?;
    add_measured(&mut loaded.profiles.profiles, &report.whatif)?;
    shower.show(&loaded.profiles)?;
    loaded.unmet.into_iter().for_each(|text| Say { on_stderr: true }.wrapped(&text, 0));
    Ok(ExitCode::SUCCESS)
}

/// Adds what `spinpark whatif` has measured.
fn add_measured(profiles: &mut [Recording], files: &[PathBuf]) -> anyhow::Result<()> {
    files.iter().try_for_each(|file| measured::add(profiles, file).map_err(anyhow::Error::from))
}

/// Compares two recordings.
pub(crate) fn diff(diff: &Diff) -> anyhow::Result<ExitCode> {
    let output = open(&diff.json)?;
    let is_taken = diff.json.as_deref().is_some_and(Output::is_stdout);
    let mut symbols = Symbols::new().with_debuginfod();
    let before = load(&diff.before, &mut symbols)?;
    let after = load(&diff.after, &mut symbols)?;
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
