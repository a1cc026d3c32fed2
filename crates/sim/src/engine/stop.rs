//! Ending all runs of the process before their end.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Whether all runs are to end.
static STOPPED: AtomicBool = AtomicBool::new(false);

/// Ends every run of this process soon, those that are going on and those to come: for Ctrl-C.
pub fn stop() {
    STOPPED.store(true, Relaxed); // a flag by itself: a run that sees it reads nothing that was written before it
}

#[inline]
pub(crate) fn is_stopped() -> bool {
    STOPPED.load(Relaxed)
}
