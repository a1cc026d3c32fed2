//! A program with the recorder in front of its locks.

use std::ffi::OsString;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt, parent_id};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};
use std::{env, io};

use anyhow::{Context, anyhow, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitIdStatus, pidfd_open, pidfd_send_signal, waitid,
};
use spinpark_measure::process::apart::{self, Side};
use spinpark_measure::process::ended::in_words;
use spinpark_measure::process::executable::elf::has_dynamic_symbol;
use spinpark_measure::process::executable::preload_list::{prepend, without_drop_in};
use spinpark_measure::process::executable::{Executable, Library};
use spinpark_measure::process::signals::Signals;
use spinpark_measure::process::{self, service};
use spinpark_measure::text::units::time;

use crate::cli::{DetailChoice, LocksChoice};
use crate::libraries;

/// How long a program may take to end after the command itself has asked it to (`--duration`, `top`).
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

    /// The file of the library that records, as the maps of a process name it.
    pub(crate) fn recorder(&self) -> &Path {
        // A file in memory is called by a number.
        if self.recorder.starts_with("/proc") { Path::new(Library::Profiler.file()) } else { &self.recorder }
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
            .env("SPINPARK_PROFILE_PARENT", std::process::id().to_string())
            .env("SPINPARK_PROFILE_GETPPID", parent_id().to_string());
        super::python::ask_for_names(command);
        if let Some(time) = self.slower_than {
            command.env("SPINPARK_PROFILE_SLOWER_THAN", time.as_nanos().to_string());
        }
    }

    /// This process becomes the program, which is dormant: it makes a directory for itself in `directory`.
    /// Comes back with what prevents it.
    pub(crate) fn become_dormant(&self, directory: &Path) -> anyhow::Error {
        let mut command = self.command();
        command
            .env("LD_PRELOAD", &self.preload)
            .env("SPINPARK_PROFILE_DORMANT", directory)
            .env("SPINPARK_PROFILE_MAX_SIZE", self.max_size.to_string())
            // It comes first, and is that of a command that started this one.
            .env_remove("SPINPARK_PROFILE_DIR");
        process::as_inherited(&mut command);
        let error = command.exec();
        anyhow!(error).context(format!("cannot execute {}", self.path.display()))
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
        service::with_own_id(&mut command, &self.name);
        let child = command.spawn().with_context(|| format!("cannot execute {}", self.path.display()))?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).context("a process has an id")?;
        let handle = pidfd_open(pid, PidfdFlags::empty()).context("pidfd_open (it needs Linux 5.3)")?;
        Ok(Running::new(Process::Child(child), handle, signals))
    }

    /// This process becomes the program, with the id that a service manager expects. What comes back is
    /// another process of this command, next to it.
    ///
    /// # Errors
    ///
    /// If the program cannot be executed; in this process.
    pub(crate) fn start_as_this_process(&self, directory: &Path) -> anyhow::Result<Running> {
        let id = std::process::id();
        // Or the other process would become a child of this one.
        process::leave_orphans();
        let handle = apart::own_handle().context("pidfd_open (it needs Linux 5.3)")?;
        let (ready, mut notify_ready) = io::pipe().context("cannot make a pipe")?;
        // Its other end is closed by `exec`.
        let (mut begun, tell_begun) = io::pipe().context("cannot make a pipe")?;
        match apart::fork_apart().context("cannot start a process beside the program")? {
            Side::Here => {
                drop((notify_ready, begun));
                Err(self.become_program(directory, ready, tell_begun))
            }
            Side::Apart => {
                drop((ready, tell_begun));
                let signals = Signals::take().context("cannot take signals")?;
                notify_ready.write_all(&std::process::id().to_ne_bytes())?;
                let has_failed = begun.read(&mut [0]).map_or(true, |length| length > 0);
                if has_failed {
                    // The other process says why.
                    std::process::exit(0);
                }
                Ok(Running::new(Process::Beside(id), handle, signals))
            }
        }
    }

    /// Comes back with what prevents it.
    fn become_program(
        &self,
        directory: &Path,
        mut ready: PipeReader,
        mut tell_begun: PipeWriter,
    ) -> anyhow::Error {
        let mut observer = [0; 4];
        if ready.read_exact(&mut observer).is_err() {
            return anyhow!("the process beside the program has ended");
        }
        // Where a process may trace its descendants only (Yama), the observer needs permission. Without Yama
        // the call fails, and is not needed. SAFETY: a number, as the call takes it.
        unsafe { libc::prctl(libc::PR_SET_PTRACER, u64::from(u32::from_ne_bytes(observer)), 0, 0, 0) };
        let mut command = self.command();
        self.set_environment(&mut command, directory);
        // The recorder knows the program by its parent.
        command
            .env("SPINPARK_PROFILE_PARENT", parent_id().to_string())
            .env_remove("SPINPARK_PROFILE_GETPPID");
        process::as_inherited(&mut command);
        let error = command.exec();
        let _ = tell_begun.write_all(&[1]);
        anyhow!(error).context(format!("cannot execute {}", self.path.display()))
    }
}

/// Whether this process becomes the program, because a service manager knows the program by this process, or
/// because `is_wanted`; else the program is a child.
///
/// # Errors
///
/// If that is wanted and not possible.
pub(crate) fn becomes_program(is_wanted: bool) -> anyhow::Result<bool> {
    // All processes of a container end with its process 1: the observer, before it has reported.
    let is_first = std::process::id() == 1;
    if is_wanted && is_first {
        bail!(
            "--keep-pid is not possible for process 1 of a container: with it, all processes end, and no report is made\nLeave \
             --keep-pid out, or start spinpark by an init (`docker run --init`)"
        );
    }
    Ok(!is_first && (is_wanted || service::expects_this_process()))
}

/// The program's process.
enum Process {
    Child(Child),
    /// The one that this command was, by its id. Signals to the program reach it without this process.
    Beside(u32),
}

/// A program that runs, and the signals to the command meanwhile: they reach the program, as if the command
/// were not there.
pub(crate) struct Running {
    process: Process,
    handle: OwnedFd,
    /// False if it has ended, and only its parent knows how.
    knows_status: bool,
    signals: Signals,
    /// Whether the terminal sent SIGINT.
    has_ctrl_c: bool,
    /// Whether the command stopped because the program did.
    is_stopped: bool,
    /// When the command asked it to end. A forwarded signal does not count.
    asked: Option<Instant>,
    /// Whether it had to be killed, because it did not end.
    killed: bool,
    /// The time that it was given, if that was why.
    limit: Option<Duration>,
}

impl Running {
    fn new(process: Process, handle: OwnedFd, signals: Signals) -> Self {
        Self {
            process,
            handle,
            knows_status: true,
            signals,
            has_ctrl_c: false,
            is_stopped: false,
            asked: None,
            killed: false,
            limit: None,
        }
    }

    /// How it ended, once it has.
    fn status(&mut self) -> io::Result<Option<ExitStatus>> {
        match &mut self.process {
            Process::Child(child) => child.try_wait(),
            Process::Beside(id) => {
                let now = Timespec { tv_sec: 0, tv_nsec: 0 };
                if poll(&mut [PollFd::new(&self.handle, PollFlags::IN)], Some(&now))? == 0 {
                    return Ok(None);
                }
                let status = apart::status_of(*id, self.handle.as_fd());
                self.knows_status = status.is_some();
                Ok(Some(status.unwrap_or_default()))
            }
        }
    }

    /// Waits for its end, at most for `time`.
    ///
    /// # Errors
    ///
    /// If a system call fails that does not fail.
    pub(crate) fn wait(&mut self, time: Duration) -> io::Result<Option<ExitStatus>> {
        let deadline = Instant::now() + time;
        loop {
            if let Some(status) = self.status()? {
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
        let Process::Child(child) = &self.process else {
            // A service manager sends them to all processes of a service.
            (&self.signals).for_each(drop);
            return Ok(());
        };
        let program = child.id();
        for signal in &self.signals {
            self.has_ctrl_c |= signal.number == libc::SIGINT && signal.is_from_terminal();
            has_child_news |= signal.number == libc::SIGCHLD;
            let continued = signal.number == libc::SIGCONT && std::mem::take(&mut self.is_stopped);
            // `fg` continues the process group: both of us.
            if continued && self.changed(WaitIdOptions::CONTINUED)?.is_some() {
                continue;
            }
            if signal.is_for(program) {
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
        match &self.process {
            Process::Child(child) => child.id(),
            Process::Beside(id) => *id,
        }
    }

    /// Whether it is known how it ended. Else its status is that of a success.
    pub(crate) fn knows_status(&self) -> bool {
        self.knows_status
    }

    /// Whether the command asked it to end.
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
