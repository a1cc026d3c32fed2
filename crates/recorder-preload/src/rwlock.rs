//! `pthread_rwlock_*`.

use core::ffi::c_int;

use spinpark_recorder::format::{Kind, Role};
use spinpark_recorder::{LockCall, Site};

use crate::function::Function;
use crate::instrument::{self, LockFunctions, POSIX};
use crate::mutex::{dispose, functions, initialise, is_clock};
use crate::next;

#[inline(always)]
fn call(address: usize, role: Role, site: Site) -> LockCall {
    LockCall { address, role, kind: |_| Kind::RwLock, site }
}

const fn read_by(lock: Function) -> LockFunctions {
    LockFunctions { try_it: Function::pthread_rwlock_tryrdlock, lock, codes: POSIX, is_mutex: false }
}

const fn write_by(lock: Function) -> LockFunctions {
    LockFunctions { try_it: Function::pthread_rwlock_trywrlock, lock, codes: POSIX, is_mutex: false }
}

/// As [`instrument::lock`], but a time that is none is an error at once, and not only if the lock has to be
/// waited for. What it means if there is none at all (null) the next implementation knows.
///
/// # Safety
///
/// As [`instrument::lock`]; `time` is null or points to a timespec.
#[inline(always)]
unsafe fn lock_until<const DETAIL: u32>(
    functions: &LockFunctions,
    arguments: [usize; 4],
    clock: usize,
    time: usize,
    call: LockCall,
) -> c_int {
    // SAFETY: the caller's timespec.
    let nanoseconds = unsafe { (time as *const libc::timespec).as_ref() }.map_or(-1, |time| time.tv_nsec);
    if !is_clock(clock) || !(0..1_000_000_000).contains(&nanoseconds) {
        // SAFETY: the caller's arguments.
        return unsafe { next::call(functions.lock, arguments) };
    }
    // SAFETY: the caller's promise.
    unsafe { instrument::lock::<DETAIL>(functions, arguments, call) }
}

functions! {
    read(lock, b, c, d, site) =
        instrument::lock::<DETAIL>(&const { read_by(Function::pthread_rwlock_rdlock) }, [lock, b, c, d], call(lock, Role::Read, site));
    write(lock, b, c, d, site) =
        instrument::lock::<DETAIL>(&const { write_by(Function::pthread_rwlock_wrlock) }, [lock, b, c, d], call(lock, Role::Write, site));
    try_read(lock, b, c, d, site) =
        instrument::try_lock::<DETAIL>(&const { read_by(Function::pthread_rwlock_rdlock) }, [lock, b, c, d], call(lock, Role::Read, site));
    try_write(lock, b, c, d, site) =
        instrument::try_lock::<DETAIL>(&const { write_by(Function::pthread_rwlock_wrlock) }, [lock, b, c, d], call(lock, Role::Write, site));
    timed_read(lock, time, c, d, site) = lock_until::<DETAIL>(
        &const { read_by(Function::pthread_rwlock_timedrdlock) }, [lock, time, c, d], 0, time, call(lock, Role::Read, site));
    timed_write(lock, time, c, d, site) = lock_until::<DETAIL>(
        &const { write_by(Function::pthread_rwlock_timedwrlock) }, [lock, time, c, d], 0, time, call(lock, Role::Write, site));
    clock_read(lock, clock, time, d, site) = lock_until::<DETAIL>(
        &const { read_by(Function::pthread_rwlock_clockrdlock) }, [lock, clock, time, d], clock, time, call(lock, Role::Read, site));
    clock_write(lock, clock, time, d, site) = lock_until::<DETAIL>(
        &const { write_by(Function::pthread_rwlock_clockwrlock) }, [lock, clock, time, d], clock, time, call(lock, Role::Write, site));
    unlock(lock, _b, _c, _d, site) = instrument::unlock::<DETAIL>(Function::pthread_rwlock_unlock, call(lock, Role::Write, site));
    init(lock, attributes, c, d, site) = initialise::<DETAIL>(Function::pthread_rwlock_init, [lock, attributes, c, d], site);
}

/// `pthread_rwlock_destroy`.
///
/// # Safety
///
/// As its namesake.
pub(crate) unsafe extern "C" fn destroy(lock: usize, _b: usize, _c: usize, _d: usize, _site: Site) -> c_int {
    // SAFETY: the caller's lock.
    unsafe { dispose(Function::pthread_rwlock_destroy, lock) }
}
