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

use std::process::ExitCode;

use anyhow::bail;
use spinpark_measure::report::json::Output;
use spinpark_profile::model::Detail;
use spinpark_profile::symbols::Symbols;
use spinpark_profile::{diff as comparison, load::load, text};

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
    let request = Request::new(profile)?;
    let directory = recording_directory::create(profile.output.as_deref())?;
    let mut ended = record::record(&request, &directory)?;
    let status = ended.status;
    let loaded = match load::profiles(&request, &mut ended, &directory) {
        Ok(loaded) => loaded,
        Err(nothing) => return Ok(nothing),
    };
    let saved = loaded.save(&directory, profile.max_size);
    let shown = request.shower.show(&loaded.profiles);
    load::notes(&loaded, saved, &directory);
    shown.map(|()| status.into())
}

/// Shows a recording again.
pub(crate) fn report(report: &Report) -> anyhow::Result<ExitCode> {
    if let Some(sources) = merge::sources(report)? {
        return merge::report(report, sources);
    }
    let shower = Shower::new(&report.show, false)?.of_part(request::part(report)?);
    let loaded = load::again(report.first(), request::waits(&report.show)?)?;
    shower.show(&loaded.profiles)?;
    loaded.unmet.into_iter().for_each(|text| Say { on_stderr: true }.wrapped(&text, 0));
    Ok(ExitCode::SUCCESS)
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
