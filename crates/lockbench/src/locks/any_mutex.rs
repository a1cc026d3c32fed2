//! A mutex of whatever adapter, behind a pointer: for workloads whose sections are system calls, where an
//! indirect call of two nanoseconds is nothing.

use super::primitives::{Apart, BenchMutex};

/// A mutex that runs a section.
pub trait AnyMutex: Send + Sync {
    /// Runs `section` while no other thread runs one.
    fn with(&self, section: &mut dyn FnMut());
}

impl<M: BenchMutex> AnyMutex for Apart<M> {
    fn with(&self, section: &mut dyn FnMut()) {
        let _guard = self.0.lock();
        section();
    }
}

/// Makes a mutex.
pub type MakeMutex = fn() -> Box<dyn AnyMutex>;

/// A new mutex of the type `M`, on cache lines of its own.
#[must_use]
pub fn any_mutex<M: BenchMutex + 'static>() -> Box<dyn AnyMutex> {
    Box::new(Apart(M::default()))
}
