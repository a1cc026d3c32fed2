//! Signal dispositions and the signal mask, as this process got them from its parent.
//!
//! A program inherits both over `exec`, and callers count on it: `nohup` ignores SIGHUP, a shell ignores
//! SIGINT in a background job, a service manager ignores SIGPIPE or blocks signals. Rust's runtime ignores
//! SIGPIPE before `main`, and `std::process::Command` sets it to its default and empties the mask. So both
//! are read before `main`, and [`restore`] sets them in a child between `fork` and `exec`.

use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The highest signal number of Linux.
const LAST: i32 = 64;

/// A bit for each signal that was ignored, and for each that was blocked. Written before `main`, by one
/// thread.
static IGNORED: AtomicU64 = AtomicU64::new(0);
static BLOCKED: AtomicU64 = AtomicU64::new(0);

// SAFETY: glibc calls the functions of this section before `main`, as C functions without a result.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = read;

extern "C" fn read() {
    let signals = || (1..=LAST).map(|signal| (signal, 1 << (signal - 1)));
    let ignored = signals().filter(|(signal, _)| disposition(*signal) == Some(libc::SIG_IGN));
    IGNORED.store(ignored.map(|(_, bit)| bit).sum(), Relaxed);
    let mut mask = MaybeUninit::uninit();
    // SAFETY: with no new mask, the call only writes the old one.
    if unsafe { libc::sigprocmask(libc::SIG_BLOCK, std::ptr::null(), mask.as_mut_ptr()) } == 0 {
        // SAFETY: the call has written it.
        let mask: libc::sigset_t = unsafe { mask.assume_init() };
        // SAFETY: the set is initialised.
        let blocked =
            signals().filter(|(signal, _)| unsafe { libc::sigismember(&raw const mask, *signal) } == 1);
        BLOCKED.store(blocked.map(|(_, bit)| bit).sum(), Relaxed);
    }
    // While it is ignored, the kernel reaps children itself, and their exit status is lost to this process.
    if is_ignored(libc::SIGCHLD) {
        // SAFETY: the default is a valid disposition.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    }
}

/// What a signal does now; none for the two that belong to glibc.
fn disposition(signal: i32) -> Option<libc::sighandler_t> {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: with no new action, the call only writes the old one.
    let read = unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) };
    // SAFETY: the call has written it if it succeeded.
    (read == 0).then(|| unsafe { action.assume_init() }.sa_sigaction)
}

/// Whether this process was started with `signal` ignored.
#[must_use]
pub fn is_ignored(signal: i32) -> bool {
    IGNORED.load(Relaxed) & 1 << (signal - 1) != 0
}

/// Gives this process the dispositions and the mask that the command was started with. Signals that are
/// caught now need nothing: `exec` sets them to their defaults. For `pre_exec`: it only makes system calls.
///
/// # Errors
///
/// If the kernel refuses, which it does not.
pub fn restore() -> io::Result<()> {
    let blocked = BLOCKED.load(Relaxed);
    let mut mask = MaybeUninit::uninit();
    // SAFETY: the call initialises the set.
    unsafe { libc::sigemptyset(mask.as_mut_ptr()) };
    // SAFETY: initialised above.
    let mut mask: libc::sigset_t = unsafe { mask.assume_init() };
    for signal in 1..=LAST {
        if is_ignored(signal) {
            // SAFETY: to ignore is a valid disposition.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
        if blocked & 1 << (signal - 1) != 0 {
            // SAFETY: the set is initialised.
            unsafe { libc::sigaddset(&raw mut mask, signal) };
        }
    }
    // SAFETY: the set is initialised; no old mask is wanted.
    match unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const mask, std::ptr::null_mut()) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}
