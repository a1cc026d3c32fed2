//! What `spinpark profile` and `report` are asked for, checked before anything runs.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;
use spinpark_profile::waits::Waits;

use super::launch::{Launch, becomes_program};
use super::likely_mistakes;
use super::show::Shower;
use crate::cli::{Profile, Report, Showing, ViewChoice};
use crate::say::Say;

/// A program to record, and how.
pub(super) struct Request<'a> {
    pub(super) options: &'a Profile,
    pub(super) launch: Launch,
    /// Whether this process becomes the program, and another one observes it.
    pub(super) becomes_program: bool,
    /// Whether this command writes to standard output when the program has ended; otherwise the program alone has it.
    pub(super) keeps_stdout: bool,
    /// The table of what stacks wait for.
    pub(super) waits: Waits,
    pub(super) shower: Shower<'a>,
}

impl<'a> Request<'a> {
    /// Finds the program and the libraries, and opens what is to be written.
    ///
    /// # Errors
    ///
    /// If the program cannot be recorded as it is asked for.
    pub(super) fn new(options: &'a Profile) -> anyhow::Result<Self> {
        let mut launch = Launch::new(&options.program, options.locks, options.detail, options.max_size)
            .map_err(|error| likely_mistakes::process(&options.program, error))?;
        launch.slower_than = options.slower_than;
        let becomes_program = becomes_program(options.keep_pid)?;
        let waits = waits(&options.show)?;
        let say = Say { on_stderr: true };
        likely_mistakes::note::<Profile>("profile", &options.program)
            .into_iter()
            .for_each(|note| say.line(note));
        let shower = Shower::new(&options.show, true)?;
        let keeps_stdout = shower.is_taken();
        Ok(Self { options, launch, becomes_program, keeps_stdout, waits, shower })
    }
}

/// The table of what stacks wait for, with the user's if there is one.
pub(super) fn waits(showing: &Showing) -> anyhow::Result<Waits> {
    let read = |path: &PathBuf| Waits::with_file(path).map_err(anyhow::Error::msg);
    Ok(showing.waits.as_ref().map(read).transpose()?.unwrap_or_default())
}

/// The part of the run that is wanted, ns after the start.
pub(super) fn part(report: &Report) -> anyhow::Result<Option<(u64, u64)>> {
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
        ("--whatif", !report.whatif.is_empty()),
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
