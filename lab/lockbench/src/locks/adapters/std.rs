//! The locks of Rust's standard library. No section panics here, so nothing is ever poisoned.

use std::sync::{Condvar as StdCondvar, LockResult, MutexGuard, RwLockReadGuard, RwLockWriteGuard};

use super::{Adapter, Origin, UseCondvar};

/// Its locks.
pub(super) struct Locks;

impl Origin for Locks {
    const ADAPTER: Adapter = Adapter::new("std").mutex::<Mutex>().rwlock::<RwLock>().condvar::<Condvar>();

    fn with_condvar<U: UseCondvar>(user: U) -> Option<U::Output> {
        Some(user.with::<Condvar>())
    }
}

#[inline]
fn unpoisoned<G>(result: LockResult<G>) -> G {
    result.unwrap_or_else(|_| std::process::abort())
}

mutex!(Mutex(std::sync::Mutex<()>), MutexGuard<'a, ()>, |it| unpoisoned(it.lock()));
rwlock!(
    RwLock(std::sync::RwLock<()>),
    RwLockReadGuard<'a, ()>: |it| unpoisoned(it.read()),
    RwLockWriteGuard<'a, ()>: |it| unpoisoned(it.write())
);
condvar!(
    Condvar(StdCondvar) of Mutex,
    |it, guard| unpoisoned(it.wait(guard)),
    signal: |it| it.notify_one(),
    broadcast: |it| it.notify_all()
);
