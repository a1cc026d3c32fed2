//! Timer slack: by how much the kernel may delay a thread's timers.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The kernel may delay a timer by the thread's slack, which is 50 us unless the program
/// (`PR_SET_TIMERSLACK`) or its service manager (systemd's `TimerSlackNSec=`) has set it. Five times that: a
/// small change of the slack does not count as coarse timers.
const COARSE_NS: u64 = 250_000;

/// Whether some thread of this process has, or may have, coarse timers. Threads inherit it.
static ARE_COARSE: AtomicBool = AtomicBool::new(false);

/// Notes that a thread of this process has timers that the kernel may delay by `slack` ns; whether they are
/// coarse.
#[inline(never)] // for the drop-in's size
pub fn note(slack: u64) -> bool {
    let are_coarse = slack > COARSE_NS;
    if are_coarse {
        ARE_COARSE.store(true, Relaxed);
    }
    are_coarse
}

/// Whether that is so, as far as is known.
pub(crate) fn are_coarse() -> bool {
    ARE_COARSE.load(Relaxed)
}
