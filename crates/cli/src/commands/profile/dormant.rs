//! `spinpark profile --dormant`, and `spinpark record`: a program that records when it is asked to.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use std::{env, thread};

use anyhow::{Context, anyhow, bail};
use rustix::process::geteuid;
use spinpark_measure::process::executable::Library;
use spinpark_measure::report::unwritten::Unwritten;
use spinpark_profile::attach::{PythonSites, PythonWatch};
use spinpark_profile::dormant::{Answer, Dormant, remove_left_over};
use spinpark_profile::keeper::Keeper;
use spinpark_profile::load::{CostSource, Loaded, Recorded, Surroundings};
use spinpark_profile::model::{Profile as Recording, RecordingEnd};
use spinpark_profile::read::{Cause, EXTENSION};
use spinpark_profile::symbols::Symbols;
use spinpark_profile::{saved, watch};

use super::launch::Launch;
use super::request::waits;
use super::show::Shower;
use super::{likely_mistakes, load, recording_directory, untimed_use};
use crate::cli::{DetailChoice, LocksChoice, Profile, Record};
use crate::exit;
use crate::progress::Progress;
use crate::say::Say;
use crate::session::on_interrupt;

/// Between two beats.
const BEAT: Duration = Duration::from_millis(500);
/// Between two looks.
const STEP: Duration = Duration::from_millis(20);
/// A process gets so long at least to begin, though it is to record for less.
const LEAST: Duration = Duration::from_secs(1);
/// After this time without an answer, the user learns why there is none.
const SILENCE: Duration = Duration::from_secs(2);
/// Bytes that the profile may have on the disk.
const MAX_SIZE: u64 = 256 << 20;

/// Becomes the program; comes back with what prevents it.
pub(super) fn launch(profile: &Profile) -> anyhow::Result<ExitCode> {
    let launch = Launch::new(&profile.program, profile.locks, DetailChoice::Off, profile.max_size)
        .map_err(|error| likely_mistakes::process(&profile.program, error))?;
    let directory = common_directory()?;
    remove_left_over(&directory);
    Err(launch.become_dormant(&directory))
}

/// The directory of the user's dormant processes, each of which makes one in it.
fn common_directory() -> anyhow::Result<PathBuf> {
    let user = geteuid().as_raw();
    let is_own = |path: &Path| {
        fs::symlink_metadata(path)
            .is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == user && metadata.mode() & 0o022 == 0)
    };
    let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let directory = match runtime.filter(|path| path.is_absolute() && is_own(path)) {
        Some(runtime) => runtime.join("spinpark"),
        None => env::temp_dir().join(format!("spinpark-{user}")),
    };
    let made = DirBuilder::new().mode(0o700).create(&directory);
    if !is_own(&directory) {
        let path = directory.display();
        match made {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                bail!("cannot create the directory {path}: {error}\nSet TMPDIR to one in which you may write")
            }
            _ => bail!(
                "{path} is another user's, or others may write to it: they could read what is recorded\nRemove it, or set TMPDIR to \
                 another directory"
            ),
        }
    }
    directory.canonicalize().with_context(|| format!("cannot find {}", directory.display()))
}

/// Records a process that is dormant, and reports.
pub(crate) fn record(record: &Record) -> anyhow::Result<ExitCode> {
    let say = Say { on_stderr: true };
    let shower = Shower::new(&record.show, false)?;
    let waits = waits(&record.show)?;
    let mut dormant = Dormant::open(record.pid)?;
    if let Some(base) = dormant.directory().parent() {
        remove_left_over(base);
    }
    let directory = recording_directory::create(record.output.as_deref())?;
    let is_over = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&is_over);
    on_interrupt(move || flag.store(true, Relaxed))?;
    let recorded = while_it_records(record, &mut dormant, &is_over);
    let recorded = recorded.inspect_err(|_| recording_directory::remove_if_empty(&directory))?;
    let scratch = tempfile::tempdir().context("cannot make a temporary directory")?;
    dormant.copy(scratch.path()).map_err(|error| {
        let why = Unwritten::of(scratch.path(), &error, None).why;
        anyhow!(
            "cannot copy the recording to {}: {why}\nSet TMPDIR to a directory with free space",
            scratch.path().display()
        )
    })?;
    let mut symbols = Symbols::new().with_debuginfod().with_kept(recorded.kept).with_waits(waits);
    let mut seen = recorded.seen;
    let read = Recorded::read(scratch.path(), &mut symbols)?;
    if let Some(seen) = &mut seen {
        seen.name_glibcs(&mut symbols);
        // It was there before this command, and goes on without being recorded.
        seen.programs.kept.iter_mut().for_each(|program| program.is_left = false);
    }
    let cost =
        Launch::new(&[env::current_exe()?.into()], LocksChoice::Glibc, DetailChoice::Contended, MAX_SIZE);
    let cost = cost.ok().and_then(|launch| untimed_use::measure(&launch)).unwrap_or_default();
    let known =
        Surroundings { observation: seen.as_ref(), end: None, cost: Some(CostSource::Estimated(cost)) };
    let Loaded { profiles, broken } = read.complete(&known);
    // It may have ended since: that is no end of what was recorded.
    let still = |profile: Recording| match recorded.was_running && profile.ended == RecordingEnd::Killed {
        true => Recording { ended: RecordingEnd::Running, ..profile },
        false => profile,
    };
    let profiles = profiles.into_iter().map(still).collect();
    let mut profiles = load::on_this_host(Loaded { profiles, broken });
    recorded.python.name(&mut profiles.profiles);
    let loaded = load::Loaded { profiles, unmet: load::unmet(&symbols) };
    let saved = saved::save(&directory, &loaded.profiles.profiles, MAX_SIZE);
    recorded.notes.iter().for_each(|note| say.wrapped(note, 0));
    let shown = shower.show(&loaded.profiles);
    if let Some(text) = &loaded.unmet {
        say.wrapped(text, 0);
    }
    let is_kept = load::kept_alone(saved, &loaded.profiles, &directory);
    shown.map(|()| if is_kept { ExitCode::SUCCESS } else { exit::FAILED.into() })
}

/// What is known besides the recording.
struct Known {
    kept: spinpark_profile::symbols::Kept,
    seen: Option<watch::Observation>,
    python: PythonSites,
    /// Sentences.
    notes: Vec<String>,
    /// The process was there when the recording ended.
    was_running: bool,
}

/// From the request to the end of the recording.
fn while_it_records(record: &Record, dormant: &mut Dormant, is_over: &AtomicBool) -> anyhow::Result<Known> {
    let pid = record.pid;
    let writing = || format!("cannot write to the file of process {pid}");
    let progress = Progress::free();
    let before = children(pid);
    let mut born: BTreeSet<u32> = BTreeSet::new();
    dormant.begin(record.slower_than).with_context(writing)?;
    begun(dormant, record, is_over, &progress)?;
    dormant.open_recording()?;
    // By a name of its own: it may have lost the one that it had, or be in memory.
    let named = tempfile::tempdir().context("cannot make a temporary directory")?;
    let open = format!("/proc/self/fd/{}", dormant.recording().as_raw_fd());
    symlink(open, named.path().join(format!("{pid}.{EXTENSION}"))).context("cannot name the recording")?;
    let keeper = Keeper::start_for(named.path(), pid);
    // The recording has the process' own number, by which it is found in what is seen.
    let is_here = dormant.own_number() == pid;
    let recorder = Path::new(Library::Profiler.file());
    let watch = is_here.then(|| watch::prepare(recorder).start(pid));
    let python = PythonWatch::start(pid);
    let mut notes = Vec::new();
    let begun = Instant::now();
    let mut beaten = begun;
    let left = || record.time.map(|time| time.saturating_sub(begun.elapsed()));
    while !is_over.load(Relaxed) && left() != Some(Duration::ZERO) {
        thread::sleep(left().map_or(STEP, |left| left.min(STEP)));
        if dormant.has_ended() {
            break;
        }
        if beaten.elapsed() < BEAT {
            continue;
        }
        beaten = Instant::now();
        dormant.beat().with_context(writing)?;
        born.extend(children(pid).difference(&before));
        match (left(), record.time) {
            (Some(left), Some(time)) => progress.at(
                1.0 - left.as_secs_f64() / time.as_secs_f64(),
                format!("recording process {pid}, {:.0} s left", left.as_secs_f64().ceil()),
            ),
            _ => progress.now(format!("recording process {pid}, Ctrl-C ends that")),
        }
        if dormant.has_lapsed() {
            notes.push(format!(
                "This command was stopped for more than 5 s, so process {pid} has ended the recording; this is what was recorded."
            ));
            break;
        }
        if dormant.is_gone() {
            break;
        }
    }
    born.extend(children(pid).difference(&before));
    let ended = if dormant.is_gone() { Answer::Gone } else { dormant.end().with_context(writing)? };
    drop(progress);
    match ended {
        Answer::Gone if dormant.has_ended() => {
            notes.push(format!("Process {pid} has ended while it was recorded; this is what was recorded."));
        }
        Answer::Gone => notes.push(format!(
            "Process {pid} has become another program (exec) while it was recorded; this is what was recorded before."
        )),
        _ => {}
    }
    match (born.len(), born.first()) {
        (1, Some(child)) => notes.push(format!(
            "Process {pid} has started process {child} meanwhile, which is not recorded with it."
        )),
        (0, _) => {}
        (more, _) => notes.push(format!(
            "Process {pid} has started {more} processes meanwhile, which are not recorded with it."
        )),
    }
    let was_running = !matches!(ended, Answer::Gone);
    let (python, seen) = (python.finish(), watch.and_then(watch::Watch::finish));
    Ok(Known { kept: keeper.stop(), seen, python, notes, was_running })
}

/// Waits until the process records, no longer than it is to record.
fn begun(
    dormant: &mut Dormant,
    record: &Record,
    is_over: &AtomicBool,
    progress: &Progress,
) -> anyhow::Result<()> {
    let (pid, asked) = (record.pid, Instant::now());
    let mut beaten = asked;
    let silent = "no thread of it has used a lock, a semaphore or a condition variable since";
    loop {
        match dormant.answer() {
            Answer::Done => return Ok(()),
            Answer::Failed(cause) if cause == Cause::Sandbox as u32 => bail!(
                "process {pid} has entered a sandbox since its start (seccomp, no_new_privs), in which a system call of the recorder \
                 might end it\nAs it is, it can be sampled: spinpark profile --pid {pid}"
            ),
            Answer::Failed(cause) if cause == Cause::DiskFull as u32 => bail!(
                "process {pid} cannot record: the disk is full, on which its files are, {}\nMake room there, and try again",
                dormant.directory().display()
            ),
            Answer::NoBarrier => bail!(
                "process {pid} cannot record: the kernel refuses membarrier(2) to it, by which the recorder orders its threads: it is \
                 older than Linux 4.14, or a filter of system calls was there when the process started\nAs it is, it can be sampled: \
                 spinpark profile --pid {pid}"
            ),
            Answer::Failed(cause) if cause == Cause::Descriptors as u32 => bail!(
                "process {pid} cannot record: it has too many open files, and as a forked process needs one more\nRaise its limit \
                 (ulimit -n), or sample it: spinpark profile --pid {pid}"
            ),
            Answer::Failed(cause) if cause == Cause::Memory as u32 => bail!(
                "process {pid} cannot record: it has too little memory, or addresses (ulimit -v)\nAs it is, it can be sampled: \
                 spinpark profile --pid {pid}"
            ),
            Answer::Failed(cause) if cause == Cause::FileLength as u32 => bail!(
                "process {pid} cannot record: its files may not be as long as a recording (ulimit -f)\nAs it is, it can be sampled: \
                 spinpark profile --pid {pid}"
            ),
            Answer::Failed(_) => bail!(
                "process {pid} cannot record: one of its threads has been in the recorder for 5 s: in a signal handler, or it has \
                 left it by longjmp\nAs it is, it can be sampled: spinpark profile --pid {pid}"
            ),
            Answer::Gone => bail!("process {pid} has ended before it began to record"),
            Answer::Silent => {}
        }
        let is_late = record.time.is_some_and(|time| asked.elapsed() >= time.max(LEAST));
        if is_over.load(Relaxed) || is_late {
            let _ = dormant.end();
            bail!("nothing was recorded: {silent}\nWhat it waits for: spinpark why {pid}");
        }
        if beaten.elapsed() > BEAT {
            beaten = Instant::now();
            dormant.beat().with_context(|| format!("cannot write to the file of process {pid}"))?;
            if asked.elapsed() > SILENCE {
                progress.now(format!("process {pid} begins with its next use of a lock; Ctrl-C ends that"));
            }
        }
        thread::sleep(STEP / 10);
    }
}

/// The children of a process.
fn children(pid: u32) -> BTreeSet<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let numbers = |list: String| -> Vec<u32> {
        list.split_ascii_whitespace().filter_map(|child| child.parse().ok()).collect()
    };
    lists.flat_map(numbers).collect()
}
