//! The phase of a run: warming up, counted, over.

use std::sync::atomic::{AtomicU8, Ordering};

const WARM_UP: u8 = 0;
pub(super) const COUNTED: u8 = 1;
pub(super) const OVER: u8 = 2;

/// The current phase, on cache lines of its own: it is read all the time and written twice.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Phase {
    number: AtomicU8,
    /// Whether waits are timed.
    pub(super) timed: bool,
}

impl Phase {
    pub(super) fn new(timed: bool) -> Self {
        Self { number: AtomicU8::new(WARM_UP), timed }
    }

    /// One that has ended, for tests.
    #[cfg(test)]
    pub(super) fn over() -> Self {
        Self { number: AtomicU8::new(OVER), timed: true }
    }

    pub(super) fn set(&self, number: u8) {
        self.number.store(number, Ordering::Relaxed);
    }

    /// Whether it is time to stop.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.number.load(Ordering::Relaxed) == OVER
    }

    /// Whether what ends now counts as an operation.
    #[inline]
    pub(super) fn is_counted(&self) -> bool {
        self.number.load(Ordering::Relaxed) == COUNTED
    }

    /// Whether a wait that ends now counts: also after the end, or those of starving threads would not.
    #[inline]
    pub(super) fn is_warm(&self) -> bool {
        self.number.load(Ordering::Relaxed) != WARM_UP
    }
}
