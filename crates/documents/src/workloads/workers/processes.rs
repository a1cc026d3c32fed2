//! Tasks that are processes.
//!
//! They are forked from a process with one thread, so everything works in them that works here. They end with
//! their parent, even if it is killed.

use std::io;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use super::board::Board;
use crate::workloads::job::JobError;

/// The exit status of a task that failed and said why.
const FAILED: i32 = 1;

/// Runs `work(number)` in a process for each slot. Once all are ready, `go` is called here.
pub(super) fn run(
    board: &Board,
    work: impl Fn(usize) -> Result<(), JobError>,
    go: impl FnOnce(),
) -> Result<(), JobError> {
    let mut children = Children(Vec::new());
    for number in 0..board.slots().len() {
        children.0.push(fork_task(number, || work(number))?);
    }
    let mut waiting = 0;
    while !board.are_all_ready() {
        thread::sleep(Duration::from_micros(100));
        // Now and then: has one ended before the start?
        waiting += 1;
        if waiting % 100 == 0 {
            children.check_alive()?;
        }
    }
    go();
    children.join()
}

/// Starts a process that does `work` and ends, with its parent at the latest.
pub(crate) fn fork_task(number: usize, work: impl FnOnce() -> Result<(), JobError>) -> Result<Pid, JobError> {
    fork(|| said(work())).map_err(JobError::failed(format!("cannot fork process {number}")))
}

/// Starts a process that does `work` and ends with the status that it returns, and with its parent. The
/// calling process has one thread.
pub(crate) fn fork(work: impl FnOnce() -> i32) -> io::Result<Pid> {
    let parent = rustix::process::getpid();
    // SAFETY: there is no other thread (the callers say so), so the child may do whatever we may.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
            // The parent may be gone already: then there will be no signal.
            let is_orphan = rustix::process::getppid() != Some(parent);
            let status = if is_orphan { FAILED } else { work() };
            // SAFETY: ends this process; nothing of the parent's is flushed or removed a second time.
            unsafe { libc::_exit(status) }
        }
        child => Pid::from_raw(child).ok_or_else(|| io::ErrorKind::InvalidData.into()),
    }
}

/// The exit status for a result; an error is said on standard error.
fn said(result: Result<(), JobError>) -> i32 {
    match result {
        Ok(()) => 0,
        Err(trouble) => {
            eprintln!("{trouble}");
            FAILED
        }
    }
}

/// Processes that are not reaped yet. Those that are left are killed.
struct Children(Vec<Pid>);

impl Children {
    fn check_alive(&mut self) -> Result<(), JobError> {
        for index in 0..self.0.len() {
            if let Some(status) = wait(self.0[index], WaitOptions::NOHANG)? {
                self.0.swap_remove(index);
                return Err(ended(status)
                    .err()
                    .unwrap_or(JobError::Mismatch(String::from("a task ended by itself"))));
            }
        }
        Ok(())
    }

    fn join(&mut self) -> Result<(), JobError> {
        while let Some(child) = self.0.pop() {
            if let Some(status) = wait(child, WaitOptions::empty())? {
                ended(status)?;
            }
        }
        Ok(())
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        for child in &self.0 {
            let _ = rustix::process::kill_process(*child, Signal::KILL);
        }
        for child in &self.0 {
            let _ = wait(*child, WaitOptions::empty());
        }
    }
}

/// Waits for `child`; none if it still runs.
pub(crate) fn wait(child: Pid, options: WaitOptions) -> Result<Option<WaitStatus>, JobError> {
    loop {
        match rustix::process::waitpid(Some(child), options) {
            Err(rustix::io::Errno::INTR) => {}
            result => {
                return Ok(result
                    .map_err(JobError::failed("cannot wait for a process"))?
                    .map(|(_, status)| status));
            }
        }
    }
}

/// What the end of a process means.
pub(crate) fn ended(status: WaitStatus) -> Result<(), JobError> {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(0), _) => Ok(()),
        (Some(FAILED), _) => Err(JobError::Refused(String::from("a process failed; it says why above"))),
        (_, Some(signal)) => Err(JobError::Mismatch(format!("a process was killed by signal {signal}"))),
        (code, _) => Err(JobError::Mismatch(format!("a process ended with status {}", code.unwrap_or(-1)))),
    }
}
