//! Whether the process is single-threaded: then no step of another thread has to be ended.
//!
//! glibc knows: it counts threads (`__nptl_nthreads`, exported for debuggers since 2.34, also down, and 1
//! again after a fork), and says whether there ever was a second one (`__libc_single_threaded`, 2.32). Both
//! change before a new thread runs, and after a thread that ends has run its destructors. In a child without
//! fork handlers the count is the parent's: not single-threaded is always a safe answer.
//!
//! Older ones mark each thread of a process with several (`multiple_threads` of the thread's control block,
//! read by every cancellation point). They mark the creating thread only after the new one has begun, so this
//! answer ([`is_alone`]) is for questions that only cost a call; and they have no restartable sequences, for
//! which [`is_single_threaded`] is asked.

use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU8, Ordering::Acquire, Ordering::Relaxed};

use crate::symbol::{lookup, Scope};

static COUNT: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());
static SINGLE: AtomicPtr<AtomicU8> = AtomicPtr::new(ptr::null_mut());
/// glibc before 2.32.
static IS_OLD: AtomicBool = AtomicBool::new(false);

/// Finds both. The count is private to glibc: it is used only if it agrees with the public word.
pub(crate) fn start() {
    let single: *mut AtomicU8 = lookup(Scope::All, c"__libc_single_threaded").cast();
    SINGLE.store(single, Relaxed);
    let is_old = single.is_null() && !lookup(Scope::All, c"gnu_get_libc_version").is_null();
    IS_OLD.store(is_old, Relaxed);
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

/// Whether the calling thread most likely is the only one: then it need not ask about others.
#[cold]
#[inline(never)]
pub(crate) fn is_alone() -> bool {
    is_single_threaded() || IS_OLD.load(Relaxed) && !is_marked_as_one_of_several()
}

/// `multiple_threads` of the calling thread's control block, in a glibc before 2.32.
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
fn is_marked_as_one_of_several() -> bool {
    let multiple_threads: u32;
    // SAFETY: every thread has such a block (`tcbhead_t`) at its FS base; the field follows three pointers.
    unsafe {
        core::arch::asm!("mov {:e}, dword ptr fs:[0x18]", out(reg) multiple_threads,
                         options(readonly, nostack, preserves_flags));
    }
    multiple_threads != 0
}

/// Other architectures have it elsewhere.
#[cfg(not(all(target_arch = "x86_64", target_env = "gnu")))]
const fn is_marked_as_one_of_several() -> bool {
    true
}
