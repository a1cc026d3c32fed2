//! pthread locks, called as a C program calls them: whose algorithm runs is decided by the process'
//! environment.

use super::{Adapter, Origin, UseCondvar};
use crate::locks::any_mutex::any_mutex;
use crate::locks::primitives::{BenchCondvar, BenchMutex, BenchRwLock, GuardOf};
use crate::locks::workloads::{condvar, mutex, rwlock};
use crate::pthread_calls::{self as pthread, Kind};

/// Those of the default kinds, and the other mutexes.
pub(super) struct Locks;

impl Origin for Locks {
    const ADAPTER: Adapter = Adapter {
        name: "pthread",
        mutex: Some(mutex::<Mutex>),
        any_mutex: Some(any_mutex::<Mutex>),
        recursive: Some(mutex::<Recursive>),
        error_check: Some(mutex::<ErrorCheck>),
        rwlock: Some(rwlock::<RwLock>),
        condvar: Some(condvar::<Condvar>),
    };

    fn with_condvar<U: UseCondvar>(user: U) -> Option<U::Output> {
        Some(user.with::<Condvar>())
    }
}

/// Mutexes of the adaptive kind.
pub(super) struct AdaptiveLocks;

impl Origin for AdaptiveLocks {
    const ADAPTER: Adapter = Adapter {
        name: "pthread-adaptive",
        mutex: Some(mutex::<Adaptive>),
        any_mutex: Some(any_mutex::<Adaptive>),
        recursive: None,
        error_check: None,
        rwlock: None,
        condvar: Some(condvar::<AdaptiveCondvar>),
    };

    fn with_condvar<U: UseCondvar>(user: U) -> Option<U::Output> {
        Some(user.with::<AdaptiveCondvar>())
    }
}

/// A `pthread_mutex_t` of one of the kinds.
macro_rules! mutex {
    ($name:ident, $kind:expr) => {
        /// A `pthread_mutex_t`.
        #[derive(Debug)]
        pub(super) struct $name(pthread::Mutex);

        impl Default for $name {
            fn default() -> Self {
                Self(pthread::Mutex::new($kind))
            }
        }

        // SAFETY: pthread mutexes exclude; a failing call ends the process.
        unsafe impl BenchMutex for $name {
            type Guard<'a> = MutexGuard<'a>;

            #[inline]
            fn lock(&self) -> MutexGuard<'_> {
                self.0.lock();
                MutexGuard(&self.0)
            }
        }
    };
}

mutex!(Mutex, Kind::Normal);
mutex!(Adaptive, Kind::Adaptive);
mutex!(Recursive, Kind::Recursive);
mutex!(ErrorCheck, Kind::ErrorCheck);

/// Unlocks when it is dropped.
pub(super) struct MutexGuard<'a>(&'a pthread::Mutex);

impl Drop for MutexGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.unlock();
    }
}

/// A `pthread_rwlock_t` of the default kind.
#[derive(Debug, Default)]
pub(super) struct RwLock(pthread::RwLock);

/// Unlocks when it is dropped.
pub(super) struct RwLockGuard<'a>(&'a pthread::RwLock);

impl Drop for RwLockGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.unlock();
    }
}

// SAFETY: pthread rwlocks exclude; a failing call ends the process.
unsafe impl BenchRwLock for RwLock {
    type Read<'a> = RwLockGuard<'a>;
    type Write<'a> = RwLockGuard<'a>;

    #[inline]
    fn read(&self) -> RwLockGuard<'_> {
        self.0.read();
        RwLockGuard(&self.0)
    }

    #[inline]
    fn write(&self) -> RwLockGuard<'_> {
        self.0.write();
        RwLockGuard(&self.0)
    }
}

/// A `pthread_cond_t`, with a mutex of one of the kinds.
macro_rules! condvar {
    ($name:ident, $mutex:ident) => {
        /// A `pthread_cond_t`.
        #[derive(Debug, Default)]
        pub(super) struct $name(pthread::Condvar);

        impl BenchCondvar for $name {
            type Mutex = $mutex;

            #[inline]
            fn wait<'a>(&self, guard: GuardOf<'a, Self>) -> GuardOf<'a, Self> {
                self.0.wait(guard.0);
                guard
            }

            #[inline]
            fn signal(&self) {
                self.0.signal();
            }

            #[inline]
            fn broadcast(&self) {
                self.0.broadcast();
            }
        }
    };
}

condvar!(Condvar, Mutex);
condvar!(AdaptiveCondvar, Adaptive);
