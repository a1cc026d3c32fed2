//! [`FairMutex`] and its guards.

use std::time::{Duration, Instant};

use crate::linux::RawMutex;

/// The mutex without data whose releases are all fair.
pub struct RawFairMutex(RawMutex);

// SAFETY: it is the inner mutex; `unlock` is that one's fair release.
unsafe impl lock_api::RawMutex for RawFairMutex {
    #[allow(clippy::declare_interior_mutable_const)] // lock_api's constructor
    const INIT: Self = Self(<RawMutex as lock_api::RawMutex>::INIT);

    type GuardMarker = <RawMutex as lock_api::RawMutex>::GuardMarker;

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
        // SAFETY: the caller holds it.
        unsafe { lock_api::RawMutexFair::unlock_fair(&self.0) };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}

// SAFETY: as `unlock`.
unsafe impl lock_api::RawMutexFair for RawFairMutex {
    #[inline]
    unsafe fn unlock_fair(&self) {
        // SAFETY: the caller holds it.
        unsafe { lock_api::RawMutexFair::unlock_fair(&self.0) };
    }
}

// SAFETY: it is the inner mutex.
unsafe impl lock_api::RawMutexTimed for RawFairMutex {
    type Duration = Duration;
    type Instant = Instant;

    #[inline]
    fn try_lock_for(&self, timeout: Duration) -> bool {
        lock_api::RawMutexTimed::try_lock_for(&self.0, timeout)
    }

    #[inline]
    fn try_lock_until(&self, instant: Instant) -> bool {
        lock_api::RawMutexTimed::try_lock_until(&self.0, instant)
    }
}

/// A [`Mutex`](crate::Mutex) that each release hands to its oldest waiter, if there is one.
///
/// A contended `FairMutex` is slower by far: each hand-off waits until a thread has woken up. In all else it is a
/// [`Mutex`](crate::Mutex).
pub type FairMutex<T> = lock_api::Mutex<RawFairMutex, T>;

/// Access to the data of a [`FairMutex`]; releases it when dropped.
pub type FairMutexGuard<'a, T> = lock_api::MutexGuard<'a, RawFairMutex, T>;

/// Access to a part of the data of a [`FairMutex`].
pub type MappedFairMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawFairMutex, T>;

/// A fair mutex around `value`, in a constant.
pub const fn const_fair_mutex<T>(value: T) -> FairMutex<T> {
    FairMutex::const_new(<RawFairMutex as lock_api::RawMutex>::INIT, value)
}
