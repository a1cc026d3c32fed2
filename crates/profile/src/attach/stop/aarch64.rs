//! All threads of a process at one moment: here only those of a core dump, since no thread is stopped (see
//! [`registers`](super::registers)).

use std::io;
use std::time::Duration;

use super::access::Refused;
use super::target::Target;
use super::task::Task;

/// The threads of a core dump, which were not stopped for it.
///
/// # Errors
/// If it is a process.
pub(super) fn snapshot(target: &Target) -> Result<(Vec<Task>, Duration), Refused> {
    const WHY: &str = "on aarch64 a call could return that should go on";
    match target.process() {
        None => Ok((target.snapshot()?, Duration::ZERO)),
        Some(process) => Err(process.not_stopped(&io::Error::other(WHY))),
    }
}
