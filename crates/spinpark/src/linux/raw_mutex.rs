//! [`RawMutex`]: the mutex as `lock_api` wants it.

use std::time::{Duration, Instant};

use spinpark_linux::Linux;
use spinpark_locks::{self as locks, LockCore};
use spinpark_platform::{Deadline, Threads};
use spinpark_recorder::format::{Kind, Role};
use spinpark_recorder::{LockCall, Site};

use crate::linux::deadline;
use crate::linux::slow::{self, Acquisition};

/// The mutex without data: what [`Mutex`](crate::Mutex) and its guards are built on.
pub struct RawMutex(pub(crate) locks::RawMutex<Linux>);

// SAFETY: `lock` and `try_lock` give one thread at a time the lock (mutual exclusion is `spinpark-locks`'
// contract).
unsafe impl lock_api::RawMutex for RawMutex {
    #[allow(clippy::declare_interior_mutable_const)] // lock_api's constructor
    const INIT: Self = Self(locks::RawMutex::from_core(LockCore::from_queue(crate::linux::empty_queue())));

    // The thread that holds the mutex releases it: a notification by its holder relies on that (fast_path.A1 in
    // `spinpark-locks`).
    type GuardMarker = lock_api::GuardNoSend;

    #[inline]
    fn lock(&self) {
        if !self.0.try_lock_uncontended(Linux::thread_token()) {
            self.lock_contended(None);
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        use spinpark_locks::TryMutex;
        self.0.try_lock()
    }

    #[inline]
    unsafe fn unlock(&self) {
        if !self.0.unlock_uncontended() {
            // SAFETY: for a mutex.
            unsafe { slow::slow(self, None, unlock_contended) };
        }
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
        if slow::watcher().is_none() {
            self.0.unlock_fair();
        } else {
            // SAFETY: for a mutex.
            unsafe { slow::slow(self, None, unlock_fair) };
        }
    }
}

// SAFETY: on `true` the lock is held as after `lock`.
unsafe impl lock_api::RawMutexTimed for RawMutex {
    type Duration = Duration;
    type Instant = Instant;

    #[inline]
    fn try_lock_for(&self, timeout: Duration) -> bool {
        self.0.try_lock_uncontended(Linux::thread_token())
            || self.lock_contended(Some(&deadline::after(timeout)))
    }

    #[inline]
    fn try_lock_until(&self, instant: Instant) -> bool {
        self.0.try_lock_uncontended(Linux::thread_token())
            || self.lock_contended(Some(&deadline::at(instant)))
    }
}

impl RawMutex {
    /// The rest of an acquisition that did not succeed at once.
    #[inline(always)]
    fn lock_contended(&self, deadline: Option<&Deadline>) -> bool {
        // SAFETY: for a mutex.
        unsafe { slow::slow(self, deadline, lock_contended) }
    }
}

/// What a mutex is called for.
pub(crate) fn call(mutex: &RawMutex, site: Site) -> LockCall {
    let address: *const RawMutex = mutex;
    LockCall { address: address as usize, role: Role::Write, kind: |_| Kind::Mutex, site }
}

struct Lock<'a> {
    mutex: &'a locks::RawMutex<Linux>,
    deadline: Option<Deadline>,
}

impl Acquisition for Lock<'_> {
    fn at_once(&self) -> bool {
        self.mutex.try_lock_as(Linux::thread_token())
    }

    fn block(&self) -> bool {
        self.mutex.lock_contended_until(self.deadline)
    }

    fn owner(&self) -> u32 {
        self.mutex.owner()
    }

    fn is_timed(&self) -> bool {
        self.deadline.is_some()
    }

    fn force_slow_release(&self) -> bool {
        self.mutex.force_slow_release();
        true
    }
}

unsafe extern "C" fn lock_contended(mutex: *const (), deadline: *const (), site: Site) -> bool {
    // SAFETY: the caller's mutex.
    let mutex = unsafe { &*mutex.cast::<RawMutex>() };
    // SAFETY: the caller's deadline, or null.
    let deadline = unsafe { slow::deadline(deadline) };
    let lock = Lock { mutex: &mutex.0, deadline };
    match slow::watcher() {
        None => lock.block(),
        Some(watcher) => (watcher.acquire)(&call(mutex, site), &lock),
    }
}

unsafe extern "C" fn unlock_contended(mutex: *const (), _: *const (), site: Site) -> bool {
    // SAFETY: the caller's mutex, until it is released.
    let mutex = unsafe { &*mutex.cast::<RawMutex>() };
    match slow::watcher() {
        None => mutex.0.unlock_contended(),
        Some(watcher) => (watcher.release)(&call(mutex, site), &|| mutex.0.unlock_contended()),
    }
    true
}

unsafe extern "C" fn unlock_fair(mutex: *const (), _: *const (), site: Site) -> bool {
    // SAFETY: the caller's mutex, until it is released.
    let mutex = unsafe { &*mutex.cast::<RawMutex>() };
    match slow::watcher() {
        None => mutex.0.unlock_fair(),
        Some(watcher) => (watcher.release)(&call(mutex, site), &|| mutex.0.unlock_fair()),
    }
    true
}
