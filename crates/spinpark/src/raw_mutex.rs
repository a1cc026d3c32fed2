//! [`RawMutex`]: the mutex as `lock_api` wants it.

use std::time::{Duration, Instant};

use spinpark_linux::Linux;
use spinpark_locks::{self as locks, LockCore};

use crate::deadline;

/// The mutex without data: what [`Mutex`](crate::Mutex) and its guards are built on.
pub struct RawMutex(pub(crate) locks::RawMutex<Linux>);

// SAFETY: `lock` and `try_lock` give one thread at a time the lock (mutual exclusion is `spinpark-locks`' contract).
unsafe impl lock_api::RawMutex for RawMutex {
    #[allow(clippy::declare_interior_mutable_const)] // lock_api's constructor
    const INIT: Self = Self(locks::RawMutex::from_core(LockCore::from_queue(crate::empty_queue())));

    // Who holds the mutex releases it: a notification by its holder relies on that (A1 in `spinpark-locks`).
    type GuardMarker = lock_api::GuardNoSend;

    #[inline]
    fn lock(&self) {
        self.0.lock();
    }

    #[inline]
    fn try_lock(&self) -> bool {
        self.0.try_lock()
    }

    #[inline]
    unsafe fn unlock(&self) {
        self.0.unlock();
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}

// SAFETY: `unlock_fair` releases as `unlock` does, to a chosen waiter.
unsafe impl lock_api::RawMutexFair for RawMutex {
    #[inline]
    unsafe fn unlock_fair(&self) {
        self.0.unlock_fair();
    }
}

// SAFETY: on `true` the lock is held as after `lock`.
unsafe impl lock_api::RawMutexTimed for RawMutex {
    type Duration = Duration;
    type Instant = Instant;

    #[inline]
    fn try_lock_for(&self, timeout: Duration) -> bool {
        self.0.try_lock() || self.0.lock_until(deadline::after(timeout))
    }

    #[inline]
    fn try_lock_until(&self, instant: Instant) -> bool {
        self.0.try_lock() || self.0.lock_until(deadline::at(instant))
    }
}
