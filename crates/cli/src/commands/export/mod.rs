//! `spinpark export`: where a process waits, to what engineers watch their machines with.
//!
//! | module  | what it has                                                            |
//! |---------|------------------------------------------------------------------------|
//! | `serve` | the counters by HTTP, at an address or a socket                         |
//! | `push`  | stacks of waiting to a continuous profiler, which may be down           |

mod push;
mod serve;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use spinpark_measure::report::json::{Output, Unwritable};
use spinpark_profile::attach::{Sampler, Target};
use spinpark_profile::export::{Dialect, Interval, Metrics, text};
use spinpark_profile::load::load;
use spinpark_profile::model::Profile;
use spinpark_profile::pprof;
use spinpark_profile::symbols::Symbols;

use self::push::{Pusher, Receiver};
use self::serve::Server;
use crate::cli::{Export, Subject};
use crate::exit::FAILED;
use crate::session::on_interrupt;

/// 50 snapshots a second.
const INTERVAL: Duration = Duration::from_millis(20);
/// Between two questions whether to go on.
const STEP: Duration = Duration::from_millis(200);
/// With `--openmetrics` alone.
const ONCE: Duration = Duration::from_secs(10);
/// A sampler keeps something of each snapshot until it is restarted.
const RESTART: Duration = Duration::from_secs(300);
/// It keeps call sites for good: with more of them it is made anew.
const CALL_SITES: usize = 50_000;

/// What comes after figures that were taken.
#[derive(Clone, Copy)]
enum Next {
    More,
    /// They are the last ones, though the process may go on.
    Nothing,
    /// They are of a recording, which does not tell what the process does now.
    NoProcess,
}

/// Where everything goes.
struct Outlets<'a> {
    export: &'a Export,
    metrics: Arc<Mutex<Metrics>>,
    server: Option<Server>,
    pusher: Option<Pusher>,
    /// Why the file was not written the last time: a disk may have room again. Each file has all counters so far.
    unwritten: Option<anyhow::Error>,
}

/// Exports it.
pub(crate) fn run(export: &Export) -> anyhow::Result<ExitCode> {
    let has_place = export.listen.is_some() || export.textfile.is_some() || export.push.is_some();
    if !has_place && !export.openmetrics {
        bail!(
            "nothing says where it is to go\nUse --listen 127.0.0.1:9464 (Prometheus), --textfile FILE (node exporter), --push \
             http://HOST:4040 (Pyroscope), or --openmetrics (standard output)"
        );
    }
    let is_over = Arc::new(AtomicBool::new(false));
    match &export.subject {
        Subject::Process(pid) => process(export, *pid, &is_over),
        Subject::Core(path) => recording(export, path, &is_over),
    }
}

/// A process that runs, until it ends.
fn process(export: &Export, pid: u32, is_over: &Arc<AtomicBool>) -> anyhow::Result<ExitCode> {
    let begin = || -> anyhow::Result<(Sampler, String)> {
        let target = Target::open(pid, "spinpark export")?;
        let program = file_name(target.program());
        Ok((Sampler::new(target, Symbols::new().with_debuginfod(), INTERVAL)?, program))
    };
    let (mut sampler, program) = begin()?;
    let mut outlets = Outlets::open(export, &program, Some(pid))?;
    let flag = Arc::clone(is_over);
    on_interrupt(move || flag.store(true, Relaxed))?;
    note!("Sampling process {pid} ({program}); Ctrl-C ends it.");
    let is_once = export.listen.is_none() && export.textfile.is_none() && export.push.is_none();
    let end = export.time.or(is_once.then_some(ONCE)).map(|time| Instant::now() + time);
    let (mut interval, mut begun) = (Interval::default(), Instant::now());
    outlets.write()?;
    let mut goes_on = true;
    while goes_on {
        let update = Instant::now() + export.every;
        let until = end.map_or(update, |end| end.min(update));
        let mut is_running = true;
        while is_running && !is_over.load(Relaxed) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            is_running = sampler.sample(left.min(STEP), || !is_over.load(Relaxed));
        }
        goes_on = is_running && !is_over.load(Relaxed) && end.is_none_or(|end| Instant::now() < end);
        let all = sampler.profile();
        let call_sites = all.call_sites.len();
        let new = interval.of(all);
        outlets.take(&new, if goes_on { Next::More } else { Next::Nothing })?;
        outlets.write_or_retry();
        if call_sites > CALL_SITES && goes_on {
            match begin() {
                Ok((other, _)) => sampler = other,
                // It has ended meanwhile.
                Err(_) => {
                    (goes_on, is_running) = (false, false);
                    outlets.metrics().end_process();
                    outlets.write_or_retry();
                }
            }
        }
        if call_sites > CALL_SITES || begun.elapsed() >= RESTART {
            sampler.restart();
            interval.restart();
            begun = Instant::now();
        }
        if !is_running {
            note!("The process has ended.");
        }
    }
    outlets.finish()
}

/// What a recording has, once; served until Ctrl-C.
fn recording(export: &Export, path: &Path, is_over: &Arc<AtomicBool>) -> anyhow::Result<ExitCode> {
    let loaded = load(path, &mut Symbols::new().with_debuginfod())?;
    for error in &loaded.broken {
        note!("Warning: {error}");
    }
    let first = super::profile::most(&loaded.profiles).context("there is no process in the recording")?;
    let several = loaded.profiles.len() > 1;
    if several {
        note!("This is process {}, which waited most of {}.", first.pid, loaded.profiles.len());
    }
    let pid = first.merged.is_none().then_some(first.pid);
    let mut outlets = Outlets::open(export, &file_name(&first.program), pid)?;
    let flag = Arc::clone(is_over);
    on_interrupt(move || flag.store(true, Relaxed))?;
    outlets.take(first, Next::NoProcess)?;
    outlets.write()?;
    let end = export.time.map(|time| Instant::now() + time);
    while outlets.server.is_some() && !is_over.load(Relaxed) && end.is_none_or(|end| Instant::now() < end) {
        std::thread::sleep(STEP);
    }
    outlets.finish()
}

fn file_name(program: &str) -> String {
    let path = program.trim_end_matches(" (deleted)");
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

impl<'a> Outlets<'a> {
    /// Opens all that is asked for, so that what cannot be is an error at once.
    fn open(export: &'a Export, program: &str, pid: Option<u32>) -> anyhow::Result<Self> {
        let mut labels = vec![(String::from("program"), program.to_owned())];
        labels.extend(pid.map(|pid| (String::from("pid"), pid.to_string())));
        labels.extend(export.label.iter().cloned());
        let receiver = export.push.as_deref();
        let receiver = receiver.map(|place| Receiver::new(place, export.receiver, &labels)).transpose()?;
        let metrics = Arc::new(Mutex::new(Metrics::new(export.series, labels)));
        let server = export.listen.as_deref().map(|place| Server::open(place, &metrics)).transpose()?;
        if let Some(server) = &server {
            note!("Serving {}", server.place());
        }
        let pusher = receiver.map(Pusher::start);
        Ok(Self { export, metrics, server, pusher, unwritten: None })
    }

    fn metrics(&self) -> MutexGuard<'_, Metrics> {
        self.metrics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what was waited in an interval.
    fn take(&mut self, profile: &Profile, next: Next) -> anyhow::Result<()> {
        {
            let mut metrics = self.metrics();
            metrics.add(profile);
            match next {
                Next::More => {}
                Next::Nothing => metrics.end(),
                Next::NoProcess => metrics.end_process(),
            }
        }
        if let Some(pusher) = &self.pusher {
            let mut bytes = Vec::new();
            pprof::write(std::slice::from_ref(profile), &mut bytes).context("cannot write to memory")?;
            pusher.offer(bytes, profile.started, profile.started.saturating_add(profile.duration));
        }
        Ok(())
    }

    /// Writes the file.
    fn write(&self) -> anyhow::Result<()> {
        let Some(path) = &self.export.textfile else { return Ok(()) };
        let text = self.text(Dialect::Prometheus);
        let written = replace(path, text.as_bytes());
        let needed = Some(text.len() as u64);
        Ok(written.map_err(|error| Unwritable { path: path.clone(), error, needed })?)
    }

    /// Writes the file. If that fails, the next one is written all the same.
    fn write_or_retry(&mut self) {
        let before = self.unwritten.take();
        self.unwritten = self.write().err();
        match (&before, &self.unwritten) {
            (None, Some(error)) => {
                note!("Warning: {error:#}\nThe counters go on, and the file is tried again each time.");
            }
            (Some(_), None) => note!("The file is written again; nothing is missing in it."),
            _ => {}
        }
    }

    fn text(&self, dialect: Dialect) -> String {
        text(&self.metrics(), dialect)
    }

    /// Sends what is left, and says what was lost.
    fn finish(self) -> anyhow::Result<ExitCode> {
        if self.export.openmetrics {
            Output::open(Path::new("-"))?.write_bytes(self.text(Dialect::OpenMetrics).as_bytes())?;
        }
        drop(self.server);
        let folded = self.metrics.lock().unwrap_or_else(PoisonError::into_inner).folded();
        if folded > 0 {
            note!(
                "{folded} combinations of lock and place have no series of their own, and are in the lock `other`: --series {} \
                 was too few.",
                self.export.series
            );
        }
        let mut code = ExitCode::SUCCESS;
        if let Some(pusher) = self.pusher {
            let (sentence, is_complete) = pusher.finish();
            note!("{sentence}");
            if !is_complete {
                code = ExitCode::from(FAILED);
            }
        }
        self.unwritten.map_or(Ok(code), Err)
    }
}

/// Replaces a file as a whole. What is unfinished has a name that the textfile collector does not read (`*.prom`). What
/// is no file, such as a device or a link, stays: others use it.
fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if fs::symlink_metadata(path).is_ok_and(|there| !there.is_file()) {
        return Err(std::io::Error::other(
            "there is something that is no file: name one, or what is not there yet",
        ));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let unfinished: PathBuf = path.with_file_name(format!(".{name}.{}.new", std::process::id()));
    let write = || {
        let mut file = fs::File::create(&unfinished)?;
        file.write_all(bytes)?;
        drop(file);
        fs::rename(&unfinished, path)
    };
    let written = write();
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    written
}
