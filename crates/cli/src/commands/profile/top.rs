//! `spinpark top`: where a running program waits, interval by interval.

use std::fs;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};
use std::{io, thread};

use anyhow::{Context, bail};
use rustix::event::{self, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::termios::{self, LocalModes, OptionalActions, Termios};
use spinpark_measure::text::one_line;
use spinpark_profile::attach::{Sampler, Target};
use spinpark_profile::live_process;
use spinpark_profile::load;
use spinpark_profile::model::{Profile, RecordingEnd};
use spinpark_profile::read::{EXTENSION, note_end};
use spinpark_profile::summary::summary;
use spinpark_profile::symbols::Symbols;
use spinpark_profile::text::{self, Style};

use super::attach::INTERVAL;
use super::launch::{Launch, Running};
use super::show::most;
use super::{likely_mistakes, recording_directory};
use crate::cli::Top;
use crate::exit::Exit;
use crate::say::Say;

/// Clears the terminal, and goes to its first line.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Bytes that a recording may have while it is watched.
const MAX_SIZE: u64 = 256 << 20;

/// Watches.
pub(crate) fn run(top: &Top) -> anyhow::Result<Exit> {
    options_come_first(top)?;
    match process_id(top) {
        Some(pid) => match recording_of(pid)? {
            Some(recording) => watch(top, &recording, None),
            None => sample(top, pid),
        },
        None => {
            let launch = Launch::new(&top.program, top.locks, top.detail, MAX_SIZE)?;
            likely_mistakes::note::<Top>("top", &top.program)
                .into_iter()
                .for_each(|note| Say { on_stderr: true }.line(note));
            let scratch = tempfile::tempdir().context("cannot make a temporary directory")?;
            let directory = recording_directory::create(Some(scratch.path()))?;
            let started = SystemTime::now();
            let mut running = launch.start(&directory)?;
            let shown = watch(top, &directory, Some(&mut running));
            super::python::remove_maps(started);
            shown
        }
    }
}

/// Arguments after a program are its own, but a process has none.
fn options_come_first(top: &Top) -> anyhow::Result<()> {
    let words: Vec<&str> = top.program.iter().filter_map(|word| word.to_str()).collect();
    if let [pid, options @ ..] = &words[..]
        && pid.parse::<u32>().is_ok()
        && options.first().is_some_and(|option| option.starts_with('-'))
    {
        bail!("options come before the process id\nTry: spinpark top {} {pid}", options.join(" "));
    }
    Ok(())
}

/// The process that is meant, if it is not a program.
fn process_id(top: &Top) -> Option<u32> {
    match top.program.as_slice() {
        [only] => only.to_str()?.parse().ok(),
        _ => None,
    }
}

/// The recording that a process writes: it has the file mapped. None if it writes none.
fn recording_of(pid: u32) -> anyhow::Result<Option<PathBuf>> {
    let maps = match fs::read_to_string(live_process::directory(pid).join("maps")) {
        Ok(maps) => maps,
        Err(error) if error.kind() == io::ErrorKind::NotFound => bail!(
            "there is no process {pid}\n`spinpark top -- PROGRAM` starts a program and watches it\n\
             `spinpark report DIR` shows the recording of a process that has ended"
        ),
        // What forbids it is found when it is opened.
        Err(_) => return Ok(None),
    };
    // `spinpark profile` is not recorded itself.
    let file = mapped_recording(&maps).or_else(|| recording_below(pid));
    if file.is_none() && maps.contains("libspinpark_profiler") {
        bail!(
            "process {pid} has not waited for a lock yet, so nothing is recorded\nTry again later; `spinpark top -- PROGRAM` records \
             a program from its start"
        );
    }
    Ok(file)
}

/// The recording among what a process has mapped.
fn mapped_recording(maps: &str) -> Option<PathBuf> {
    let suffix = format!(".{EXTENSION}");
    maps.lines().filter(|line| line.contains("rw-s")).find_map(|line| {
        let path = line.split_once('/')?.1;
        path.ends_with(&suffix).then(|| PathBuf::from(format!("/{path}")))
    })
}

/// The recording of a child of `pid`, if that is this command at work. Another process may have children that
/// have nothing to do with each other.
fn recording_below(pid: u32) -> Option<PathBuf> {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    if name.trim() != "spinpark" {
        return None;
    }
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let children: String =
        tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("children")).ok()).collect();
    children
        .split_whitespace()
        .find_map(|child| mapped_recording(&fs::read_to_string(format!("/proc/{child}/maps")).ok()?))
}

/// A process that is not recorded: snapshots of its threads, interval by interval.
fn sample(top: &Top, pid: u32) -> anyhow::Result<Exit> {
    /// Between two questions for a key.
    const STEP: Duration = Duration::from_millis(100);
    let say = Say { on_stderr: false };
    let target = Target::open(pid, "spinpark top")?;
    let is_live = io::stdout().is_terminal() && !top.once;
    let keys = if is_live { Keys::take() } else { None };
    let mut shown = Shown { rows: top.rows, has_totals: false, has_keys: keys.is_some() };
    let updates = if top.once { Some(1) } else { top.updates };
    let mut sampler = Sampler::new(target, Symbols::new(), INTERVAL)?;
    let mut number = 0;
    loop {
        if !shown.has_totals {
            sampler.restart();
        }
        let mut left = top.interval;
        let mut is_running = true;
        while is_running && !left.is_zero() {
            let step = left.min(STEP);
            left -= step;
            is_running = sampler.sample(step, || true);
            if let Some(keys) = &keys
                && !keys.wait(Duration::ZERO, &mut shown)?
            {
                return Ok(ExitCode::SUCCESS.into());
            }
        }
        let style = Style { rows: shown.rows, ..Style::of_stdout() };
        if is_live {
            let _ = write!(io::stdout(), "{CLEAR}");
        } else if number > 0 {
            say.line("");
        }
        say.line(sampled_page(&sampler.profile(), style, &shown));
        number += 1;
        sampler.end().into_iter().for_each(|end| say.line(end));
        if !is_running || updates.is_some_and(|updates| number >= updates) {
            return Ok(ExitCode::SUCCESS.into());
        }
    }
}

/// What is shown of one that is sampled: the summary of the interval, the locks, and who waits for whom.
fn sampled_page(now: &Profile, style: Style, shown: &Shown) -> String {
    let program = Path::new(&now.program).file_name().unwrap_or_default().to_string_lossy();
    let summary = summary(now);
    let mut lines = vec![format!(
        "{} (process {}), the last {:.1} s of {} threads",
        one_line(&program),
        now.pid,
        now.duration as f64 / 1e9,
        now.number_of_threads()
    )];
    lines.push(text::wrap(&summary.headline, style.width, 0));
    lines.push(text::wrap(&summary.details.join(" "), style.width, 0));
    lines.push(String::new());
    let tables = [text::waiting(now, style), text::locks(now, style), text::blocking(now, style)];
    lines.extend(tables.into_iter().filter(|table| !table.is_empty()));
    if shown.has_keys {
        let other = if shown.has_totals { "intervals" } else { "sum up" };
        lines.push(format!("q quit   t {other}   + − rows"));
    }
    lines.join("\n")
}

/// `recordings` is a file, or a directory in which the program and its children keep theirs.
fn watch(top: &Top, recordings: &Path, mut running: Option<&mut Running>) -> anyhow::Result<Exit> {
    let say = Say { on_stderr: false };
    let is_live = io::stdout().is_terminal() && !top.once;
    // A program that was started has the terminal's input for itself.
    let keys = if is_live && running.is_none() { Keys::take() } else { None };
    let mut shown = Shown { rows: top.rows, has_totals: false, has_keys: keys.is_some() };
    let updates = if top.once { Some(1) } else { top.updates };
    let mut symbols = Symbols::new();
    let mut before: Option<Profile> = None;
    let mut number = 0;
    loop {
        let status = match running.as_deref_mut() {
            Some(running) => running.wait(top.interval).context("cannot wait for the program")?,
            None => {
                match (&keys, !top.once || number > 0) {
                    (_, false) => {}
                    (None, true) => thread::sleep(top.interval),
                    (Some(keys), true) => {
                        // The first page at once.
                        let interval = if number == 0 { Duration::ZERO } else { top.interval };
                        if !keys.wait(interval, &mut shown)? {
                            return Ok(ExitCode::SUCCESS.into());
                        }
                    }
                }
                None
            }
        };
        if let (Some(running), Some(_)) = (running.as_deref(), status) {
            let _ = note_end(recordings, running.id());
        }
        let now = match current(recordings, &mut symbols) {
            Ok(now) => now,
            // A program that was just started has not come to its first lock.
            Err(_) if running.is_some() && status.is_none() => continue,
            Err(error) => return Err(error),
        };
        let style = Style { rows: shown.rows, ..Style::of_stdout() };
        if is_live {
            let _ = write!(io::stdout(), "{CLEAR}");
        } else if number > 0 {
            say.line("");
        }
        let same = before.as_ref().filter(|before| before.pid == now.pid);
        say.line(page(&now, same, style, &shown));
        number += 1;
        if let Some(status) = status {
            return Ok(status.into());
        }
        if running.is_none() && now.ended != RecordingEnd::Running {
            say.line("The program has ended.");
            return Ok(ExitCode::SUCCESS.into());
        }
        if updates.is_some_and(|updates| number >= updates) {
            if let Some(running) = running.as_deref_mut() {
                running.end();
                return Ok(running.wait_for_end(Some(Duration::from_secs(1)))?.into());
            }
            return Ok(ExitCode::SUCCESS.into());
        }
        before = Some(now);
    }
}

/// The profile at this moment: of the process that has waited most.
fn current(recordings: &Path, symbols: &mut Symbols) -> anyhow::Result<Profile> {
    let loaded = load::load(recordings, symbols)?;
    most(&loaded.profiles).cloned().context("the recording is empty")
}

/// What is shown: the summary, the last interval, the locks.
fn page(now: &Profile, before: Option<&Profile>, style: Style, shown: &Shown) -> String {
    let program = Path::new(&now.program).file_name().unwrap_or_default().to_string_lossy();
    let mut lines = vec![format!(
        "{} (process {}), {:.1} s, {} threads used locks",
        one_line(&program),
        now.pid,
        now.duration as f64 / 1e9,
        now.threads.len()
    )];
    lines.push(text::wrap(&summary(now).headline, style.width, 0));
    if let Some(before) = before {
        let seconds = now.duration.saturating_sub(before.duration) as f64 / 1e9;
        let waits = |profile: &Profile| {
            let roles =
                profile.locks.iter().flat_map(|lock| &lock.roles).filter(|stats| stats.role.is_lock());
            roles.map(|stats| stats.contended).sum::<u64>()
        };
        let waited = now.lock_wait().saturating_sub(before.lock_wait()) as f64 / 1e9;
        if seconds > 0.0 {
            lines.push(format!(
                "In the last {seconds:.1} s: {:.0} waits for locks a second, {:.2} threads waiting on average.",
                waits(now).saturating_sub(waits(before)) as f64 / seconds,
                waited / seconds
            ));
        }
    }
    lines.push(String::new());
    let waiting = text::waiting(now, style);
    if !waiting.is_empty() {
        lines.push(waiting);
    }
    let rates = before.map_or(String::new(), |before| text::rates(before, now, style));
    match rates.is_empty() {
        false if !shown.has_totals => lines.push(rates),
        _ => lines.push(text::locks(now, style)),
    }
    if shown.has_keys {
        let other = if shown.has_totals { "rates" } else { "totals" };
        lines.push(format!("q quit   t {other}   + − rows   space now"));
    }
    lines.join("\n")
}

/// What is shown, as the keys say.
struct Shown {
    rows: usize,
    /// The whole run instead of the last interval.
    has_totals: bool,
    has_keys: bool,
}

/// The terminal's input, key by key, until this is dropped.
struct Keys {
    before: Termios,
}

impl Keys {
    /// None if there is no terminal, or another program has it.
    fn take() -> Option<Self> {
        let input = io::stdin();
        if termios::tcgetpgrp(&input).ok()? != rustix::process::getpgrp() {
            return None;
        }
        let before = termios::tcgetattr(&input).ok()?;
        let mut by_key = before.clone();
        // Ctrl-C is a key too: the terminal is given back first.
        by_key.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
        termios::tcsetattr(&input, OptionalActions::Now, &by_key).ok()?;
        Some(Self { before })
    }

    /// Waits until the interval is over, or a key asks for something else to be shown; whether to go on.
    fn wait(&self, interval: Duration, shown: &mut Shown) -> anyhow::Result<bool> {
        const CONTROL_C: u8 = 3;
        let input = io::stdin();
        let until =
            Timespec { tv_sec: interval.as_secs().try_into()?, tv_nsec: interval.subsec_nanos().into() };
        let is_key = loop {
            match event::poll(&mut [PollFd::new(&input, PollFlags::IN)], Some(&until)) {
                Ok(ready) => break ready > 0,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error).context("cannot read keys"),
            }
        };
        let mut key = [0; 1];
        if !is_key {
            return Ok(true);
        }
        let count = rustix::io::read(&input, &mut key).context("cannot read keys")?;
        match key[0] {
            // The terminal is gone.
            _ if count == 0 => return Ok(false),
            b'q' | CONTROL_C => return Ok(false),
            b't' => shown.has_totals = !shown.has_totals,
            b'+' => shown.rows += 1,
            b'-' => shown.rows = (shown.rows - 1).max(1),
            _ => {}
        }
        Ok(true)
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        let _ = termios::tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}
