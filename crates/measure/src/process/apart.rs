//! Processes of this command that stay beside a program without being its parents or its children.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::{fs, mem, ptr};

use rustix::io::Errno;
use rustix::process::{PidfdFlags, pidfd_open};

/// Which process this is, after [`fork_apart`].
#[derive(Debug)]
pub enum Side {
    /// The one that called it.
    Here,
    /// The new one.
    Apart,
}

/// A handle of this process, which its other processes may keep.
///
/// # Errors
///
/// If the kernel is older than Linux 5.3.
pub fn own_handle() -> io::Result<OwnedFd> {
    Ok(pidfd_open(rustix::process::getpid(), PidfdFlags::empty())?)
}

/// Forks a process off that is no child of this one, so that a program that this one becomes does not find a
/// child that it has not started: the parent of the new process ends at once. It has a process group of its
/// own, so that a signal to the program's group (Ctrl-C, `kill 0`) is not for it. All signals are blocked in
/// it.
///
/// To be called while this process has one thread that allocates.
///
/// # Errors
///
/// If there can be no more processes.
pub fn fork_apart() -> io::Result<Side> {
    // SAFETY: the child only forks and ends; glibc makes its allocator usable in a child.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // SAFETY: as above.
            match unsafe { libc::fork() } {
                // The memory of the other process is a copy of this one's, and usable as it is.
                0 => {
                    let _ = rustix::process::setpgid(None, None);
                    let mut all = mem::MaybeUninit::uninit();
                    // SAFETY: the call initialises the set.
                    unsafe { libc::sigfillset(all.as_mut_ptr()) };
                    // SAFETY: initialised above; no old mask is wanted.
                    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), ptr::null_mut()) };
                    Ok(Side::Apart)
                }
                // SAFETY: ends this process, and nothing of the other one's is undone.
                forked => unsafe { libc::_exit(i32::from(forked < 0)) },
            }
        }
        between => {
            let mut status = 0;
            // SAFETY: a live local.
            while unsafe { libc::waitpid(between, &raw mut status, 0) } < 0
                && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
            {}
            match status {
                0 => Ok(Side::Here),
                _ => Err(io::Error::from(Errno::AGAIN)),
            }
        }
    }
}

/// Lets go what was inherited for the program: its input, unless it is needed its output, and all other
/// descriptors. A pipe's other end sees that the program has closed it, and a port that it has closed is free.
/// This command's own files are closed on exec, which tells them apart.
pub fn release_inherited(keeps_output: bool) {
    if let Ok(null) = fs::File::options().read(true).write(true).open("/dev/null") {
        for descriptor in
            [libc::STDIN_FILENO, libc::STDOUT_FILENO].into_iter().take(2 - usize::from(keeps_output))
        {
            // SAFETY: both stay open, as what reads nothing and takes everything.
            unsafe { libc::dup2(null.as_raw_fd(), descriptor) };
        }
    }
    let inherited: Vec<i32> = fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|descriptor| *descriptor > 2)
        // SAFETY: asks for flags; a descriptor that is closed by now is an error.
        .filter(|descriptor| unsafe { libc::fcntl(*descriptor, libc::F_GETFD) } == 0)
        .collect();
    for descriptor in inherited {
        // SAFETY: no file of this command's, since those are closed on exec: nothing here owns it.
        unsafe { libc::close(descriptor) };
    }
}

/// How the process of `pidfd` ended, which is not a child of this one; none if that is not known: before Linux
/// 6.15 only until its parent has taken the status.
#[must_use]
pub fn status_of(pid: u32, pidfd: BorrowedFd<'_>) -> Option<ExitStatus> {
    let of_zombie = || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields = stat.rsplit_once(')')?.1;
        let status: i32 = fields.split_whitespace().last()?.parse().ok()?;
        let is_over = fields.trim_start().starts_with('Z');
        // Signal 0 only asks. While the process is not waited for, its number is not another's.
        // SAFETY: a descriptor that is open, and no information.
        let asked =
            unsafe { libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), 0, ptr::null::<u8>(), 0) };
        (is_over && asked == 0).then_some(status)
    };
    of_zombie().or_else(|| kept_status(pidfd)).map(ExitStatus::from_raw)
}

/// The status that the kernel keeps with the handle once the process was waited for.
fn kept_status(pidfd: BorrowedFd<'_>) -> Option<i32> {
    // SAFETY: plain integers; all zero is a value of it.
    let mut info: libc::pidfd_info = unsafe { mem::zeroed() };
    info.mask = u64::from(libc::PIDFD_INFO_EXIT);
    // SAFETY: the request and the structure belong together; a kernel that does not know it refuses.
    let done = unsafe { libc::ioctl(pidfd.as_raw_fd(), libc::PIDFD_GET_INFO, &raw mut info) };
    (done == 0 && info.mask & u64::from(libc::PIDFD_INFO_EXIT) != 0).then_some(info.exit_code)
}
