//! A library as a file in memory, for a machine on which no directory is fit: a container that is read-only.
//!
//! Another process of this command keeps the file open, and `LD_PRELOAD` names it as
//! `/proc/PROCESS/fd/NUMBER`. That process, the keeper, does nothing. It ends after this one (after the
//! program, if this one becomes that), as soon as the environment of no process has the path.
//!
//! The path must not outlive the keeper: its number could become that of another user's process, and a daemon
//! that root has started so would have its programs load that user's file.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::event::{PollFd, PollFlags, poll};
use spinpark_measure::process::apart::{Side, fork_apart, own_handle};

use super::{Carried, check_executable};

/// Puts `library` there; its path.
pub(super) fn put(library: Carried) -> Result<PathBuf> {
    put_file(library).context("a file in memory")
}

fn put_file(library: Carried) -> Result<PathBuf> {
    let mut file = create(library.file)?;
    file.write_all(library.content)?;
    // A process that opens it finds what was written.
    let seals = libc::F_SEAL_SEAL | libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_WRITE;
    // SAFETY: a descriptor of this function, and flags.
    ensure!(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } == 0, "it cannot be sealed");
    check_executable(&file)?;
    let owner = own_handle()?;
    let (mut ready, mut notify_ready) = io::pipe()?;
    match fork_apart()? {
        Side::Apart => {
            let notified = notify_ready.write_all(&std::process::id().to_ne_bytes());
            drop((ready, notify_ready));
            if notified.is_ok() {
                close_others(&[file.as_raw_fd(), owner.as_raw_fd()]);
                while poll(&mut [PollFd::new(&owner, PollFlags::IN)], None).is_err() {}
                stay_while_named(&path_of(std::process::id(), &file));
            }
            // SAFETY: ends this process; what is undone at an exit is the other one's.
            unsafe { libc::_exit(0) }
        }
        Side::Here => {
            drop(notify_ready);
            let mut keeper = [0; 4];
            ready.read_exact(&mut keeper)?;
            let path = path_of(u32::from_ne_bytes(keeper), &file);
            // Programs open it so.
            let seen = fs::read(&path).with_context(|| path.display().to_string())?;
            ensure!(seen == library.content, "{}: another file", path.display());
            Ok(path)
        }
    }
}

fn path_of(keeper: u32, file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/{keeper}/fd/{}", file.as_raw_fd()))
}

/// Returns when two scans in a row have found the path in no process: one may miss a process that is forked
/// meanwhile, and whose parent ends.
fn stay_while_named(path: &Path) {
    let mut scans_without = 0;
    while scans_without < 2 {
        let is_named = is_named(path);
        scans_without = if is_named { 0 } else { scans_without + 1 };
        sleep(if is_named { Duration::from_secs(1) } else { Duration::from_millis(20) });
    }
}

/// Whether a process has `path` in the environment that it was started with. What this process may not read
/// has more rights, and its loader ignores the path or may not open it.
fn is_named(path: &Path) -> bool {
    let path = path.as_os_str().as_bytes();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut environments = processes
        .filter(|entry| entry.file_name().as_bytes().iter().all(u8::is_ascii_digit))
        .filter_map(|entry| fs::read(entry.path().join("environ")).ok());
    environments.any(|environment| environment.windows(path.len()).any(|part| part == path))
}

/// An empty file. In `/proc/PID/maps` its name is that of a file in a directory.
fn create(name: &str) -> Result<File> {
    let name = CString::new(format!("/{name}"))?;
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    let make = |flags| {
        // SAFETY: a string that ends with a null, and flags.
        match unsafe { libc::memfd_create(name.as_ptr(), flags) } {
            -1 => Err(io::Error::last_os_error()),
            // SAFETY: the call has just opened it for us.
            descriptor => Ok(unsafe { File::from_raw_fd(descriptor) }),
        }
    };
    // Before Linux 6.3 all are executable, and the flag is not known.
    Ok(make(flags | libc::MFD_EXEC).or_else(|_| make(flags))?)
}

/// Closes all descriptors but `kept`: the other ends of pipes see that the program has closed its own.
fn close_others(kept: &[i32]) {
    let open: Vec<i32> = fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|descriptor| !kept.contains(descriptor))
        .collect();
    for descriptor in open {
        // SAFETY: this process does nothing more with it.
        unsafe { libc::close(descriptor) };
    }
}
