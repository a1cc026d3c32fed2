//! One process, from start to end, and what it cost.
//!
//! The whole wait happens in one thread with one `poll` over the child's output, its pidfd and the interrupt:
//! no thread of this process runs while a program is measured, except to move its output out of the pipe.
//!
//! Every child leads a process group of its own, gets `SIGKILL` when we die, and takes its group along when
//! it ends: the next run starts on a clean machine.
//!
//! | module         | what it has                                                              |
//! |----------------|--------------------------------------------------------------------------|
//! | this one       | starting a process, waiting for it, what it cost                         |
//! | `capture`      | its output, in bounded memory                                            |
//! | [`ended`]      | how it ended, in words                                                   |
//! | `interrupt`    | a request to stop, as a descriptor                                       |
//! | `leftovers`    | processes that outlive it                                                |
//! | [`signals`]    | signals to a command that stands in for a program                        |
//! | [`inherited`]  | signal dispositions, as this process got them                            |
//! | [`apart`]      | processes beside a program                                               |
//! | [`service`]    | programs that a service manager starts                                   |
//! | [`executable`] | whether a program can be run on our locks; rules of preloading           |
//! | [`start_gate`] | threads that start together                                              |

pub mod apart;
mod capture;
pub mod ended;
pub mod executable;
pub mod inherited;
mod interrupt;
mod leftovers;
pub mod service;
pub mod signals;
pub mod start_gate;

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, PidfdFlags, Signal};
use thiserror::Error;

use self::capture::Capture;
pub use self::capture::OUTPUT_LIMIT;
pub use self::interrupt::Interrupt;
pub use self::leftovers::{adopt_orphans, leave_orphans};

/// How long a process may take to end after `SIGTERM`.
const GRACE: Duration = Duration::from_secs(1);

/// A process that ended by itself.
#[derive(Debug)]
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// From before the fork to the exit.
    pub wall: Duration,
    /// What the kernel counted.
    pub usage: Usage,
    /// Both output streams, in the order in which they were written; the last [`OUTPUT_LIMIT`] bytes.
    pub output: String,
}

/// The kernel's account of a process and the children that it waited for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Usage {
    /// User and system time.
    pub cpu: Duration,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
    /// Largest resident set, in bytes.
    pub peak_bytes: u64,
}

/// A process that did not end by itself, or did not start.
#[derive(Debug, Error)]
pub enum ProcessError {
    /// The kernel refused to run it.
    #[error("cannot start it: {0}")]
    Start(io::Error),
    /// The user did not want to wait.
    #[error("interrupted")]
    Interrupted,
    /// It took longer than allowed and was ended. With the output so far.
    #[error("the program still ran after {} s and was ended; allow more with --timeout", .after.as_secs_f64())]
    TimedOut {
        /// The limit.
        after: Duration,
        /// Its output so far.
        output: String,
    },
    /// A system call failed that does not fail.
    #[error("cannot wait for it: {0}")]
    Wait(#[from] io::Error),
}

/// Runs `command` to its end, with both output streams captured.
///
/// # Errors
///
/// If it cannot be started, takes longer than `timeout`, or `interrupt` comes first. It is gone in each case.
pub fn run(
    command: &mut Command,
    timeout: Option<Duration>,
    interrupt: &Interrupt,
) -> Result<Finished, ProcessError> {
    if interrupt.is_requested() {
        return Err(ProcessError::Interrupted);
    }
    let (mut capture, write_end) = Capture::new()?;
    command.stdout(write_end.try_clone()?).stderr(write_end).process_group(0);
    as_inherited(command);
    with_parent(command);
    let name = command.get_program().to_owned();
    service::with_own_id(command, &name);
    let start = Instant::now();
    let spawned = command.spawn();
    // `command` keeps the write end of the pipe open otherwise, and the output would never end.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let child = spawned.map_err(ProcessError::Start)?;
    let mut running = Running::new(child.id(), start)?;
    let ending = running.wait(&mut capture, timeout, interrupt);
    if !matches!(ending, Ok(Ending::Exited)) {
        running.terminate(&mut capture)?;
    }
    let finished = running.reap(capture)?;
    match ending? {
        Ending::Exited => Ok(finished),
        Ending::Interrupted => Err(ProcessError::Interrupted),
        Ending::TimedOut(after) => Err(ProcessError::TimedOut { after, output: finished.output }),
    }
}

/// Lets `command` start with the signal dispositions and the mask that this process was started with.
pub fn as_inherited(command: &mut Command) {
    // SAFETY: the closure runs between fork and exec and only makes system calls: no allocation, no lock.
    unsafe { command.pre_exec(inherited::restore) };
}

/// Lets the process of `command` be killed if the thread that starts it ends: a SIGKILL cannot be forwarded.
pub fn with_parent(command: &mut Command) {
    // SAFETY: the closure runs between fork and exec and only makes a system call: no allocation, no lock.
    unsafe { command.pre_exec(die_with_parent) };
}

/// Standard input with nothing in it, also in a root directory without `/dev/null`.
///
/// # Errors
///
/// If there are no file descriptors left.
pub fn empty_input() -> io::Result<Stdio> {
    match File::open("/dev/null") {
        Ok(null) => Ok(null.into()),
        // The end of a pipe that has no writer.
        Err(_) => Ok(rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?.0.into()),
    }
}

fn die_with_parent() -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(io::Error::from)
}

/// Why [`Running::wait`] came back.
#[derive(Clone, Copy)]
enum Ending {
    Exited,
    Interrupted,
    TimedOut(Duration),
}

/// A child that is not reaped yet, so its process id is its own.
struct Running {
    pid: Pid,
    pidfd: OwnedFd,
    start: Instant,
    wall: Duration,
}

impl Running {
    fn new(id: u32, start: Instant) -> io::Result<Self> {
        let pid = i32::try_from(id).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData)?;
        let pidfd = rustix::process::pidfd_open(pid, PidfdFlags::empty());
        match pidfd {
            Ok(pidfd) => Ok(Self { pid, pidfd, start, wall: Duration::ZERO }),
            Err(error) => {
                let _ = rustix::process::kill_process_group(pid, Signal::KILL);
                let _ = wait4(pid);
                Err(io::Error::other(format!("pidfd_open: {error} (it needs Linux 5.3 or later)")))
            }
        }
    }

    /// Waits for the exit, moving output into `capture`.
    fn wait(
        &mut self,
        capture: &mut Capture,
        timeout: Option<Duration>,
        interrupt: &Interrupt,
    ) -> io::Result<Ending> {
        loop {
            let left = timeout.map(|limit| limit.saturating_sub(self.start.elapsed()));
            let [exited, stop] = self.poll(capture, Some(interrupt), left)?;
            if exited {
                return Ok(Ending::Exited);
            }
            if stop {
                return Ok(Ending::Interrupted);
            }
            if let Some(limit) = timeout.filter(|limit| self.start.elapsed() >= *limit) {
                return Ok(Ending::TimedOut(limit));
            }
        }
    }

    /// Waits for one event and handles output. Returns whether the child exited, and whether an interrupt
    /// came.
    fn poll(
        &mut self,
        capture: &mut Capture,
        interrupt: Option<&Interrupt>,
        timeout: Option<Duration>,
    ) -> io::Result<[bool; 2]> {
        let mut fds = vec![PollFd::new(&self.pidfd, PollFlags::IN)];
        fds.extend(interrupt.map(|interrupt| PollFd::new(interrupt.fd(), PollFlags::IN)));
        fds.extend(capture.pipe().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        let timeout = timeout.and_then(|t| Timespec::try_from(t).ok());
        match rustix::event::poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let exited = !fds[0].revents().is_empty();
        if exited {
            self.wall = self.start.elapsed();
        }
        let stop = interrupt.is_some_and(Interrupt::is_requested);
        drop(fds);
        capture.drain()?;
        Ok([exited, stop])
    }

    /// Asks the group to end, and makes it end after [`GRACE`].
    fn terminate(&mut self, capture: &mut Capture) -> io::Result<()> {
        let _ = rustix::process::kill_process_group(self.pid, Signal::TERM);
        let deadline = Instant::now() + GRACE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if self.poll(capture, None, Some(left))?[0] {
                return Ok(());
            }
            if left.is_zero() {
                let _ = rustix::process::kill_process_group(self.pid, Signal::KILL);
                while !self.poll(capture, None, None)?[0] {}
                return Ok(());
            }
        }
    }

    /// Ends the rest of the group, reads the rest of the output, and takes the exit status.
    fn reap(self, mut capture: Capture) -> io::Result<Finished> {
        // The leader is a zombie: until `wait4`, no other process can have its process group id.
        let _ = rustix::process::kill_process_group(self.pid, Signal::KILL);
        capture.drain()?;
        let (status, usage) = wait4(self.pid)?;
        leftovers::sweep();
        Ok(Finished { status, wall: self.wall, usage, output: capture.into_text() })
    }
}

/// Reaps `pid` and reads the kernel's account of it.
fn wait4(pid: Pid) -> io::Result<(ExitStatus, Usage)> {
    let mut status = 0;
    // SAFETY: `rusage` is plain integers; all zero is a value of it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to live locals of the right types.
        let rc = unsafe { libc::wait4(pid.as_raw_nonzero().get(), &raw mut status, 0, &raw mut usage) };
        if rc >= 0 {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let time =
        |t: libc::timeval| Duration::new(t.tv_sec.unsigned_abs(), t.tv_usec.unsigned_abs() as u32 * 1000);
    let usage = Usage {
        cpu: time(usage.ru_utime) + time(usage.ru_stime),
        voluntary_switches: usage.ru_nvcsw.unsigned_abs(),
        involuntary_switches: usage.ru_nivcsw.unsigned_abs(),
        peak_bytes: usage.ru_maxrss.unsigned_abs() * 1024,
    };
    Ok((ExitStatus::from_raw(status), usage))
}
