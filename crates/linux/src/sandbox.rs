//! Programs that sandbox themselves: after [`before_filter`] locks make no system call but `futex`.
//!
//! A seccomp filter that kills cannot be asked what it allows. Most are announced, though: a process without
//! privileges must call `prctl(PR_SET_NO_NEW_PRIVS)` first, which the drop-in intercepts. From then on the
//! locks do not use what only makes them faster: restartable sequences (which need `membarrier`), questions
//! to the scheduler, yielding.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::single::is_single_threaded;

static CONFINED: AtomicBool = AtomicBool::new(false);

/// Another thread that has checked just before has ended its call by then, unless it was preempted.
const SETTLE_NS: u64 = 1_000_000;

/// Whether only `futex` may be called.
#[inline(always)]
pub(crate) fn is_confined() -> bool {
    CONFINED.load(Relaxed)
}

/// To be called before this process installs a seccomp filter that kills: from then on, locks make no system
/// call but `futex`.
///
/// This process and its children then never use what only makes locks faster (restartable sequences,
/// questions to the scheduler). In a process with threads it takes a millisecond. The drop-in calls it by
/// itself where a program announces a filter through `prctl`.
#[cold]
#[inline(never)] // for the drop-in's size
pub fn before_filter() {
    if CONFINED.swap(true, Relaxed) {
        return;
    }
    crate::slack::note(crate::raw::timer_slack());
    if !crate::STARTED.load(Relaxed) {
        return;
    }
    crate::rseq::stop();
    if !is_single_threaded() {
        crate::sleep_for(SETTLE_NS);
    }
}
