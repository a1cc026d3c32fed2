//! The queue lock of `spinpark_locks` (its wait queue's three-state futex lock), alone.

use spinpark_platform::{AtomicU32 as _, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, Platform};

const LOCKED: u32 = 1;
const QUEUED: u32 = 2;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Nothing.
    None,
    /// A thread that has slept locks with the uncontended value: other sleepers are forgotten.
    RelocksUncontended,
    /// A sleeper does not tell the holder that it sleeps.
    SleepsUnmarked,
    /// The unlock wakes first, and unlocks then.
    WakesBeforeUnlock,
    /// A thread that gives up after it has slept keeps a wake-up to itself.
    KeepsWakeUp,
}

/// The lock.
pub struct QueueLock<P: Platform> {
    state: P::AtomicU32,
    error: Error,
}

impl<P: Platform> QueueLock<P> {
    /// Unlocked.
    pub fn new(error: Error) -> Self {
        Self { state: P::AtomicU32::new(0), error }
    }

    /// As `WaitQueue::lock`.
    pub fn lock(&self) {
        self.lock_within(u32::MAX);
    }

    /// As `WaitQueue::lock_within`, for this many sleeps; whether it is locked.
    pub fn lock_within(&self, sleeps: u32) -> bool {
        let mut mine = LOCKED;
        let mut left = sleeps;
        let mut seen = self.state.load(Relaxed);
        loop {
            if seen & LOCKED == 0 {
                match self.state.compare_exchange_weak(seen, mine, Acquire, Relaxed) {
                    Ok(_) => return true,
                    Err(now) => seen = now,
                }
            } else if left == 0 {
                let with_sleepers =
                    if self.error == Error::KeepsWakeUp { seen } else { mine & QUEUED | seen };
                match self.state.compare_exchange(seen, with_sleepers, Relaxed, Relaxed) {
                    Ok(_) => return false,
                    Err(now) => seen = now,
                }
            } else {
                left -= 1;
                seen = self.sleep(seen);
                if self.error != Error::RelocksUncontended {
                    mine = LOCKED | QUEUED;
                }
            }
        }
    }

    fn sleep(&self, seen: u32) -> u32 {
        let with_sleepers = if self.error == Error::SleepsUnmarked { seen } else { seen | QUEUED };
        if seen == with_sleepers || self.state.compare_exchange(seen, with_sleepers, Relaxed, Relaxed).is_ok()
        {
            P::futex_wait(&self.state, with_sleepers, None);
        }
        self.state.load(Relaxed)
    }

    /// As `QueueGuard::unlock`.
    pub fn unlock(&self) {
        let key: *const P::AtomicU32 = &self.state;
        if self.error == Error::WakesBeforeUnlock {
            if self.state.load(Relaxed) & QUEUED != 0 {
                P::futex_wake(key, 1);
            }
            self.free();
        } else if self.free() & QUEUED != 0 {
            P::futex_wake(key, 1);
        }
    }

    fn free(&self) -> u32 {
        let mut seen = LOCKED;
        while let Err(now) = self.state.compare_exchange(seen, 0, Release, Relaxed) {
            seen = now;
        }
        seen
    }
}
