//! Where `/proc` has what there is to read of a process that runs.
//!
//! The first thread of a process may end before the others, by `pthread_exit` in `main`. Then the process'
//! own directory has neither maps, program nor memory: those of its other threads have.

use std::fs;
use std::path::{Path, PathBuf};

/// The directory of a process, or, if its first thread has ended, of another one of its threads.
#[must_use]
pub fn directory(pid: u32) -> PathBuf {
    let process = Path::new("/proc").join(pid.to_string());
    if !has_ended(&process) {
        return process;
    }
    let threads =
        fs::read_dir(process.join("task")).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut living = threads.filter(|thread| fs::read(thread.join("stat")).is_ok() && !has_ended(thread));
    living.next().unwrap_or(process)
}

/// Whether all that is left of the process is what its parent has not read yet.
pub(crate) fn is_dead(pid: u32) -> bool {
    has_ended(&directory(pid))
}

fn has_ended(directory: &Path) -> bool {
    let stat = fs::read(directory.join("stat")).unwrap_or_default();
    let stat = String::from_utf8_lossy(&stat);
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with(['Z', 'X']))
}
