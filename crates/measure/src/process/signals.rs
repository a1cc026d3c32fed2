//! Signals to a command that stands in for a program: taken in one place, and forwarded.
//!
//! A supervisor knows the process that it started, the command, and sends its signals there. Each reaches the
//! program as itself, with its value if it was queued with one. What the terminal sends (Ctrl-C, Ctrl-\,
//! Ctrl-Z, a hang-up, a new size) goes to the whole process group, so the program has it already.
//!
//! All signals are blocked while [`Signals`] exists, in this thread and in those that it starts, and read
//! from a descriptor: none ends the command, and a poll waits for signals and for the program alike.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::{fs, process};

/// Signals that come to this process. Dropping it sets the mask that was there before; signals that were not
/// taken by then are gone.
#[derive(Debug)]
pub struct Signals {
    descriptor: OwnedFd,
    mask_before: libc::sigset_t,
}

/// One that came.
#[derive(Debug, Clone, Copy)]
pub struct Signal {
    /// Its number.
    pub number: i32,
    code: i32,
    sender: u32,
    value: u64,
}

/// Calls `run` with all signals blocked: threads that it starts never handle any.
///
/// # Errors
///
/// If the kernel refuses, which it does not.
pub fn while_blocked<T>(run: impl FnOnce() -> T) -> io::Result<T> {
    let before = set_mask(&all())?;
    let result = run();
    set_mask(&before)?;
    Ok(result)
}

impl Signals {
    /// From now on, signals come here.
    ///
    /// # Errors
    ///
    /// If there are no file descriptors left.
    pub fn take() -> io::Result<Self> {
        let all = all();
        // SAFETY: the set is initialised, and no existing descriptor is changed.
        let descriptor =
            unsafe { libc::signalfd(-1, &raw const all, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call has just opened it for us.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        Ok(Self { descriptor, mask_before: set_mask(&all)? })
    }

    /// Readable while there are signals.
    #[must_use]
    pub fn descriptor(&self) -> &OwnedFd {
        &self.descriptor
    }
}

impl Iterator for &Signals {
    type Item = Signal;

    /// The next one that has come already.
    fn next(&mut self) -> Option<Signal> {
        let mut buffer = MaybeUninit::<libc::signalfd_siginfo>::uninit();
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the buffer has `size` bytes.
        let length = unsafe { libc::read(self.descriptor.as_raw_fd(), buffer.as_mut_ptr().cast(), size) };
        if usize::try_from(length) != Ok(size) {
            return None;
        }
        // SAFETY: the kernel has written all of it.
        let info = unsafe { buffer.assume_init() };
        let number = i32::try_from(info.ssi_signo).ok()?;
        Some(Signal { number, code: info.ssi_code, sender: info.ssi_pid, value: info.ssi_ptr })
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // A signal that was meant for the program, and came after its end, must not end the command now.
        (&*self).for_each(drop);
        let _ = set_mask(&self.mask_before);
    }
}

impl Signal {
    /// Whether the terminal sent it: to the whole foreground process group.
    #[must_use]
    pub fn is_from_terminal(&self) -> bool {
        use libc::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGWINCH};
        let sent = [SIGHUP, SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT, SIGWINCH];
        self.code == libc::SI_KERNEL && sent.contains(&self.number)
    }

    /// Whether it is for process `program`, whose parent we are, and does not come from there: what a program
    /// sends to its own process group reaches it anyway.
    #[must_use]
    pub fn is_for(&self, program: u32) -> bool {
        let is_news_of_a_child =
            self.number == libc::SIGCHLD && self.code > 0 && self.code != libc::SI_KERNEL;
        // A write by this process to a closed pipe raises SIGPIPE here, blocked as it is.
        !is_news_of_a_child
            && !self.is_from_terminal()
            && self.sender != process::id()
            && !descends_from(self.sender, program)
    }

    /// Sends it to the process of `pidfd`. It may just have ended: that is no error.
    pub fn pass_on(&self, pidfd: BorrowedFd<'_>) {
        /// The kernel's `siginfo_t` for queued signals, with its size.
        #[repr(C, align(8))]
        struct Queued {
            number: i32,
            error: i32,
            code: i32,
            padding: i32,
            sender: u32,
            user: u32,
            value: u64,
            rest: [u64; 12],
        }
        const { assert!(size_of::<Queued>() == size_of::<libc::siginfo_t>()) };
        let Self { number, code, sender, value } = *self;
        let queued = Queued { number, error: 0, code, padding: 0, sender, user: 0, value, rest: [0; 12] };
        // Only a queued signal may be forwarded with its origin; others come from this process.
        let info = if code == libc::SI_QUEUE { &raw const queued } else { std::ptr::null() };
        // SAFETY: the structure is as large and laid out as the kernel reads it, or null.
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), number, info, 0) };
    }
}

/// Whether `process` is `ancestor`, or one of its descendants that still has its parents.
fn descends_from(process: u32, ancestor: u32) -> bool {
    /// Deeper trees are not looked at.
    const DEPTH: usize = 64;
    let mut process = process;
    for _ in 0..DEPTH {
        if process == ancestor {
            return true;
        }
        let Some(parent) = parent_of(process).filter(|parent| *parent > 1) else { return false };
        process = parent;
    }
    false
}

fn parent_of(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name before it is in parentheses, and may contain some itself.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn all() -> libc::sigset_t {
    let mut all = MaybeUninit::uninit();
    // SAFETY: the call initialises the set.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: initialised above.
    unsafe { all.assume_init() }
}

/// Sets the mask of this thread; the one that was there before.
fn set_mask(mask: &libc::sigset_t) -> io::Result<libc::sigset_t> {
    let mut before = MaybeUninit::uninit();
    // SAFETY: both point to sets; the call writes the second.
    match unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, before.as_mut_ptr()) } {
        // SAFETY: written by the call.
        0 => Ok(unsafe { before.assume_init() }),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_descends_from_its_parent() {
        let parent = parent_of(process::id()).unwrap();
        assert!(descends_from(process::id(), parent) && descends_from(process::id(), process::id()));
        assert!(!descends_from(parent, process::id()));
        assert!(!descends_from(0, process::id()), "the kernel");
    }

    #[test]
    fn what_the_terminal_sends_is_not_passed_on() {
        let signal = |number, code, sender| Signal { number, code, sender, value: 0 };
        let parent = parent_of(process::id()).unwrap();
        assert!(signal(libc::SIGTERM, libc::SI_USER, parent).is_for(u32::MAX));
        assert!(signal(libc::SIGALRM, libc::SI_KERNEL, 0).is_for(u32::MAX));
        assert!(!signal(libc::SIGINT, libc::SI_KERNEL, 0).is_for(u32::MAX), "Ctrl-C");
        assert!(!signal(libc::SIGCHLD, libc::CLD_EXITED, parent).is_for(u32::MAX));
        assert!(signal(libc::SIGCHLD, libc::SI_USER, parent).is_for(u32::MAX));
        assert!(!signal(libc::SIGPIPE, libc::SI_USER, process::id()).is_for(u32::MAX));
    }
}
