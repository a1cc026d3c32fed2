//! The locks of the four documents. Each design is an adapter of its own, since an adapter has one mutex.

use spinpark_classics::mtx_2006::profiling::{
    self, Accesses, Aligned, AtomicAdd, Counter, Gutted, Larger, Outlined, ProfiledWithoutAdd,
};
use spinpark_classics::mtx_2006::{Absent, Profiled, Profiling};
use spinpark_classics::mutex_2010::{Fixed, Mutex, NoSpin as Sleeps, OldSpin};
use spinpark_classics::rwsem_2013::{Full, NoSpin, Rwsem, Vanilla};
use spinpark_classics::tas::{BackOff, TasLock, TestAndSet, TestAndTestAndSet};
use spinpark_classics::{RawLock, RawRwLock};
use spinpark_linux::Linux;

use super::mtx::Mtx;
use super::{Adapter, Run};
use crate::locks::any_mutex::{MakeMutex, any_mutex};
use crate::locks::primitives::{BenchMutex, BenchRwLock};
use crate::locks::workloads::{mutex, rwlock};

/// Unlocks when it is dropped.
pub(super) struct MutexGuard<'a, L: RawLock>(&'a L);

impl<L: RawLock> Drop for MutexGuard<'_, L> {
    #[inline]
    fn drop(&mut self) {
        self.0.unlock();
    }
}

/// A mutex.
pub(super) struct Exclusive<L>(L);

impl<L: RawLock> Default for Exclusive<L> {
    fn default() -> Self {
        Self(L::new())
    }
}

// SAFETY: the classics' mutexes exclude.
unsafe impl<L: RawLock> BenchMutex for Exclusive<L> {
    type Guard<'a>
        = MutexGuard<'a, L>
    where
        Self: 'a;

    #[inline]
    fn lock(&self) -> MutexGuard<'_, L> {
        self.0.lock();
        MutexGuard(&self.0)
    }
}

/// A read-write lock.
pub(super) struct Shareable<L>(L);

/// Unlocks when it is dropped.
pub(super) struct ReadGuard<'a, L: RawRwLock>(&'a L);

/// Unlocks when it is dropped.
pub(super) struct WriteGuard<'a, L: RawRwLock>(&'a L);

impl<L: RawRwLock> Drop for ReadGuard<'_, L> {
    #[inline]
    fn drop(&mut self) {
        self.0.unlock_read();
    }
}

impl<L: RawRwLock> Drop for WriteGuard<'_, L> {
    #[inline]
    fn drop(&mut self) {
        self.0.unlock_write();
    }
}

impl<L: RawRwLock> Default for Shareable<L> {
    fn default() -> Self {
        Self(L::new())
    }
}

// SAFETY: the classics' read-write locks exclude.
unsafe impl<L: RawRwLock> BenchRwLock for Shareable<L> {
    type Read<'a>
        = ReadGuard<'a, L>
    where
        Self: 'a;
    type Write<'a>
        = WriteGuard<'a, L>
    where
        Self: 'a;

    #[inline]
    fn read(&self) -> ReadGuard<'_, L> {
        self.0.read();
        ReadGuard(&self.0)
    }

    #[inline]
    fn write(&self) -> WriteGuard<'_, L> {
        self.0.write();
        WriteGuard(&self.0)
    }
}

const fn exclusive<L: RawLock + 'static>(name: &'static str) -> Adapter {
    of(name, mutex::<Exclusive<L>>, any_mutex::<Exclusive<L>>)
}

const fn mtx<F: Profiling + 'static>(name: &'static str) -> Adapter {
    of(name, mutex::<Mtx<F>>, any_mutex::<Mtx<F>>)
}

const fn of(name: &'static str, run: Run, make: MakeMutex) -> Adapter {
    Adapter {
        name,
        mutex: Some(run),
        any_mutex: Some(make),
        recursive: None,
        error_check: None,
        rwlock: None,
        condvar: None,
    }
}

/// With a read-write lock besides.
const fn both<L: RawLock + RawRwLock + 'static>(name: &'static str) -> Adapter {
    Adapter { rwlock: Some(rwlock::<Shareable<L>>), ..exclusive::<L>(name) }
}

/// All designs.
pub(super) const ADAPTERS: [Adapter; 21] = [
    exclusive::<Mutex<Linux, OldSpin>>("classic-mutex-2.6.34"),
    exclusive::<Mutex<Linux, Fixed>>("classic-mutex-fixed"),
    exclusive::<Mutex<Linux, Sleeps>>("classic-mutex-nospin"),
    both::<Rwsem<Linux, Vanilla>>("classic-rwsem-3.12"),
    both::<Rwsem<Linux, NoSpin>>("classic-rwsem-nospin"),
    both::<Rwsem<Linux, Full>>("classic-rwsem-full"),
    exclusive::<TasLock<Linux, TestAndSet>>("classic-tas"),
    exclusive::<TasLock<Linux, TestAndTestAndSet>>("classic-ttas"),
    exclusive::<TasLock<Linux, BackOff>>("classic-tas-backoff"),
    mtx::<Absent>("classic-mtx"),
    mtx::<profiling::BackOff>("classic-mtx-backoff"),
    mtx::<Profiled>("classic-mtx-profiled"),
    of("classic-mtx-enabled", mutex::<Mtx<Profiled, true>>, any_mutex::<Mtx<Profiled, true>>),
    mtx::<ProfiledWithoutAdd>("classic-mtx-profiled-no-add"),
    mtx::<Gutted>("classic-mtx-gutted"),
    mtx::<Accesses>("classic-mtx-accesses"),
    mtx::<Counter>("classic-mtx-counter"),
    mtx::<AtomicAdd>("classic-mtx-add"),
    mtx::<Larger>("classic-mtx-larger"),
    mtx::<Outlined>("classic-mtx-outlined"),
    mtx::<Aligned>("classic-mtx-aligned"),
];
