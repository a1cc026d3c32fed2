//! `spinpark why`: what a process that runs waits for, now; or what one waited for, by its core dump.

use std::process::ExitCode;

use anyhow::bail;
use spinpark_profile::attach::{self, Snapshot, Target};
use spinpark_profile::text::Style;

use crate::cli::{Report, Subject, Why};
use crate::files::open;
use crate::say::Say;

/// Shows it.
pub(crate) fn run(why: &Why) -> anyhow::Result<ExitCode> {
    let json = open(&why.out.json)?;
    let mut target = match (&why.subject, why.executable.as_deref()) {
        (Subject::Process(pid), None) => Target::open(*pid, "spinpark why")?,
        (Subject::Process(pid), Some(other)) => {
            bail!("process {pid} runs: what its program is, is known\nLeave `{}` out", other.display())
        }
        (Subject::Core(path), _) if why.stop => {
            bail!("{} is a core dump: nothing runs that could be stopped\nLeave --stop out", path.display())
        }
        (Subject::Core(path), executable) => Target::open_core(path, executable)?,
    };
    let snapshot = if why.stop { Snapshot::take_stopped(&mut target)? } else { Snapshot::take(&mut target)? };
    show(&snapshot, Say::apart_from(&[&why.out.json]), why.rows);
    if let Some(json) = json {
        json.write(&attach::json(&snapshot))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn show(snapshot: &Snapshot, say: Say, rows: usize) {
    let style =
        Style { rows, ..if say.on_stderr { Style::of(&std::io::stderr()) } else { Style::of_stdout() } };
    say.line(attach::page(snapshot, style));
}

/// The same, if `report` names a core dump.
pub(crate) fn of_report(report: &Report) -> anyhow::Result<Option<ExitCode>> {
    /// As `why` shows.
    const ROWS: usize = 20;
    let path = report.first();
    if !attach::is_core(path) {
        return Ok(None);
    }
    let executable = match &report.recordings[1..] {
        [] => None,
        [executable] => Some(executable.as_path()),
        [_, other, ..] => {
            bail!("{} is a core dump, which is shown alone\nLeave `{}` out", path.display(), other.display())
        }
    };
    if let Some(option) = report.only_for_recordings() {
        bail!(
            "{option} is for recordings of `spinpark profile`, and this is a core dump\nTry: spinpark why {}",
            path.display()
        );
    }
    let snapshot = Snapshot::take(&mut Target::open_core(path, executable)?)?;
    show(&snapshot, Say { on_stderr: false }, report.show.rows.unwrap_or(ROWS));
    Ok(Some(ExitCode::SUCCESS))
}
