//! The locks of the four documents: an adapter for each of the [designs], since
//! an adapter has one mutex.

use std::env;
use std::sync::LazyLock;
use std::sync::atomic::AtomicU32;

use spinpark_classics::condvar_2003::Signalling;
use spinpark_classics::designs::{self, DESIGNS, Use};
use spinpark_classics::mtx_2006::delays::Delays;
use spinpark_classics::mtx_2006::profiling::{BackOff, Delayed};
use spinpark_classics::mtx_2006::{Chain, Ends, Globals, Holds, Mtx as RawMtx, Profiling};
use spinpark_classics::{RawLock, RawRwLock, SpinLock, condvar_2003, mutex_2003};
use spinpark_linux::{Cell, Linux};
use spinpark_platform::Platform;

use super::Adapter;
use crate::locks::primitives::{BenchCondvar, BenchMutex, BenchRwLock, GuardOf};

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

/// glibc's mutex of 2003.
pub struct Mutex2003<P: Platform>(mutex_2003::Mutex<P>);

impl<P: Platform> Default for Mutex2003<P> {
    fn default() -> Self {
        Self(mutex_2003::Mutex::new())
    }
}

/// Unlocks when it is dropped.
pub struct Guard2003<'a, P: Platform>(&'a mutex_2003::Mutex<P>);

impl<P: Platform> Drop for Guard2003<'_, P> {
    #[inline]
    fn drop(&mut self) {
        self.0.unlock();
    }
}

// SAFETY: the mutex excludes, as its models show.
unsafe impl<P: Platform> BenchMutex for Mutex2003<P> {
    type Guard<'a> = Guard2003<'a, P>;

    #[inline]
    fn lock(&self) -> Guard2003<'_, P> {
        self.0.lock();
        Guard2003(&self.0)
    }
}

/// glibc's condition variable of 2003, with signals of the kind `S`.
pub struct Condvar2003<P: Platform, S: Signalling>(condvar_2003::Condvar<P, S>);

impl<P: Platform, S: Signalling> Default for Condvar2003<P, S> {
    fn default() -> Self {
        Self(condvar_2003::Condvar::new())
    }
}

impl<P: Platform, S: Signalling> BenchCondvar for Condvar2003<P, S> {
    type Mutex = Mutex2003<P>;

    #[inline]
    fn wait<'a>(&self, guard: GuardOf<'a, Self>) -> GuardOf<'a, Self> {
        self.0.wait(guard.0, None);
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

const fn chain() -> Chain<Linux> {
    let lock = SpinLock::from_parts(AtomicU32::new(0), AtomicU32::new(0));
    Chain::from_parts(lock, Cell::new(Ends::EMPTY))
}

const fn globals() -> Globals<Linux> {
    const EMPTY: Holds = Holds { count: 0, total_ns: 0, longest_ns: 0 };
    let [enabled, acquisitions, lock] = [const { AtomicU32::new(0) }; _];
    Globals::from_parts(enabled, acquisitions, lock, Cell::new(EMPTY), [const { chain() }; _])
}

/// What all mutexes of the process share, as in a kernel.
static GLOBALS: Globals<Linux> = globals();

/// FreeBSD's mutex with the globals of this process; `ENABLED`: its profile is on.
#[repr(transparent)]
pub(super) struct Mtx<F: Profiling, const ENABLED: bool = false>(RawMtx<Linux, F>);

/// Unlocks when it is dropped.
pub(super) struct MtxGuard<'a, F: Profiling>(&'a RawMtx<Linux, F>);

impl<F: Profiling> Drop for MtxGuard<'_, F> {
    #[inline]
    fn drop(&mut self) {
        self.0.unlock(&GLOBALS);
    }
}

impl<F: Profiling, const ENABLED: bool> Default for Mtx<F, ENABLED> {
    fn default() -> Self {
        if ENABLED {
            GLOBALS.enable();
        }
        Self(RawMtx::new())
    }
}

// SAFETY: FreeBSD's mutexes exclude.
unsafe impl<F: Profiling, const ENABLED: bool> BenchMutex for Mtx<F, ENABLED> {
    type Guard<'a> = MtxGuard<'a, F>;

    #[inline]
    fn lock(&self) -> MtxGuard<'_, F> {
        self.0.lock(&GLOBALS);
        MtxGuard(&self.0)
    }
}

/// The variable that says which delays the mutex with delays has, for the whole process.
pub const DELAYS: &str = "SPINPARK_MTX_DELAYS";

/// What all mutexes with delays share.
static DELAYED: LazyLock<Globals<Linux>> = LazyLock::new(|| {
    let delays = env::var(DELAYS).unwrap_or_default();
    let delays = match delays.as_str() {
        "" => Delays::NONE,
        given => Delays::parse(given).unwrap_or_else(|| panic!("{DELAYS}={given} names no delays")),
    };
    globals().delayed(delays)
});

/// FreeBSD's mutex with the delays of this process.
#[repr(transparent)]
#[derive(Default)]
pub(super) struct DelayedMtx(RawMtx<Linux, Delayed>);

/// Unlocks when it is dropped.
pub(super) struct DelayedGuard<'a>(&'a RawMtx<Linux, Delayed>);

impl Drop for DelayedGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.unlock(&DELAYED);
    }
}

// SAFETY: FreeBSD's mutexes exclude.
unsafe impl BenchMutex for DelayedMtx {
    type Guard<'a> = DelayedGuard<'a>;

    #[inline]
    fn lock(&self) -> DelayedGuard<'_> {
        self.0.lock(&DELAYED);
        DelayedGuard(&self.0)
    }
}

/// The adapter of the design of this name.
struct OfDesign(&'static str);

impl Use<Linux> for OfDesign {
    type Output = Adapter;

    fn otherwise(self) -> Adapter {
        Adapter::new(self.0)
    }

    fn mutex<L: RawLock + 'static>(self) -> Adapter {
        self.otherwise().mutex::<Exclusive<L>>()
    }

    fn rwlock<L: RawLock + RawRwLock + 'static>(self) -> Adapter {
        self.mutex::<L>().rwlock::<Shareable<L>>()
    }

    fn mutex_2003(self) -> Adapter {
        self.otherwise().mutex::<Mutex2003<Linux>>()
    }

    fn condvar_2003<S: Signalling + 'static>(self) -> Adapter {
        self.otherwise().condvar::<Condvar2003<Linux, S>>()
    }

    fn mtx<F: Profiling + 'static, const ENABLED: bool>(self) -> Adapter {
        self.otherwise().mutex::<Mtx<F, ENABLED>>()
    }

    fn mtx_backing_off(self) -> Adapter {
        self.mtx::<BackOff, false>()
    }

    fn mtx_delayed(self) -> Adapter {
        self.otherwise().mutex::<DelayedMtx>()
    }
}

/// All that run here.
pub(super) fn adapters() -> impl Iterator<Item = Adapter> {
    let here = DESIGNS.iter().filter(|design| design.is_native());
    here.filter_map(|design| designs::with(design.name, OfDesign(design.name)))
}

#[cfg(test)]
mod tests {
    use spinpark_classics::mtx_2006::profiling::{
        Absent, Accesses, Aligned, AtomicAdd, AtomicAddApart, BackOff, Counter, Gutted, Larger, Outlined,
        Profiled, ProfiledApart, ProfiledWithoutAdd,
    };

    use super::*;
    use crate::locks::primitives::{Layout, MutexInData};

    /// What each ingredient changes in memory: size, alignment, and on which cache lines the neighbours lie.
    #[test]
    fn ingredients_lie_where_they_say() {
        let plain = Layout { mutex: (4, 4), lines: [0, 0, 0] };
        assert_eq!(MutexInData::<Mtx<Absent>>::LAYOUT, plain);
        assert_eq!(MutexInData::<Mtx<BackOff>>::LAYOUT, plain);
        assert_eq!(MutexInData::<Mtx<Counter>>::LAYOUT, plain);
        assert_eq!(MutexInData::<Mtx<Outlined>>::LAYOUT, plain);
        let with_fields = Layout { mutex: (20, 4), lines: [0, 0, 0] };
        assert_eq!(MutexInData::<Mtx<Accesses>>::LAYOUT, with_fields);
        assert_eq!(MutexInData::<Mtx<AtomicAdd>>::LAYOUT, with_fields);
        assert_eq!(MutexInData::<Mtx<Gutted>>::LAYOUT, with_fields);
        assert_eq!(MutexInData::<Mtx<ProfiledWithoutAdd>>::LAYOUT, with_fields);
        assert_eq!(MutexInData::<Mtx<Profiled>>::LAYOUT, with_fields);
        assert_eq!(MutexInData::<Mtx<Profiled, true>>::LAYOUT, with_fields);
        assert_eq!(MutexInData::<DelayedMtx>::LAYOUT, plain);
        let apart = Layout { mutex: (144, 4), lines: [0, 0, 2] };
        assert_eq!(MutexInData::<Mtx<ProfiledApart>>::LAYOUT, apart);
        assert_eq!(MutexInData::<Mtx<AtomicAddApart>>::LAYOUT, apart);
        assert_eq!(MutexInData::<Mtx<Larger>>::LAYOUT, Layout { mutex: (132, 4), lines: [0, 0, 2] });
        assert_eq!(MutexInData::<Mtx<Aligned>>::LAYOUT, Layout { mutex: (0x100, 0x100), lines: [0, 4, 8] });
    }
}
