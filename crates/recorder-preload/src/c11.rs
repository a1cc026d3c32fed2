//! C11's `mtx_*` and `cnd_*`: in glibc and in spinpark the same objects as pthread's, with other names for
//! the results.

use core::ffi::c_int;

use spinpark_recorder::Site;

use crate::condvar::{signal_by, wait_by};
use crate::function::Function;
use crate::instrument::{self, C11, LockFunctions};
use crate::mutex::{call, dispose, functions, initialise};

/// `thrd_timedout`.
const TIMED_OUT: c_int = 4;

const fn functions_with(lock: Function) -> LockFunctions {
    LockFunctions { try_it: Function::mtx_trylock, lock, codes: C11, is_mutex: true }
}

functions! {
    mtx_lock(mutex, b, c, d, site) =
        instrument::lock::<DETAIL>(&const { functions_with(Function::mtx_lock) }, [mutex, b, c, d], call(mutex, site));
    mtx_timedlock(mutex, time, c, d, site) =
        instrument::lock::<DETAIL>(&const { functions_with(Function::mtx_timedlock) }, [mutex, time, c, d], call(mutex, site));
    mtx_trylock(mutex, b, c, d, site) =
        instrument::try_lock::<DETAIL>(&const { functions_with(Function::mtx_lock) }, [mutex, b, c, d], call(mutex, site));
    mtx_unlock(mutex, _b, _c, _d, site) = instrument::unlock::<DETAIL>(Function::mtx_unlock, call(mutex, site));
    mtx_init(mutex, kind, c, d, site) = initialise::<DETAIL>(Function::mtx_init, [mutex, kind, c, d], site);
    cnd_init(cond, b, c, d, site) = initialise::<DETAIL>(Function::cnd_init, [cond, b, c, d], site);
    cnd_wait(cond, mutex, c, d, site) = wait_by::<DETAIL>(Function::cnd_wait, [cond, mutex, c, d], 0, TIMED_OUT, site);
    cnd_timedwait(cond, mutex, time, d, site) =
        wait_by::<DETAIL>(Function::cnd_timedwait, [cond, mutex, time, d], time, TIMED_OUT, site);
    cnd_signal(cond, _b, _c, _d, site) = signal_by::<DETAIL>(Function::cnd_signal, cond, false, site);
    cnd_broadcast(cond, _b, _c, _d, site) = signal_by::<DETAIL>(Function::cnd_broadcast, cond, true, site);
}

/// `mtx_destroy`.
///
/// # Safety
///
/// As its namesake.
pub(crate) unsafe extern "C" fn mtx_destroy(
    mutex: usize,
    _b: usize,
    _c: usize,
    _d: usize,
    _site: Site,
) -> c_int {
    // SAFETY: the caller's mutex.
    unsafe { dispose(Function::mtx_destroy, mutex) }
}

/// `cnd_destroy`.
///
/// # Safety
///
/// As its namesake.
pub(crate) unsafe extern "C" fn cnd_destroy(
    cond: usize,
    _b: usize,
    _c: usize,
    _d: usize,
    _site: Site,
) -> c_int {
    // SAFETY: the caller's condition variable.
    unsafe { dispose(Function::cnd_destroy, cond) }
}
