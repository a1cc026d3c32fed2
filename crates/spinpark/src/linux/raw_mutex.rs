//! [`RawMutexWith`]: the mutex as `lock_api` wants it.

use std::time::{Duration, Instant};

use spinpark_linux::Linux;
use spinpark_locks::{self as locks, LockCore};
use spinpark_platform::{Deadline, Threads};
use spinpark_recorder::format::{Kind, Role};
use spinpark_recorder::{LockCall, Site};

use crate::linux::deadline;
use crate::linux::slow::{self, Acquisition};
use crate::policy::{Learned, Policy};

/// The mutex without data: what [`Mutex`](crate::Mutex) and its guards are built on.
pub type RawMutex = RawMutexWith<Learned>;

/// The mutex without data, with a policy: what [`MutexWith`](crate::policy::MutexWith) is built on.
#[repr(transparent)]
pub struct RawMutexWith<P: Policy>(pub(crate) locks::RawMutex<Linux, P::Locks>);

// SAFETY: `lock` and `try_lock` give one thread at a time the lock (mutual exclusion is `spinpark-locks`'
// contract).
unsafe impl<P: Policy> lock_api::RawMutex for RawMutexWith<P> {
    #[allow(clippy::declare_interior_mutable_const)] // lock_api's constructor
    const INIT: Self = Self(locks::RawMutex::from_core(LockCore::with_policy(crate::linux::empty_queue())));

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
            unsafe { slow::slow(self, None, unlock_contended::<P>) };
        }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}

// SAFETY: `unlock_fair` releases as `unlock` does, to a chosen waiter.
unsafe impl<P: Policy> lock_api::RawMutexFair for RawMutexWith<P> {
    #[inline]
    unsafe fn unlock_fair(&self) {
        if slow::watcher().is_none() {
            self.0.unlock_fair();
        } else {
            // SAFETY: for a mutex.
            unsafe { slow::slow(self, None, unlock_fair::<P>) };
        }
    }
}

// SAFETY: on `true` the lock is held as after `lock`.
unsafe impl<P: Policy> lock_api::RawMutexTimed for RawMutexWith<P> {
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

impl<P: Policy> RawMutexWith<P> {
    /// The rest of an acquisition that did not succeed at once.
    #[inline(always)]
    fn lock_contended(&self, deadline: Option<&Deadline>) -> bool {
        // SAFETY: for a mutex.
        unsafe { slow::slow(self, deadline, lock_contended::<P>) }
    }
}

/// What a mutex is called for.
pub(crate) fn call<P: Policy>(mutex: &RawMutexWith<P>, site: Site) -> LockCall {
    let address: *const RawMutexWith<P> = mutex;
    LockCall { address: address as usize, role: Role::Write, kind: |_| Kind::Mutex, site }
}

struct Lock<'a, P: Policy> {
    mutex: &'a locks::RawMutex<Linux, P::Locks>,
    deadline: Option<Deadline>,
}

impl<P: Policy> Acquisition for Lock<'_, P> {
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

unsafe extern "C" fn lock_contended<P: Policy>(mutex: *const (), deadline: *const (), site: Site) -> bool {
    // SAFETY: the caller's mutex.
    let mutex = unsafe { &*mutex.cast::<RawMutexWith<P>>() };
    // SAFETY: the caller's deadline, or null.
    let deadline = unsafe { slow::deadline(deadline) };
    let lock = Lock::<'_, P> { mutex: &mutex.0, deadline };
    match slow::watcher() {
        None => lock.block(),
        Some(watcher) => (watcher.acquire)(&call(mutex, site), &lock),
    }
}

unsafe extern "C" fn unlock_contended<P: Policy>(mutex: *const (), _: *const (), site: Site) -> bool {
    // SAFETY: the caller's mutex, until it is released.
    let mutex = unsafe { &*mutex.cast::<RawMutexWith<P>>() };
    match slow::watcher() {
        None => mutex.0.unlock_contended(),
        Some(watcher) => (watcher.release)(&call(mutex, site), &|| mutex.0.unlock_contended()),
    }
    true
}

unsafe extern "C" fn unlock_fair<P: Policy>(mutex: *const (), _: *const (), site: Site) -> bool {
    // SAFETY: the caller's mutex, until it is released.
    let mutex = unsafe { &*mutex.cast::<RawMutexWith<P>>() };
    match slow::watcher() {
        None => mutex.0.unlock_fair(),
        Some(watcher) => (watcher.release)(&call(mutex, site), &|| mutex.0.unlock_fair()),
    }
    true
}
