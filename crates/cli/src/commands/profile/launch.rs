//! A program with the recorder in front of its locks.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use std::{env, io};

use anyhow::{Context, anyhow};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use spinpark_measure::configuration::{prepend, without_drop_in};
use spinpark_measure::executable::{Executable, Library};
use spinpark_measure::failure::in_words;
use spinpark_profile::units::time;

use crate::cli::{DetailChoice, LocksChoice};
use crate::libraries;

/// How long a program may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(10);

/// A program, with what is put in front of it.
pub(crate) struct Launch {
    name: OsString,
    path: PathBuf,
    arguments: Vec<OsString>,
    preload: OsString,
    /// The library that records.
    recorder: PathBuf,
    detail: DetailChoice,
    /// Bytes that the recording may have on the disk.
    max_size: u64,
}

impl Launch {
    /// Finds everything.
    ///
    /// # Errors
    ///
    /// If the program cannot be recorded, or the libraries are not there.
    pub(crate) fn new(
        program: &[OsString],
        locks: LocksChoice,
        detail: DetailChoice,
        max_size: u64,
    ) -> anyhow::Result<Self> {
        let (name, arguments) = program.split_first().ok_or_else(|| anyhow!("name a program to run"))?;
        let executable = Executable::find(name)?;
        let mut preload = without_drop_in(&env::var_os("LD_PRELOAD").unwrap_or_default());
        let mut put_before = |library| -> anyhow::Result<PathBuf> {
            let library = libraries::find(library)?;
            library.check_machine(executable.machine)?;
            preload = prepend(&library.path, &preload);
            Ok(library.path)
        };
        if locks == LocksChoice::Spinpark {
            put_before(Library::DropIn)?;
        }
        let recorder = put_before(Library::Profiler)?;
        let (name, arguments) = (name.clone(), arguments.to_vec());
        Ok(Self { name, path: executable.path, arguments, preload, recorder, detail, max_size })
    }

    /// The program's name as it was given.
    pub(crate) fn name(&self) -> String {
        self.name.to_string_lossy().into_owned()
    }

    /// The file of the library that records.
    pub(crate) fn recorder(&self) -> &Path {
        &self.recorder
    }

    /// The program with its arguments, and nothing in front of its locks.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.arg0(&self.name).args(&self.arguments);
        command
    }

    /// Puts the recorder in front of the locks of `command`; it records into `directory`.
    pub(crate) fn set_environment(&self, command: &mut Command, directory: &Path) {
        self.set_environment_for(self.detail, command, directory);
    }

    /// The same, with another detail.
    pub(crate) fn set_environment_for(&self, detail: DetailChoice, command: &mut Command, directory: &Path) {
        command
            .env("LD_PRELOAD", &self.preload)
            .env("SPINPARK_PROFILE_DIR", directory)
            .env("SPINPARK_PROFILE_DETAIL", detail.word())
            .env("SPINPARK_PROFILE_MAX_SIZE", self.max_size.to_string())
            // Our child is recorded from its start; its children, once they wait.
            .env("SPINPARK_PROFILE_PARENT", std::process::id().to_string());
    }

    /// Starts it; it records into `directory`.
    ///
    /// # Errors
    ///
    /// If it cannot be executed.
    pub(crate) fn start(&self, directory: &Path) -> anyhow::Result<Running> {
        let signals = Signals::catch()?;
        let mut command = self.command();
        self.set_environment(&mut command, directory);
        let child = command.spawn().with_context(|| format!("cannot execute {}", self.path.display()))?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).context("a process has an id")?;
        let handle = pidfd_open(pid, PidfdFlags::empty()).context("pidfd_open (it needs Linux 5.3)")?;
        Ok(Running { child, handle, signals, asked: None, limit: None })
    }
}

/// Signals that we get while the program runs. A terminal sends Ctrl-C to the program as well; it decides what that means.
struct Signals {
    /// Such that only we may have got: passed on.
    end: Arc<AtomicBool>,
    /// Ctrl-C and the like.
    from_terminal: Arc<AtomicBool>,
}

impl Signals {
    fn catch() -> anyhow::Result<Self> {
        let end = Arc::new(AtomicBool::new(false));
        let from_terminal = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&end)).context("cannot handle signals")?;
        }
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGQUIT] {
            signal_hook::flag::register(signal, Arc::clone(&from_terminal))
                .context("cannot handle signals")?;
        }
        Ok(Self { end, from_terminal })
    }
}

/// A program that runs.
pub(crate) struct Running {
    child: Child,
    handle: OwnedFd,
    signals: Signals,
    /// When it was asked to end.
    asked: Option<Instant>,
    /// The time that it was given, if that was why.
    limit: Option<Duration>,
}

impl Running {
    /// Waits for its end, at most for `time`.
    ///
    /// # Errors
    ///
    /// If a system call fails that does not fail.
    pub(crate) fn wait(&mut self, time: Duration) -> io::Result<Option<ExitStatus>> {
        let deadline = Instant::now() + time;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some(status));
            }
            if self.signals.end.swap(false, Relaxed) {
                self.end();
            }
            if self.asked.is_some_and(|asked| asked.elapsed() > GRACE) {
                self.send(Signal::KILL);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            // Now and then also without a reason: a signal may come just before the poll.
            let left = Timespec::try_from(left.min(Duration::from_millis(200))).ok();
            match poll(&mut [PollFd::new(&self.handle, PollFlags::IN)], left.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits for its end; asks it to end after `limit`.
    ///
    /// # Errors
    ///
    /// If a system call fails that does not fail.
    pub(crate) fn wait_for_end(&mut self, limit: Option<Duration>) -> io::Result<ExitStatus> {
        const LONG: Duration = Duration::from_secs(3600);
        if let Some(limit) = limit {
            if let Some(status) = self.wait(limit)? {
                return Ok(status);
            }
            self.limit = Some(limit);
            self.end();
        }
        loop {
            if let Some(status) = self.wait(LONG)? {
                return Ok(status);
            }
        }
    }

    /// Asks it to end.
    pub(crate) fn end(&mut self) {
        self.asked.get_or_insert_with(Instant::now);
        self.send(Signal::TERM);
    }

    /// The process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether we asked it to end.
    pub(crate) fn was_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// Why it ended, if that was not its own doing: what follows *it*.
    pub(crate) fn why(&self, status: ExitStatus) -> Option<String> {
        if let Some(limit) = self.limit {
            let late = if status.signal() == Some(libc::SIGKILL) { ", by SIGKILL at last" } else { "" };
            return Some(format!("ended after {}, as asked{late}", time(limit.as_nanos() as f64)));
        }
        status.signal().map(|signal| match signal {
            libc::SIGINT if self.signals.from_terminal.load(Relaxed) => {
                String::from("was ended by SIGINT (Ctrl-C)")
            }
            libc::SIGTERM => String::from("was ended by SIGTERM"),
            _ => in_words(status),
        })
    }

    fn send(&self, signal: Signal) {
        let _ = pidfd_send_signal(&self.handle, signal); // it may just have ended
    }
}
