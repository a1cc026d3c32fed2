//! A program with the recorder in front of its locks.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};
use std::{env, io};

use anyhow::{Context, anyhow};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitIdStatus, pidfd_open, pidfd_send_signal, waitid,
};
use spinpark_measure::configuration::{prepend, without_drop_in};
use spinpark_measure::executable::{Executable, Library, elf::has_dynamic_symbol};
use spinpark_measure::failure::in_words;
use spinpark_measure::process::{self, signals::Signals};
use spinpark_measure::units::time;

use crate::cli::{DetailChoice, LocksChoice};
use crate::libraries;

/// How long a program may take to end after the command itself has told it to (`--duration`, `top`).
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
    /// Longer waits are kept one by one.
    pub(crate) slower_than: Option<Duration>,
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
        let executable = Executable::find_with(name, arguments)?;
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
        Ok(Self {
            name,
            path: executable.path,
            arguments,
            preload,
            recorder,
            detail,
            max_size,
            slower_than: None,
        })
    }

    /// The program's name as it was given.
    pub(crate) fn name(&self) -> String {
        self.name.to_string_lossy().into_owned()
    }

    /// Whether the program itself is built with ThreadSanitizer.
    pub(crate) fn has_thread_sanitizer(&self) -> bool {
        has_dynamic_symbol(&self.path, "__tsan_init")
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
        super::python::ask_for_names(command);
        if let Some(time) = self.slower_than {
            command.env("SPINPARK_PROFILE_SLOWER_THAN", time.as_nanos().to_string());
        }
    }

    /// Starts it; it records into `directory`.
    ///
    /// # Errors
    ///
    /// If it cannot be executed.
    pub(crate) fn start(&self, directory: &Path) -> anyhow::Result<Running> {
        // Before it starts: no signal is lost, or ends the command.
        let signals = Signals::take().context("cannot take signals")?;
        let mut command = self.command();
        self.set_environment(&mut command, directory);
        process::as_inherited(&mut command);
        process::with_parent(&mut command);
        let child = command.spawn().with_context(|| format!("cannot execute {}", self.path.display()))?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).context("a process has an id")?;
        let handle = pidfd_open(pid, PidfdFlags::empty()).context("pidfd_open (it needs Linux 5.3)")?;
        Ok(Running {
            child,
            handle,
            signals,
            has_ctrl_c: false,
            is_stopped: false,
            asked: None,
            killed: false,
            limit: None,
        })
    }
}

/// A program that runs, and the signals to the command meanwhile: they reach the program, as if the command
/// were not there.
pub(crate) struct Running {
    child: Child,
    handle: OwnedFd,
    signals: Signals,
    /// Whether the terminal sent SIGINT.
    has_ctrl_c: bool,
    /// Whether the command stopped because the program did.
    is_stopped: bool,
    /// When the command told it to end. A forwarded signal does not count.
    asked: Option<Instant>,
    /// Whether it had to be killed, because it did not end.
    killed: bool,
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
            self.handle_signals()?;
            let grace =
                self.asked.filter(|_| !self.killed).map(|asked| GRACE.saturating_sub(asked.elapsed()));
            if grace.is_some_and(|grace| grace.is_zero()) {
                self.killed = true;
                self.send(Signal::KILL);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            let left = Timespec::try_from(grace.map_or(left, |grace| left.min(grace))).ok();
            let descriptors = &mut [
                PollFd::new(&self.handle, PollFlags::IN),
                PollFd::new(self.signals.descriptor(), PollFlags::IN),
            ];
            match poll(descriptors, left.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Passes signals on, and stops when the program does, so that a shell sees a stopped job.
    fn handle_signals(&mut self) -> io::Result<()> {
        let mut has_child_news = false;
        for signal in &self.signals {
            self.has_ctrl_c |= signal.number == libc::SIGINT && signal.is_from_terminal();
            has_child_news |= signal.number == libc::SIGCHLD;
            let continued = signal.number == libc::SIGCONT && std::mem::take(&mut self.is_stopped);
            // `fg` continues the process group: both of us.
            if continued && self.changed(WaitIdOptions::CONTINUED)?.is_some() {
                continue;
            }
            if signal.is_for(self.child.id()) {
                signal.pass_on(self.handle.as_fd());
            }
        }
        if has_child_news
            && let Some(stopped) = self.changed(WaitIdOptions::STOPPED)?
            && [Some(libc::SIGTSTP), Some(libc::SIGTTIN), Some(libc::SIGTTOU)]
                .contains(&stopped.stopping_signal())
        {
            self.is_stopped = true;
            rustix::process::kill_process(rustix::process::getpid(), Signal::STOP)?;
        }
        Ok(())
    }

    /// What became of it lately, other than its end.
    fn changed(&self, what: WaitIdOptions) -> io::Result<Option<WaitIdStatus>> {
        let status = waitid(WaitId::PidFd(self.handle.as_fd()), what | WaitIdOptions::NOHANG);
        // ECHILD: it has ended.
        status.or_else(|error| if error == rustix::io::Errno::CHILD { Ok(None) } else { Err(error.into()) })
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

    /// Asks it to end. It is killed if it does not within [`GRACE`].
    pub(crate) fn end(&mut self) {
        self.asked.get_or_insert_with(Instant::now);
        self.send(Signal::TERM);
    }

    /// The process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether the command told it to end.
    pub(crate) fn was_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// Why it ended, if that was not its own doing: what follows *it*.
    pub(crate) fn why(&self, status: ExitStatus) -> Option<String> {
        if let Some(limit) = self.limit {
            let late = match (self.killed, status.signal()) {
                (true, Some(libc::SIGKILL)) => {
                    format!(": by SIGKILL from spinpark, {} s after SIGTERM", GRACE.as_secs())
                }
                (false, Some(libc::SIGKILL)) => String::from(", by a SIGKILL that is not from spinpark"),
                _ => String::new(),
            };
            return Some(format!("ended after {}, as asked{late}", time(limit.as_nanos() as f64)));
        }
        status.signal().map(|signal| match signal {
            libc::SIGINT if self.has_ctrl_c => String::from("was ended by SIGINT (Ctrl-C)"),
            libc::SIGINT => String::from("was ended by SIGINT"),
            libc::SIGTERM => String::from("was ended by SIGTERM"),
            libc::SIGKILL if self.killed => {
                format!("was killed by spinpark, {} s after it was asked to end", GRACE.as_secs())
            }
            _ => in_words(status),
        })
    }

    fn send(&self, signal: Signal) {
        let _ = pidfd_send_signal(&self.handle, signal); // it may just have ended
    }
}
