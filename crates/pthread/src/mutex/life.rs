//! `pthread_mutex_init` and `pthread_mutex_destroy`.

use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;

use libc::{EBUSY, pthread_mutex_t, pthread_mutexattr_t};

use crate::fields::Mutex;
use crate::kind::{DESTROYED, RECURSIVE};
use crate::{mode, real};

/// `pthread_mutex_init`.
///
/// # Safety
///
/// As POSIX has it.
pub unsafe fn init(mutex: *mut pthread_mutex_t, attributes: *const pthread_mutexattr_t) -> c_int {
    if mode::ours() {
        // Also what glibc's initialiser leaves, but for its own fields: it is not relied on to clear the rest.
        // SAFETY: the caller's memory for an object; all zero is its static initialiser.
        unsafe { mutex.write_bytes(0, 1) };
        if attributes.is_null() {
            return 0;
        }
    }
    // SAFETY: the caller's pointers.
    unsafe { real::pthread_mutex_init(mutex, attributes) }
}

/// A mutex that is normal or recursive. What is written is as good for glibc's functions as for ours.
///
/// # Safety
///
/// `mutex` is memory for a mutex.
pub(crate) unsafe fn init_kind(mutex: *mut pthread_mutex_t, recursive: bool) {
    // SAFETY: the caller's memory; all zero is a normal mutex.
    unsafe { mutex.write_bytes(0, 1) };
    if recursive {
        // SAFETY: initialised just now.
        unsafe { Mutex::at(mutex) }.kind_word().store(RECURSIVE, Relaxed);
    }
}

/// `pthread_mutex_destroy`: EBUSY if it is held, or if a thread that waits on a condition variable will take it back (glibc's
/// `__nusers` counts both). It stays good then.
///
/// # Safety
///
/// As POSIX has it.
pub unsafe fn destroy(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's mutex.
    let this = unsafe { Mutex::at(mutex) };
    if !this.is_ours() {
        // SAFETY: the caller's mutex.
        return unsafe { real::pthread_mutex_destroy(mutex) };
    }
    if this.raw.is_locked() || this.waiters().load(Relaxed) != 0 {
        return EBUSY;
    }
    this.kind_word().store(DESTROYED, Relaxed);
    0
}
