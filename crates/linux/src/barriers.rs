//! Few barriers compared with waits: to set a lock's contended bit again takes a process-wide barrier, so the
//! bit is cleared only if a hundred waits have passed since the last barrier. Until then it stays, and the
//! releases of that lock are compare-exchanges.
//!
//! A bit that stays counts as a wait, once in `Tuning::quiet_releases`, so that a lock without waiters loses
//! it at some time.

use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

const WAITS: u8 = 100;

/// How many waits must come before a contended bit may be cleared. Threads race for it: it need not be exact.
static MISSING: AtomicU8 = AtomicU8::new(0);

/// Counts a barrier.
pub(crate) fn count() {
    MISSING.store(WAITS, Relaxed);
}

/// A thread is about to wait, or to clear a contended bit: returns whether the bit may be cleared.
#[cold]
#[inline(never)] // for the drop-in's size
pub(crate) fn are_few() -> bool {
    let missing = MISSING.load(Relaxed);
    if missing > 0 {
        MISSING.store(missing - 1, Relaxed);
    }
    missing == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_barrier_is_followed_by_a_hundred_waits() {
        count();
        assert_eq!((0..1_000).take_while(|_| !are_few()).count(), usize::from(WAITS));
        assert!(are_few());
    }
}
