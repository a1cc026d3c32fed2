//! Whether the process has one thread: then no step of another thread is to be ended.
//!
//! glibc knows: it counts threads (`__nptl_nthreads`, exported for debuggers since 2.34, also down, and 1 again after a
//! fork), and says whether there ever was a second one (`__libc_single_threaded`, 2.32). Both change before a new thread
//! runs, and after a thread that ends has run its destructors. Older ones have no restartable sequences either, which is
//! all that this is asked for. In a child without fork handlers the count is the parent's: not single-threaded is always a
//! safe answer.

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU8, Ordering::Acquire, Ordering::Relaxed};

use crate::symbol::{lookup, Scope};

static COUNT: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());
static SINGLE: AtomicPtr<AtomicU8> = AtomicPtr::new(ptr::null_mut());

/// Finds both. The count is private to glibc: it is believed only if it says the same as the public word.
pub(crate) fn start() {
    let single: *mut AtomicU8 = lookup(Scope::All, c"__libc_single_threaded").cast();
    SINGLE.store(single, Relaxed);
    let count: *mut AtomicU32 = lookup(Scope::All, c"__nptl_nthreads").cast();
    // SAFETY: null, or glibc's `unsigned int`, which is never unloaded.
    let count_now = unsafe { count.as_ref() };
    // SAFETY: null, or glibc's `char`, which is never unloaded.
    let single_now = unsafe { single.as_ref() };
    let is_one =
        |(count, single): (&AtomicU32, &AtomicU8)| count.load(Relaxed) == 1 && single.load(Relaxed) == 1;
    if count_now.zip(single_now).is_some_and(is_one) {
        COUNT.store(count, Relaxed);
    }
}

/// Whether the calling thread is the only one. What others did while they were there happens before.
#[cold]
#[inline(never)]
pub(crate) fn is_single_threaded() -> bool {
    // SAFETY: as in `start`.
    if let Some(count) = unsafe { COUNT.load(Relaxed).as_ref() } {
        return count.load(Acquire) == 1; // a thread counts itself out by a read-modify-write
    }
    // SAFETY: as in `start`.
    unsafe { SINGLE.load(Relaxed).as_ref() }.is_some_and(|single| single.load(Relaxed) == 1)
}
