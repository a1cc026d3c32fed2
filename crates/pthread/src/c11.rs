//! C11's `mtx_*` and `cnd_*`: in glibc the same objects as pthread's, with other names for the results.

use core::ffi::c_int;

use libc::{pthread_cond_t, pthread_mutex_t, timespec};

use crate::{arch, cond, mutex};

/// `thrd_success`.
const SUCCESS: c_int = 0;
/// `thrd_busy`.
const BUSY: c_int = 1;
/// `thrd_error`.
const ERROR: c_int = 2;
/// `thrd_nomem`.
const NO_MEMORY: c_int = 3;
/// `thrd_timedout`.
const TIMED_OUT: c_int = 4;

/// `mtx_recursive`, a bit beside `mtx_timed`, which every mutex here is. Other bits are ignored, as in glibc.
const RECURSIVE: c_int = 1;

#[inline(never)] // for the drop-in's size
fn result(errno: c_int) -> c_int {
    match errno {
        0 => SUCCESS,
        libc::EBUSY => BUSY,
        libc::ENOMEM => NO_MEMORY,
        libc::ETIMEDOUT => TIMED_OUT,
        _ => ERROR,
    }
}

/// `mtx_init`: [`init_from`] with the caller's address.
///
/// # Safety
///
/// As C11 has it; so for all functions here.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn mtx_init(mutex: *mut pthread_mutex_t, kind: c_int) -> c_int {
    core::arch::naked_asm!(
        ".cfi_startproc",
        arch::with_caller!(third),
        ".cfi_endproc",
        from = sym init_from,
    )
}

/// # Safety
///
/// As C11 has it.
unsafe extern "C" fn init_from(mutex: *mut pthread_mutex_t, kind: c_int, site: usize) -> c_int {
    // SAFETY: the caller's memory for a mutex.
    unsafe { mutex::init_kind(mutex, kind & RECURSIVE != 0, site) };
    SUCCESS
}

/// Declares the functions that only rename a result.
macro_rules! renamed {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) => $function:path;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        ///
        /// As C11 has it.
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            // SAFETY: the caller's pointers.
            result(unsafe { $function($($argument),*) })
        }
    )*};
}

renamed! {
    /// `mtx_lock`.
    mtx_lock(mutex: *mut pthread_mutex_t) => mutex::lock;
    /// `mtx_trylock`: `thrd_busy`.
    mtx_trylock(mutex: *mut pthread_mutex_t) => mutex::try_lock;
    /// `mtx_timedlock`: `thrd_timedout`.
    mtx_timedlock(mutex: *mut pthread_mutex_t, time: *const timespec) => mutex::timed_lock;
    /// `mtx_unlock`.
    mtx_unlock(mutex: *mut pthread_mutex_t) => mutex::unlock;
    /// `cnd_wait`.
    cnd_wait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) => cond::wait;
    /// `cnd_timedwait`: `thrd_timedout`.
    cnd_timedwait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, time: *const timespec) => cond::timed_wait;
    /// `cnd_signal`.
    cnd_signal(cond: *mut pthread_cond_t) => cond::signal;
    /// `cnd_broadcast`.
    cnd_broadcast(cond: *mut pthread_cond_t) => cond::broadcast;
}

/// `cnd_init`.
///
/// # Safety
///
/// As C11 has it.
pub(crate) unsafe extern "C" fn cnd_init(cond: *mut pthread_cond_t) -> c_int {
    // SAFETY: the caller's memory for a condition variable.
    result(unsafe { cond::init(cond, core::ptr::null()) })
}

/// `mtx_destroy`.
///
/// # Safety
///
/// As C11 has it.
pub(crate) unsafe extern "C" fn mtx_destroy(mutex: *mut pthread_mutex_t) {
    // SAFETY: the caller's mutex. C11 has no way to say that it is held.
    unsafe { mutex::destroy(mutex) };
}

/// `cnd_destroy`.
///
/// # Safety
///
/// As C11 has it.
pub(crate) unsafe extern "C" fn cnd_destroy(cond: *mut pthread_cond_t) {
    // SAFETY: the caller's condition variable.
    unsafe { cond::destroy(cond) };
}
