//! Where the two threads run, and which goes first on one CPU.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

use crate::workloads::job::JobError;

/// Where the two threads run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cpus {
    /// Both on one CPU: the document's machine has no other.
    One,
    /// Where the kernel puts them.
    All,
}

/// Puts the calling thread where it belongs. With `lets_others`, a thread that it wakes on its CPU runs at
/// once.
///
/// # Errors
///
/// If the kernel does not allow that.
pub(super) fn place(cpus: Cpus, lets_others: bool) -> Result<(), JobError> {
    if cpus == Cpus::One {
        let allowed = sched_getaffinity(None).map_err(JobError::failed("cannot ask for the allowed CPUs"))?;
        let first = (0..CpuSet::MAX_CPU).find(|&cpu| allowed.is_set(cpu)).unwrap_or_default();
        let mut one = CpuSet::new();
        one.set(first);
        sched_setaffinity(None, &one).map_err(JobError::failed("cannot bind a thread to a CPU"))?;
    }
    if lets_others {
        let parameters = libc::sched_param { sched_priority: 0 };
        // SAFETY: the parameters live; the call changes the class of this thread only.
        if unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) } != 0 {
            return Err(JobError::failed("cannot use SCHED_IDLE")(io::Error::last_os_error()));
        }
    }
    Ok(())
}
