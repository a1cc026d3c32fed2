//! Messages to the program's user, on standard error.
//!
//! Descriptor 2 is standard error only by convention. A daemon closes it, and the next file that it opens is
//! number 2: a message would be written into the program's data. So a message is written only if descriptor 2
//! is what it was when the process began, or a log: a file that is open for appending only. Otherwise it is
//! lost.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::{raw, sandbox};

/// Device and number of what was descriptor 2 at the start; 0, 0: not known.
static DEVICE: AtomicU64 = AtomicU64::new(0);
static NUMBER: AtomicU64 = AtomicU64::new(0);
/// No device: descriptor 2 was closed at the start.
const CLOSED: u64 = u64::MAX;

/// Notes what standard error is, before the program can change it.
pub(crate) fn notes_stderr() {
    let (device, number) = raw::identity(libc::STDERR_FILENO).unwrap_or((CLOSED, CLOSED));
    DEVICE.store(device, Relaxed);
    NUMBER.store(number, Relaxed);
}

/// Writes `text` to standard error, if descriptor 2 still is standard error.
#[cold]
#[inline(never)]
pub fn write_message(text: &[u8]) {
    // A filter may kill the process for checking.
    if sandbox::is_confined() || is_stderr() {
        raw::write(libc::STDERR_FILENO, text);
    }
}

fn is_stderr() -> bool {
    let first = (DEVICE.load(Relaxed), NUMBER.load(Relaxed));
    let Some(now) = raw::identity(libc::STDERR_FILENO) else { return false };
    first == (0, 0) || first == now || raw::is_log(libc::STDERR_FILENO)
}
