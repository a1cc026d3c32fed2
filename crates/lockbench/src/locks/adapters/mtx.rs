//! FreeBSD's mutex of 2006, with each ingredient of its profiling.

use std::sync::atomic::AtomicU32;

use spinpark_classics::SpinLock;
use spinpark_classics::mtx_2006::chain::{Chain, Ends};
use spinpark_classics::mtx_2006::{Globals, Holds, Mtx as RawMtx, Profiling};
use spinpark_linux::{Cell, Linux};

use crate::locks::primitives::BenchMutex;

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

#[cfg(test)]
mod tests {
    use spinpark_classics::mtx_2006::profiling::{
        Absent, Accesses, Aligned, AtomicAdd, BackOff, Counter, Gutted, Larger, Outlined, Profiled,
        ProfiledWithoutAdd,
    };

    use super::*;
    use crate::locks::mutex_in_data::{Layout, MutexInData};

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
        assert_eq!(MutexInData::<Mtx<Larger>>::LAYOUT, Layout { mutex: (132, 4), lines: [0, 0, 2] });
        assert_eq!(MutexInData::<Mtx<Aligned>>::LAYOUT, Layout { mutex: (0x100, 0x100), lines: [0, 4, 8] });
    }
}
