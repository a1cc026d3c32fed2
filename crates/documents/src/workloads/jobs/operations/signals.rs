//! Signals to oneself.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use super::Context;
use crate::workloads::job::{JobError, expect};

/// How many signals are sent.
const SIGNALS: u32 = 1000;

static CAUGHT: AtomicU32 = AtomicU32::new(0);

extern "C" fn catch(_: libc::c_int) {
    CAUGHT.fetch_add(1, Ordering::Relaxed);
}

/// A thousand signals, each caught before the next one is sent.
pub(super) fn signals(_: &mut Context) -> Result<(), JobError> {
    CAUGHT.store(0, Ordering::Relaxed);
    // SAFETY: `sigaction` is integers and a function's address; all zero means: no flags, the default action.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = catch as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: as before.
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: two live locals; the handler only adds to an atomic.
    let set = unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, &raw mut before) };
    if set != 0 {
        return Err(JobError::failed("cannot catch a signal")(io::Error::last_os_error()));
    }
    for _ in 0..SIGNALS {
        // SAFETY: a signal that is caught, to this thread: it is delivered before the call returns.
        unsafe { libc::raise(libc::SIGUSR1) };
    }
    // SAFETY: a live local with what was there before.
    unsafe { libc::sigaction(libc::SIGUSR1, &raw const before, std::ptr::null_mut()) };
    let caught = CAUGHT.load(Ordering::Relaxed);
    expect(caught == SIGNALS, || format!("{caught} signals of {SIGNALS} were caught"))
}
