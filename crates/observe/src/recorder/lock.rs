//! A lock of the recorder's own, for what happens once per lock or library: a spin lock that gives up its CPU.
//!
//! A signal handler cannot find it taken by the thread that it interrupts: the recorder does nothing in a handler that
//! interrupts it. A forked child gets memory of its own.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use spinpark_linux::raw;

/// All zero is a free one.
#[repr(transparent)]
pub(crate) struct Spin(AtomicU32);

impl Spin {
    #[cfg(test)]
    pub(crate) const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    pub(crate) fn with<R>(&self, body: impl FnOnce() -> R) -> R {
        while self.0.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
            raw::yield_now();
        }
        let result = body();
        self.0.store(0, Release);
        result
    }
}
