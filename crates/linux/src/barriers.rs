//! Few barriers beside waits: a lock's mark that ends comes back by a process-wide barrier, so a mark ends
//! only if a hundred waits have passed since the last barrier. Until then it stays, and the releases of that
//! lock are compare-exchanges.
//!
//! A mark that stays counts as a wait, once in `Tuning::quiet_releases`: a lock that has no waiters any more
//! is not marked for ever.

use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

const WAITS: u8 = 100;

/// How many waits are to come before a mark may end. Threads race for it: it need not be exact.
static MISSING: AtomicU8 = AtomicU8::new(0);

/// A barrier is made.
pub(crate) fn count() {
    MISSING.store(WAITS, Relaxed);
}

/// A thread is about to wait, or a mark to end: whether it may.
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
