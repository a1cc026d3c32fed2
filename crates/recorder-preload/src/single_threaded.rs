//! Whether the process has one thread: glibc tells by a byte.

use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use spinpark_linux::{Scope, lookup};

/// glibc's `__libc_single_threaded` (2.32), or a byte that is always 0.
static SINGLE: AtomicPtr<u8> = AtomicPtr::new((&raw const NEVER).cast_mut());
static NEVER: u8 = 0;

/// Finds that byte.
pub(crate) fn start() {
    let single = lookup(Scope::All, c"__libc_single_threaded");
    if !single.is_null() {
        SINGLE.store(single.cast(), Relaxed);
    }
}

/// Whether the process has one thread: no thread can wait for another.
#[inline(always)]
pub(crate) fn is_alone() -> bool {
    // SAFETY: points to a byte of this library or of libc, neither of which is unloaded while it runs.
    unsafe { SINGLE.load(Relaxed).read_volatile() != 0 }
}
