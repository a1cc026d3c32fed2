//! pthread locks, called as a C program calls them: whose algorithm runs is decided by the process'
//! environment.

use super::{Adapter, Origin, UseCondvar};
use spinpark_demo::pthread_calls::{self as pthread, Kind};

/// Those of the default kinds, and the other mutexes.
pub(super) struct Locks;

impl Origin for Locks {
    const ADAPTER: Adapter = Adapter {
        recursive: Some(crate::locks::workloads::mutex::<Recursive>),
        error_check: Some(crate::locks::workloads::mutex::<ErrorCheck>),
        writers_first: Some(crate::locks::workloads::rwlock::<WritersFirst>),
        ..Adapter::new("pthread").mutex::<Mutex>().rwlock::<RwLock>().condvar::<Condvar>()
    };

    fn with_condvar<U: UseCondvar>(user: U) -> Option<U::Output> {
        Some(user.with::<Condvar>())
    }
}

/// Mutexes of the adaptive kind.
pub(super) struct AdaptiveLocks;

impl Origin for AdaptiveLocks {
    const ADAPTER: Adapter =
        Adapter::new("pthread-adaptive").mutex::<Adaptive>().condvar::<AdaptiveCondvar>();

    fn with_condvar<U: UseCondvar>(user: U) -> Option<U::Output> {
        Some(user.with::<AdaptiveCondvar>())
    }
}

/// Unlocks when it is dropped.
pub(super) struct MutexGuard<'a>(&'a pthread::Mutex);

impl Drop for MutexGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.unlock();
    }
}

/// Unlocks when it is dropped.
pub(super) struct RwLockGuard<'a>(&'a pthread::RwLock);

impl Drop for RwLockGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.unlock();
    }
}

/// A `pthread_mutex_t` of one of the kinds. A failing call ends the process.
macro_rules! of_kind {
    ($name:ident, $kind:expr) => {
        mutex!($name(pthread::Mutex) = pthread::Mutex::new($kind), MutexGuard<'a>, |it| {
            it.lock();
            MutexGuard(it)
        });
    };
}
of_kind!(Mutex, Kind::Normal);
of_kind!(Adaptive, Kind::Adaptive);
of_kind!(Recursive, Kind::Recursive);
of_kind!(ErrorCheck, Kind::ErrorCheck);

/// A `pthread_rwlock_t` of one of the kinds.
macro_rules! rwlock_of_kind {
    ($name:ident, $new:expr) => {
        rwlock!(
            $name(pthread::RwLock) = $new,
            RwLockGuard<'a>: |it| {
                it.read();
                RwLockGuard(it)
            },
            RwLockGuard<'a>: |it| {
                it.write();
                RwLockGuard(it)
            }
        );
    };
}
rwlock_of_kind!(RwLock, pthread::RwLock::default());
rwlock_of_kind!(WritersFirst, pthread::RwLock::preferring_writers());

/// A `pthread_cond_t`, with a mutex of one of the kinds.
macro_rules! with_kind {
    ($name:ident, $mutex:ident) => {
        condvar!(
            $name(pthread::Condvar) of $mutex,
            |it, guard| {
                it.wait(guard.0);
                guard
            },
            signal: |it| it.signal(),
            broadcast: |it| it.broadcast()
        );
    };
}
with_kind!(Condvar, Mutex);
with_kind!(AdaptiveCondvar, Adaptive);
