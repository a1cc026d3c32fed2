//! The locks of Rust's standard library. No section panics here, so nothing is ever poisoned.

use std::sync::{Condvar as StdCondvar, LockResult, MutexGuard, RwLockReadGuard, RwLockWriteGuard};

use super::{Adapter, Origin, UseCondvar};
use crate::locks::any_mutex::any_mutex;
use crate::locks::primitives::{BenchCondvar, BenchMutex, BenchRwLock, GuardOf};
use crate::locks::workloads::{condvar, mutex, rwlock};

/// Its locks.
pub(super) struct Locks;

impl Origin for Locks {
    const ADAPTER: Adapter = Adapter {
        name: "std",
        mutex: Some(mutex::<Mutex>),
        any_mutex: Some(any_mutex::<Mutex>),
        recursive: None,
        error_check: None,
        rwlock: Some(rwlock::<RwLock>),
        condvar: Some(condvar::<Condvar>),
    };

    fn with_condvar<U: UseCondvar>(user: U) -> Option<U::Output> {
        Some(user.with::<Condvar>())
    }
}

/// `std::sync::Mutex`.
#[derive(Debug, Default)]
pub(super) struct Mutex(std::sync::Mutex<()>);

/// `std::sync::RwLock`.
#[derive(Debug, Default)]
pub(super) struct RwLock(std::sync::RwLock<()>);

/// `std::sync::Condvar`.
#[derive(Debug, Default)]
pub(super) struct Condvar(StdCondvar);

#[inline]
fn unpoisoned<G>(result: LockResult<G>) -> G {
    match result {
        Ok(guard) => guard,
        Err(_) => std::process::abort(),
    }
}

// SAFETY: std's mutexes exclude.
unsafe impl BenchMutex for Mutex {
    type Guard<'a> = MutexGuard<'a, ()>;

    #[inline]
    fn lock(&self) -> MutexGuard<'_, ()> {
        unpoisoned(self.0.lock())
    }
}

// SAFETY: std's rwlocks exclude.
unsafe impl BenchRwLock for RwLock {
    type Read<'a> = RwLockReadGuard<'a, ()>;
    type Write<'a> = RwLockWriteGuard<'a, ()>;

    #[inline]
    fn read(&self) -> RwLockReadGuard<'_, ()> {
        unpoisoned(self.0.read())
    }

    #[inline]
    fn write(&self) -> RwLockWriteGuard<'_, ()> {
        unpoisoned(self.0.write())
    }
}

impl BenchCondvar for Condvar {
    type Mutex = Mutex;

    #[inline]
    fn wait<'a>(&self, guard: GuardOf<'a, Self>) -> GuardOf<'a, Self> {
        unpoisoned(self.0.wait(guard))
    }

    #[inline]
    fn signal(&self) {
        self.0.notify_one();
    }

    #[inline]
    fn broadcast(&self) {
        self.0.notify_all();
    }
}
