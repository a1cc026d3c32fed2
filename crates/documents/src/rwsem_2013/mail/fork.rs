//! Child processes of a process that has one thread.

use std::io;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

/// Refuses to go on in a process with several threads: its children could not do anything.
pub(super) fn require_one_thread() -> io::Result<()> {
    match std::fs::read_dir("/proc/self/task")?.count() {
        1 => Ok(()),
        threads => Err(io::Error::other(format!("a server that forks has {threads} threads"))),
    }
}

/// Does `work` in a new process, which ends with the status that it returns, and with its parent.
///
/// The caller's process has one thread: see [`require_one_thread`].
pub(super) fn fork(work: impl FnOnce() -> i32) -> io::Result<Pid> {
    let parent = rustix::process::getpid();
    // SAFETY: there is no other thread, so the child has everything that the parent had, in a consistent
    // state.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
            // It may have died before it was watched.
            let code = if rustix::process::getppid() == Some(parent) { work() } else { 1 };
            // SAFETY: ends this process; what `main` left to be done at exit is the parent's.
            unsafe { libc::_exit(code) }
        }
        child => Pid::from_raw(child).ok_or_else(|| io::ErrorKind::InvalidData.into()),
    }
}

/// Children that were started and not yet waited for.
#[derive(Debug, Default)]
pub(super) struct Children {
    alive: usize,
    failed: usize,
}

impl Children {
    /// How many there are.
    pub(super) fn alive(&self) -> usize {
        self.alive
    }

    /// Starts one more.
    pub(super) fn start(&mut self, work: impl FnOnce() -> i32) -> io::Result<()> {
        fork(work)?;
        self.alive += 1;
        Ok(())
    }

    /// Waits for those that have ended already.
    pub(super) fn reap_ended(&mut self) -> io::Result<()> {
        while self.wait(WaitOptions::NOHANG)? {}
        Ok(())
    }

    /// Waits for one.
    pub(super) fn reap_one(&mut self) -> io::Result<()> {
        self.wait(WaitOptions::empty()).map(drop)
    }

    /// Waits for all, and says how many did not end well.
    pub(super) fn reap_all(mut self) -> io::Result<usize> {
        while self.wait(WaitOptions::empty())? {}
        Ok(self.failed + self.alive)
    }

    /// Whether one was waited for.
    fn wait(&mut self, options: WaitOptions) -> io::Result<bool> {
        loop {
            match rustix::process::wait(options) {
                Ok(Some((_, status))) => {
                    self.count(status);
                    return Ok(true);
                }
                Ok(None) | Err(Errno::CHILD) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// An orphan that we inherited was not started here: its parent did not wait for it, which is a failure,
    /// too.
    fn count(&mut self, status: WaitStatus) {
        let is_ours = self.alive > 0;
        self.alive = self.alive.saturating_sub(1);
        self.failed += usize::from(!is_ours || status.exit_status() != Some(0));
    }
}
