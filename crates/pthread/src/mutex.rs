//! `pthread_mutex_*`.
//!
//! The object (40 bytes in glibc): our lock, whose word is where glibc has its own. Within it are, at glibc's places
//! (see [`fields`](crate::fields)), the depth of recursion, the owner, the waiters that will come back from a condition variable,
//! and `kind`, which is written by glibc's own initialiser or by a static one.
//!
//! Each function returns 0 or an errno, and each is as safe to call as its POSIX namesake: the pointer is to a mutex
//! that is initialised (statically, or all zero) and not yet destroyed.

mod life;

pub(crate) use life::init_kind;
pub use life::{destroy, init};

use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;

use libc::{EAGAIN, EBUSY, EDEADLK, EINVAL, EPERM, ETIMEDOUT};
use libc::{clockid_t, pthread_mutex_t, timespec};
use spinpark_linux::thread_id;
use spinpark_locks::Locked;
use spinpark_platform::{Clock, Deadline, Threads};

use crate::fields::{Linux, Mutex};
use crate::kind::{self, ERRORCHECK, GLIBCS, TYPE};
use crate::mode::Fast;
use crate::{leave, mode, real, time};

impl Mutex {
    /// Whether calls on this mutex are ours to serve.
    #[inline(always)]
    pub(crate) fn is_ours(&self) -> bool {
        self.kind() & GLIBCS == 0 && mode::serves(|| self.is_in_use())
    }

    /// What an owner that locks again gets: `None` means that it waits for itself for ever, as POSIX has it.
    #[inline(always)]
    fn lock_again(&self, token: u32, busy: c_int) -> Option<c_int> {
        let kind = self.kind();
        if kind::is_plain(kind) || !self.is_owned_by(token) {
            return None;
        }
        if kind & TYPE == ERRORCHECK {
            return Some(busy);
        }
        match self.count().load(Relaxed).checked_add(1) {
            Some(count) => {
                self.count().store(count, Relaxed);
                Some(0)
            }
            None => Some(EAGAIN),
        }
    }

    #[inline(always)]
    fn lock(&self, token: u32) -> c_int {
        if self.raw.try_lock_as(token) {
            return self.acquired_by(token);
        }
        match self.lock_again(token, EDEADLK) {
            Some(result) => result,
            None => self.lock_slow(token),
        }
    }

    #[inline(never)] // for the drop-in's size
    fn wait_for_turn(&self, deadline: Option<Deadline>) -> Locked {
        leave::deferred(
            || self.raw.lock_shared(deadline),
            |locked| {
                if let Locked::Acquired = locked {
                    self.raw.unlock();
                }
            },
        )
    }

    #[cold]
    #[inline(never)]
    fn lock_slow(&self, token: u32) -> c_int {
        match self.wait_for_turn(None) {
            Locked::Foreign => self.lock_foreign(0),
            _ => self.acquired_by(token),
        }
    }

    #[inline(always)]
    fn try_lock(&self) -> c_int {
        let token = thread_id();
        match self.lock_again(token, EBUSY) {
            Some(result) => result,
            None if self.raw.try_lock_contended(token) => self.acquired_by(token),
            None => EBUSY,
        }
    }

    /// # Safety
    ///
    /// `time` points to a timespec.
    unsafe fn lock_until(&self, clock: Clock, time: *const timespec) -> c_int {
        let token = thread_id();
        if let Some(result) = self.lock_again(token, EDEADLK) {
            return result;
        }
        if self.raw.try_lock_as(token) {
            return self.acquired_by(token); // POSIX: no look at the time if the mutex can be had at once
        }
        // SAFETY: the caller's pointer.
        let deadline = unsafe { time::deadline(clock, time) };
        if deadline.is_none() {
            return EINVAL;
        }
        match self.wait_for_turn(deadline) {
            Locked::Acquired => self.acquired_by(token),
            Locked::TimedOut => ETIMEDOUT,
            // SAFETY: the caller's pointer.
            Locked::Foreign => unsafe { self.lock_foreign_until(time::id(clock), time) },
        }
    }

    #[inline(always)]
    fn release(&self) -> c_int {
        self.raw.unlock();
        0
    }

    /// A recursive or error-checking mutex.
    #[inline(always)]
    fn unlock_owned(&self, token: u32) -> c_int {
        if !self.is_owned_by(token) {
            return EPERM;
        }
        let count = self.count().load(Relaxed).wrapping_sub(1);
        self.count().store(count, Relaxed);
        if count != 0 {
            return 0;
        }
        self.owner().store(0, Relaxed);
        self.release()
    }
}

/// `pthread_mutex_lock`: EDEADLK (error checking), EAGAIN (recursive, too deep).
///
/// # Safety
///
/// As POSIX has it.
#[inline(always)]
pub unsafe fn lock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's mutex.
    let this = unsafe { Mutex::at(mutex) };
    let token = spinpark_linux::known_token();
    if this.kind() & (GLIBCS | TYPE) == 0 && token != 0 {
        match mode::fast() {
            Fast::Threaded if this.raw.try_lock_uncontended(token) => return 0,
            Fast::Alone if this.raw.try_lock_alone(token) => return 0,
            _ => {}
        }
    }
    // SAFETY: the caller's mutex.
    unsafe { lock_elsewhere(mutex) }
}

/// Any other kind than the default, a mutex that is held, a process that has not decided yet, a thread's first call.
///
/// # Safety
///
/// As POSIX has it.
#[inline(never)]
unsafe fn lock_elsewhere(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's mutex.
    let this = unsafe { Mutex::at(mutex) };
    if this.is_ours() {
        // Of a plain mutex by the token, which the fast path knows from then on.
        return this.lock(if this.is_plain() { Linux::thread_token() } else { thread_id() });
    }
    // SAFETY: the caller's mutex.
    unsafe { real::pthread_mutex_lock(mutex) }
}

/// `pthread_mutex_trylock`: EBUSY, EAGAIN.
///
/// # Safety
///
/// As POSIX has it.
#[inline(always)]
pub unsafe fn try_lock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's mutex.
    let this = unsafe { Mutex::at(mutex) };
    if this.is_ours() {
        return this.try_lock();
    }
    // SAFETY: the caller's mutex.
    unsafe { real::pthread_mutex_trylock(mutex) }
}

/// `pthread_mutex_timedlock`: on the realtime clock; ETIMEDOUT, EINVAL, EDEADLK, EAGAIN.
///
/// # Safety
///
/// As POSIX has it.
pub unsafe fn timed_lock(mutex: *mut pthread_mutex_t, time: *const timespec) -> c_int {
    // SAFETY: the caller's mutex.
    let this = unsafe { Mutex::at(mutex) };
    if this.is_ours() {
        // SAFETY: the caller's timespec.
        return unsafe { this.lock_until(Clock::Realtime, time) };
    }
    // SAFETY: the caller's pointers.
    unsafe { real::pthread_mutex_timedlock(mutex, time) }
}

/// `pthread_mutex_clocklock`: as `pthread_mutex_timedlock`, on either clock; EINVAL for any other.
///
/// # Safety
///
/// As POSIX has it.
pub unsafe fn clock_lock(mutex: *mut pthread_mutex_t, clock: clockid_t, time: *const timespec) -> c_int {
    // SAFETY: the caller's mutex.
    let this = unsafe { Mutex::at(mutex) };
    if this.is_ours() {
        let Some(clock) = time::clock(clock) else { return EINVAL };
        // SAFETY: the caller's timespec.
        return unsafe { this.lock_until(clock, time) };
    }
    // SAFETY: the caller's pointers.
    unsafe { real::pthread_mutex_clocklock(mutex, clock, time) }
}

/// `pthread_mutex_unlock`: EPERM (recursive, error checking).
///
/// # Safety
///
/// As POSIX has it.
#[inline(always)]
pub unsafe fn unlock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's mutex.
    let this = unsafe { Mutex::at(mutex) };
    if this.kind() & (GLIBCS | TYPE) == 0 {
        match mode::fast() {
            Fast::Threaded => {
                this.raw.unlock();
                return 0;
            }
            Fast::Alone if this.raw.unlock_alone() => return 0,
            _ => {}
        }
    }
    // SAFETY: the caller's mutex.
    unsafe { unlock_elsewhere(mutex) }
}

/// Any other kind than the default, a mutex with waiters, a process that has not decided yet.
///
/// # Safety
///
/// As POSIX has it.
#[inline(never)]
pub(crate) unsafe fn unlock_elsewhere(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's mutex.
    let this = unsafe { Mutex::at(mutex) };
    if this.is_ours_to_unlock() {
        return if this.is_plain() { this.release() } else { this.unlock_owned(thread_id()) };
    }
    // SAFETY: the caller's mutex.
    unsafe { real::pthread_mutex_unlock(mutex) }
}
