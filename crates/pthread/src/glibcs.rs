//! Calls that mean something only for mutexes that are glibc's: robust and priority-protected ones.

use core::ffi::c_int;

use libc::{EINVAL, pthread_mutex_t};

use crate::fields::Mutex;
use crate::real;

/// `pthread_mutex_consistent`: EINVAL unless robust, which is glibc's.
///
/// # Safety
///
/// As POSIX has it.
pub unsafe fn consistent(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's mutex.
    if unsafe { Mutex::at(mutex) }.is_ours() {
        return EINVAL;
    }
    // SAFETY: the caller's mutex.
    unsafe { real::pthread_mutex_consistent(mutex) }
}

/// `pthread_mutex_getprioceiling`: EINVAL unless priority-protected, which is glibc's.
///
/// # Safety
///
/// As POSIX has it.
pub unsafe fn get_prioceiling(mutex: *const pthread_mutex_t, ceiling: *mut c_int) -> c_int {
    // SAFETY: the caller's mutex.
    if unsafe { Mutex::at(mutex) }.is_ours() {
        return EINVAL;
    }
    // SAFETY: the caller's pointers.
    unsafe { real::pthread_mutex_getprioceiling(mutex, ceiling) }
}

/// `pthread_mutex_setprioceiling`: EINVAL unless priority-protected, which is glibc's.
///
/// # Safety
///
/// As POSIX has it.
pub unsafe fn set_prioceiling(mutex: *mut pthread_mutex_t, ceiling: c_int, old: *mut c_int) -> c_int {
    // SAFETY: the caller's mutex.
    if unsafe { Mutex::at(mutex) }.is_ours() {
        return EINVAL;
    }
    // SAFETY: the caller's pointers.
    unsafe { real::pthread_mutex_setprioceiling(mutex, ceiling, old) }
}
