//! The locks of the four documents: an adapter for each of the [designs](spinpark_classics::designs), since
//! an adapter has one mutex.

use spinpark_classics::condvar_2003::Signalling;
use spinpark_classics::designs::{self, DESIGNS, Use};
use spinpark_classics::mtx_2006::Profiling;
use spinpark_classics::mtx_2006::profiling::BackOff;
use spinpark_classics::{RawLock, RawRwLock};
use spinpark_linux::Linux;

use super::condvar_2003::{Condvar2003, Mutex2003};
use super::mtx::Mtx;
use super::{Adapter, Run};
use crate::locks::any_mutex::{MakeMutex, any_mutex};
use crate::locks::primitives::{BenchMutex, BenchRwLock};
use crate::locks::workloads::{condvar, mutex, rwlock};

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

/// The adapter of the design of this name.
struct OfDesign(&'static str);

impl OfDesign {
    fn of_mutex(self, run: Run, make: MakeMutex) -> Adapter {
        Adapter { mutex: Some(run), any_mutex: Some(make), ..self.otherwise() }
    }
}

impl Use<Linux> for OfDesign {
    type Output = Adapter;

    fn otherwise(self) -> Adapter {
        Adapter { name: self.0, ..Adapter::default() }
    }

    fn mutex<L: RawLock + 'static>(self) -> Adapter {
        self.of_mutex(mutex::<Exclusive<L>>, any_mutex::<Exclusive<L>>)
    }

    fn rwlock<L: RawLock + RawRwLock + 'static>(self) -> Adapter {
        Adapter { rwlock: Some(rwlock::<Shareable<L>>), ..self.mutex::<L>() }
    }

    fn mutex_2003(self) -> Adapter {
        self.of_mutex(mutex::<Mutex2003<Linux>>, any_mutex::<Mutex2003<Linux>>)
    }

    fn condvar_2003<S: Signalling + 'static>(self) -> Adapter {
        Adapter { condvar: Some(condvar::<Condvar2003<Linux, S>>), ..self.otherwise() }
    }

    fn mtx<F: Profiling + 'static, const ENABLED: bool>(self) -> Adapter {
        self.of_mutex(mutex::<Mtx<F, ENABLED>>, any_mutex::<Mtx<F, ENABLED>>)
    }

    fn mtx_backing_off(self) -> Adapter {
        self.mtx::<BackOff, false>()
    }
}

/// All that run here.
pub(super) fn adapters() -> impl Iterator<Item = Adapter> {
    let here = DESIGNS.iter().filter(|design| design.is_native());
    here.filter_map(|design| designs::with(design.name, OfDesign(design.name)))
}
