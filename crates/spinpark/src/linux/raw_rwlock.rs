//! [`RawRwLockWith`]: the read-write lock as `lock_api` wants it.

use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use spinpark_linux::Linux;
use spinpark_locks::{self as locks, LockCore, ReaderBias};

use crate::linux::deadline;
use crate::linux::slow;
use crate::linux::slow_rwlock::{self as contended, Mode, READERS};
use crate::policy::{Learned, Policy};

/// The read-write lock without data: what [`RwLock`](crate::RwLock) and its guards are built on.
pub type RawRwLock = RawRwLockWith<Learned>;

/// The read-write lock without data, with a policy: what [`RwLockWith`](crate::policy::RwLockWith) is built on.
#[repr(transparent)]
pub struct RawRwLockWith<P: Policy>(pub(crate) locks::RawRwLock<Linux, P::Locks>);

// SAFETY: a writer is alone, and readers exclude writers (`spinpark-locks`' contract).
unsafe impl<P: Policy> lock_api::RawRwLock for RawRwLockWith<P> {
    #[allow(clippy::declare_interior_mutable_const)] // lock_api's constructor
    const INIT: Self = Self(locks::RawRwLock::from_parts(
        LockCore::with_policy(crate::linux::empty_queue()),
        ReaderBias::from_parts(AtomicU32::new(P::BIAS), AtomicU32::new(0)),
    ));

    // A read lock is remembered by its thread, which must be the one that releases it.
    type GuardMarker = lock_api::GuardNoSend;

    #[inline]
    fn lock_shared(&self) {
        if !self.0.try_read_simply(READERS) {
            contended::acquire(&self.0, Mode::Read, None);
        }
    }

    #[inline]
    fn try_lock_shared(&self) -> bool {
        use spinpark_locks::TryRwLock;
        self.0.try_read(READERS)
    }

    #[inline]
    unsafe fn unlock_shared(&self) {
        if !self.0.unlock_read_uncontended() {
            // SAFETY: for a read-write lock.
            unsafe { slow::slow(&self.0, None, contended::unlock_read::<P::Locks>) };
        }
    }

    #[inline]
    fn lock_exclusive(&self) {
        if !self.0.try_write_uncontended() {
            contended::acquire(&self.0, Mode::Write, None);
        }
    }

    #[inline]
    fn try_lock_exclusive(&self) -> bool {
        use spinpark_locks::TryRwLock;
        self.0.try_write()
    }

    #[inline]
    unsafe fn unlock_exclusive(&self) {
        if !self.0.unlock_write_uncontended() {
            // SAFETY: for a read-write lock.
            unsafe { slow::slow(&self.0, None, contended::unlock_write::<P::Locks>) };
        }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }

    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        self.0.is_write_locked()
    }
}

// SAFETY: these release as their namesakes do, to a chosen waiter.
unsafe impl<P: Policy> lock_api::RawRwLockFair for RawRwLockWith<P> {
    unsafe fn unlock_shared_fair(&self) {
        if slow::watcher().is_none() {
            self.0.unlock_read_fair();
        } else {
            // SAFETY: for a read-write lock.
            unsafe { slow::slow(&self.0, None, contended::unlock_read_fair::<P::Locks>) };
        }
    }

    unsafe fn unlock_exclusive_fair(&self) {
        if slow::watcher().is_none() {
            self.0.unlock_write_fair();
        } else {
            // SAFETY: for a read-write lock.
            unsafe { slow::slow(&self.0, None, contended::unlock_write_fair::<P::Locks>) };
        }
    }
}

// SAFETY: on `true` the lock is held as after the untimed form.
unsafe impl<P: Policy> lock_api::RawRwLockTimed for RawRwLockWith<P> {
    type Duration = Duration;
    type Instant = Instant;

    fn try_lock_shared_for(&self, timeout: Duration) -> bool {
        self.0.try_read_simply(READERS)
            || contended::acquire(&self.0, Mode::Read, Some(deadline::after(timeout)))
    }

    fn try_lock_shared_until(&self, instant: Instant) -> bool {
        self.0.try_read_simply(READERS)
            || contended::acquire(&self.0, Mode::Read, Some(deadline::at(instant)))
    }

    fn try_lock_exclusive_for(&self, timeout: Duration) -> bool {
        self.0.try_write_uncontended()
            || contended::acquire(&self.0, Mode::Write, Some(deadline::after(timeout)))
    }

    fn try_lock_exclusive_until(&self, instant: Instant) -> bool {
        self.0.try_write_uncontended()
            || contended::acquire(&self.0, Mode::Write, Some(deadline::at(instant)))
    }
}

// SAFETY: a recursive reader is a reader.
unsafe impl<P: Policy> lock_api::RawRwLockRecursive for RawRwLockWith<P> {
    fn lock_shared_recursive(&self) {
        if !self.0.read_recursive_at_once() {
            contended::acquire(&self.0, Mode::ReadAgain, None);
        }
    }

    fn try_lock_shared_recursive(&self) -> bool {
        use spinpark_locks::TryRwLock;
        self.0.try_read_recursive()
    }
}

// SAFETY: a recursive reader is a reader.
unsafe impl<P: Policy> lock_api::RawRwLockRecursiveTimed for RawRwLockWith<P> {
    fn try_lock_shared_recursive_for(&self, timeout: Duration) -> bool {
        self.0.read_recursive_at_once()
            || contended::acquire(&self.0, Mode::ReadAgain, Some(deadline::after(timeout)))
    }

    fn try_lock_shared_recursive_until(&self, instant: Instant) -> bool {
        self.0.read_recursive_at_once()
            || contended::acquire(&self.0, Mode::ReadAgain, Some(deadline::at(instant)))
    }
}

// SAFETY: the write lock turns into a read lock without being free in between.
unsafe impl<P: Policy> lock_api::RawRwLockDowngrade for RawRwLockWith<P> {
    unsafe fn downgrade(&self) {
        if slow::watcher().is_none() {
            self.0.downgrade();
        } else {
            // SAFETY: for a read-write lock.
            unsafe { slow::slow(&self.0, None, contended::downgrade::<P::Locks>) };
        }
    }
}

// SAFETY: one upgradable holder at a time, which excludes writers, and becomes one only without readers.
unsafe impl<P: Policy> lock_api::RawRwLockUpgrade for RawRwLockWith<P> {
    fn lock_upgradable(&self) {
        if !self.0.upgradable_at_once() {
            contended::acquire(&self.0, Mode::Upgradable, None);
        }
    }

    fn try_lock_upgradable(&self) -> bool {
        use spinpark_locks::TryRwLock;
        self.0.try_upgradable()
    }

    unsafe fn unlock_upgradable(&self) {
        self.0.unlock_upgradable();
    }

    unsafe fn upgrade(&self) {
        contended::upgrade(&self.0, None);
    }

    unsafe fn try_upgrade(&self) -> bool {
        use spinpark_locks::TryRwLock;
        self.0.try_upgrade()
    }
}

// SAFETY: releases as `unlock_upgradable` does.
unsafe impl<P: Policy> lock_api::RawRwLockUpgradeFair for RawRwLockWith<P> {
    unsafe fn unlock_upgradable_fair(&self) {
        self.0.unlock_upgradable_fair();
    }
}

// SAFETY: the lock is not free in between.
unsafe impl<P: Policy> lock_api::RawRwLockUpgradeDowngrade for RawRwLockWith<P> {
    unsafe fn downgrade_upgradable(&self) {
        self.0.downgrade_upgradable();
    }

    unsafe fn downgrade_to_upgradable(&self) {
        if slow::watcher().is_none() {
            self.0.downgrade_to_upgradable();
        } else {
            // SAFETY: for a read-write lock.
            unsafe { slow::slow(&self.0, None, contended::downgrade_to_upgradable::<P::Locks>) };
        }
    }
}

// SAFETY: on `true` the lock is held as after the untimed form; on `false` as before.
unsafe impl<P: Policy> lock_api::RawRwLockUpgradeTimed for RawRwLockWith<P> {
    fn try_lock_upgradable_for(&self, timeout: Duration) -> bool {
        self.0.upgradable_at_once()
            || contended::acquire(&self.0, Mode::Upgradable, Some(deadline::after(timeout)))
    }

    fn try_lock_upgradable_until(&self, instant: Instant) -> bool {
        self.0.upgradable_at_once()
            || contended::acquire(&self.0, Mode::Upgradable, Some(deadline::at(instant)))
    }

    unsafe fn try_upgrade_for(&self, timeout: Duration) -> bool {
        contended::upgrade(&self.0, Some(deadline::after(timeout)))
    }

    unsafe fn try_upgrade_until(&self, instant: Instant) -> bool {
        contended::upgrade(&self.0, Some(deadline::at(instant)))
    }
}
