//! A lock of the recorder's own, for what happens once per lock or library. Nobody waits long for it: who cannot have it
//! soon does without what he wanted to do, and counts that.
//!
//! It may be held by a thread that does not run: because one of a higher priority waits for it, which therefore sleeps and
//! does not spin; because its thread left it by `siglongjmp`, or is not there in a forked child. A signal handler cannot find
//! it taken by the thread that it interrupts: the recorder does nothing in a handler that interrupts it.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use spinpark_linux::nap;

/// Tries before the first nap.
const SPINS: u32 = 100;
/// Naps, and how long each is, ns: some milliseconds in all.
const NAPS: u32 = 50;
const NAP: u64 = 50_000;

/// All zero is a free one.
#[repr(C)]
pub(crate) struct Spin {
    is_held: AtomicU32,
    /// Somebody gave up waiting, and nobody has had it since: it is not worth another wait.
    is_lost: AtomicU32,
}

impl Spin {
    /// Does something with the lock held; `None` if it cannot be had soon.
    pub(crate) fn with<R>(&self, body: impl FnOnce() -> R) -> Option<R> {
        if !self.try_it() && !self.wait() {
            self.is_lost.store(1, Relaxed);
            return None;
        }
        let result = body();
        self.is_held.store(0, Release);
        Some(result)
    }

    /// As [`Spin::with`], without a wait.
    pub(crate) fn try_with<R>(&self, body: impl FnOnce() -> R) -> Option<R> {
        if !self.try_it() {
            return None;
        }
        let result = body();
        self.is_held.store(0, Release);
        Some(result)
    }

    fn try_it(&self) -> bool {
        let is_had = self.is_held.compare_exchange(0, 1, Acquire, Relaxed).is_ok();
        if is_had && self.is_lost.load(Relaxed) != 0 {
            self.is_lost.store(0, Relaxed);
        }
        is_had
    }

    #[cold]
    #[inline(never)]
    fn wait(&self) -> bool {
        if self.is_lost.load(Relaxed) != 0 {
            return false;
        }
        let spun = (0..SPINS).any(|_| {
            core::hint::spin_loop();
            self.try_it()
        });
        spun || (0..NAPS).any(|_| {
            nap(NAP);
            self.try_it()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_never_let_go_is_given_up() {
        let lock = Spin { is_held: AtomicU32::new(1), is_lost: AtomicU32::new(0) };
        assert_eq!(lock.with(|| ()), None);
        assert_eq!(lock.with(|| ()), None);
        lock.is_held.store(0, Relaxed);
        assert_eq!(lock.with(|| 1), Some(1));
        assert_eq!((lock.is_held.load(Relaxed), lock.is_lost.load(Relaxed)), (0, 0));
    }
}
