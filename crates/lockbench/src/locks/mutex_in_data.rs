//! A mutex among the data that it protects.

use std::cell::UnsafeCell;
use std::hint::black_box;

use super::primitives::BenchMutex;

/// A counter, a mutex and a counter in that order, each right behind the one before, from the start of a
/// cache line (of two, since CPUs fetch lines in pairs). So the mutex' own size and alignment say what is on
/// the line of its word.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub(crate) struct MutexInData<M> {
    before: UnsafeCell<u64>,
    lock: M,
    behind: UnsafeCell<u64>,
}

// SAFETY: the counters are touched in `with` and through ownership only, in `with` under a guard, of which
// there is one at a time, as `BenchMutex` promises.
unsafe impl<M: BenchMutex> Sync for MutexInData<M> {}

impl<M: BenchMutex> MutexInData<M> {
    /// Counts on one side, calls `inside`, and counts on the other, while the lock is held. `acquired` is
    /// called first.
    #[inline]
    pub(crate) fn with(&self, acquired: impl FnOnce(), inside: impl FnOnce()) {
        let _guard = self.lock.lock();
        acquired();
        // SAFETY: the guard excludes others; there is no other reference.
        *black_box(unsafe { &mut *self.before.get() }) += 1;
        inside();
        // SAFETY: as above.
        *black_box(unsafe { &mut *self.behind.get() }) += 1;
    }

    /// The counters, when all threads are done.
    pub(crate) fn into_inner(self) -> [u64; 2] {
        [self.before, self.behind].map(UnsafeCell::into_inner)
    }
}

/// How a [`MutexInData`] lies in memory.
#[cfg(test)]
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Size and alignment of the mutex, bytes.
    pub(crate) mutex: (usize, usize),
    /// The cache lines of the counter before it, of its first byte, of the counter behind it.
    pub(crate) lines: [usize; 3],
}

#[cfg(test)]
impl<M> MutexInData<M> {
    pub(crate) const LAYOUT: Layout = {
        const LINE: usize = 64;
        let line = [
            std::mem::offset_of!(Self, before),
            std::mem::offset_of!(Self, lock),
            std::mem::offset_of!(Self, behind),
        ];
        Layout {
            mutex: (size_of::<M>(), align_of::<M>()),
            lines: [line[0] / LINE, line[1] / LINE, line[2] / LINE],
        }
    };
}
