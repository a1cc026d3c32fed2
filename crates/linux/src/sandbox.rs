//! Programs that confine themselves: after [`before_filter`] locks make no system call but `futex`.
//!
//! A seccomp filter that kills cannot be asked what it allows. Most are announced, though: a process without privileges must call
//! `prctl(PR_SET_NO_NEW_PRIVS)` first, which the drop-in intercepts. From then on the locks do without what only makes them
//! faster: restartable sequences (which need `membarrier`), questions to the scheduler, yielding.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::single::is_single_threaded;

static CONFINED: AtomicBool = AtomicBool::new(false);

/// Another thread that has looked just before is through with its call by then, unless it was preempted.
const SETTLE_NS: u64 = 1_000_000;

/// Whether only `futex` may be called.
#[inline(always)]
pub(crate) fn is_confined() -> bool {
    CONFINED.load(Relaxed)
}

/// From now on a filter may kill the process for any system call that locks need not make. For good.
///
/// Also for a program that links the locks, and installs a filter without this: call it before.
#[cold]
pub fn before_filter() {
    if CONFINED.swap(true, Relaxed) || !crate::STARTED.load(Relaxed) {
        return;
    }
    crate::rseq::stop();
    if !is_single_threaded() {
        crate::nap(SETTLE_NS);
    }
}
