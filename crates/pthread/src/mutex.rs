//! `pthread_mutex_*`.
//!
//! The object (40 bytes in glibc): our 16-byte lock where glibc has lock, count, owner and users; `kind` at glibc's
//! place, written by glibc's own initialiser or by a static one; then the depth of recursion.
//!
//! Each function returns 0 or an errno, and each is as safe to call as its POSIX namesake: the pointer is to a mutex
//! that is initialised (statically, or all zero) and not yet destroyed.

use core::ffi::c_int;
use core::mem::{align_of, size_of};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use libc::{EAGAIN, EBUSY, EDEADLK, EINVAL, EPERM, ETIMEDOUT};
use libc::{clockid_t, pthread_mutex_t, pthread_mutexattr_t, timespec};
use spinpark_linux::Linux;
use spinpark_locks::RawMutex;
use spinpark_platform::{Clock, Deadline, Platform};

use crate::mode::Fast;
use crate::{cancel, mode, real, time};

/// The bits of `kind` that tell how the mutex behaves.
const TYPE: u32 = 0x3;
const RECURSIVE: u32 = libc::PTHREAD_MUTEX_RECURSIVE as u32;
const ERRORCHECK: u32 = libc::PTHREAD_MUTEX_ERRORCHECK as u32;
/// The bits of `kind` that make it glibc's: robust, priority inheritance, priority protection, process-shared. (Not
/// the two above them, which only said whether to elide the lock.)
const GLIBCS: u32 = 0xf0;
/// What glibc's destroy leaves in `kind`: glibc's own functions answer EINVAL then.
const DESTROYED: u32 = u32::MAX;

/// Neither recursive nor error checking.
#[inline(always)]
fn is_plain(kind: u32) -> bool {
    kind & TYPE == 0 || kind & TYPE == TYPE
}

const _: () = assert!(RECURSIVE == 1 && ERRORCHECK == 2 && TYPE == 3);

/// Our view of a `pthread_mutex_t`.
#[repr(C)]
pub(crate) struct Mutex {
    pub(crate) raw: RawMutex<Linux>,
    kind: AtomicU32,
    /// How often a recursive mutex is held beyond the first time; only its owner reads and writes it.
    depth: AtomicU32,
}

const _: () = assert!(size_of::<Mutex>() <= size_of::<pthread_mutex_t>());
const _: () = assert!(align_of::<Mutex>() <= align_of::<pthread_mutex_t>());
const _: () = assert!(core::mem::offset_of!(Mutex, kind) == 16, "glibc's __data.__kind");

impl Mutex {
    /// # Safety
    ///
    /// `mutex` points to a mutex, which lives for `'a`.
    #[inline(always)]
    pub(crate) unsafe fn at<'a>(mutex: *const pthread_mutex_t) -> &'a Self {
        // SAFETY: the caller's pointer; size and alignment fit; every field is atomic.
        unsafe { &*mutex.cast() }
    }

    #[inline(always)]
    fn kind(&self) -> u32 {
        self.kind.load(Relaxed)
    }

    /// Whether calls on this mutex are ours to serve.
    #[inline(always)]
    pub(crate) fn is_ours(&self) -> bool {
        self.kind() & GLIBCS == 0 && mode::ours()
    }

    #[inline(always)]
    fn is_plain(&self) -> bool {
        is_plain(self.kind())
    }

    /// What an owner that locks again gets: `None` means that it waits for itself for ever, as POSIX has it.
    #[inline(always)]
    fn lock_again(&self, token: u32, busy: c_int) -> Option<c_int> {
        let kind = self.kind();
        if is_plain(kind) || !self.raw.is_owned_by(token) {
            return None;
        }
        if kind & TYPE == ERRORCHECK {
            return Some(busy);
        }
        match self.depth.load(Relaxed).checked_add(1) {
            Some(depth) => {
                self.depth.store(depth, Relaxed);
                Some(0)
            }
            None => Some(EAGAIN),
        }
    }

    /// A recursive or error-checking mutex.
    #[inline(never)]
    fn lock_owned(&self, token: u32) -> c_int {
        if self.raw.try_lock_as(token) {
            return 0;
        }
        match self.lock_again(token, EDEADLK) {
            Some(result) => result,
            None => self.lock_slow(),
        }
    }

    #[cold]
    #[inline(never)]
    fn lock_slow(&self) -> c_int {
        cancel::deferred(|| self.raw.lock());
        0
    }

    #[inline(always)]
    fn try_lock(&self) -> c_int {
        let token = Linux::thread_token();
        match self.lock_again(token, EBUSY) {
            Some(result) => result,
            None if self.raw.try_lock_as(token) => 0,
            None => EBUSY,
        }
    }

    /// # Safety
    ///
    /// `time` points to a timespec.
    unsafe fn lock_until(&self, clock: Clock, time: *const timespec) -> c_int {
        if let Some(result) = self.lock_again(Linux::thread_token(), EDEADLK) {
            return result;
        }
        if self.raw.try_lock() {
            return 0; // POSIX: no look at the time if the mutex can be had at once
        }
        // SAFETY: the caller's pointer.
        match unsafe { time::deadline(clock, time) } {
            None => EINVAL,
            Some(deadline) if cancel::deferred(|| self.raw.lock_until(deadline)) => 0,
            Some(Deadline { .. }) => ETIMEDOUT,
        }
    }

    #[inline(always)]
    fn release(&self, token: u32) -> c_int {
        self.raw.unlock_as(token);
        0
    }

    /// A recursive or error-checking mutex.
    #[inline(never)]
    fn unlock_owned(&self, token: u32) -> c_int {
        // Whoever does not own the mutex may see any depth here, and then learns that it does not own it.
        let depth = self.depth.load(Relaxed);
        if depth == 0 && self.raw.try_unlock_as(token) {
            return 0;
        }
        if !self.raw.is_owned_by(token) {
            return EPERM;
        }
        if depth > 0 {
            self.depth.store(depth - 1, Relaxed);
            return 0;
        }
        self.release(token)
    }

    fn is_mine(&self) -> bool {
        self.raw.is_owned_by(Linux::thread_token())
    }

    /// For a wait on a condition variable: releases a mutex that is ours however deep it is held, and returns the
    /// depth, with which [`Mutex::hold_again`] restores it; or EPERM.
    pub(crate) fn check_wait(&self) -> Result<u32, c_int> {
        if self.is_plain() {
            return Ok(0);
        }
        if !self.is_mine() {
            return Err(EPERM);
        }
        Ok(self.depth.swap(0, Relaxed))
    }

    /// After the wait, with the mutex held again.
    pub(crate) fn restore_depth(&self, depth: u32) {
        if depth > 0 {
            self.depth.store(depth, Relaxed);
        }
    }
}

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
        unsafe { Mutex::at(mutex) }.kind.store(RECURSIVE, Relaxed);
    }
}

/// `pthread_mutex_destroy`: EBUSY if it is held.
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
    if this.raw.is_locked() {
        return EBUSY;
    }
    this.kind.store(DESTROYED, Relaxed);
    0
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
    let kind = this.kind();
    let fast = mode::fast();
    if fast != Fast::Unsure && kind & GLIBCS == 0 {
        let token = spinpark_linux::known_token();
        if token != 0 {
            if !is_plain(kind) {
                return this.lock_owned(token);
            }
            let locked = if fast == Fast::Alone {
                this.raw.try_lock_alone(token)
            } else {
                this.raw.try_lock_as(token)
            };
            return if locked { 0 } else { this.lock_slow() };
        }
    }
    // SAFETY: the caller's mutex.
    unsafe { lock_elsewhere(mutex) }
}

/// glibc's mutex, a process that has not decided yet, or a thread's first call.
///
/// # Safety
///
/// As POSIX has it.
#[cold]
#[inline(never)]
unsafe fn lock_elsewhere(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's mutex.
    let this = unsafe { Mutex::at(mutex) };
    if this.is_ours() {
        return this.lock_owned(Linux::thread_token());
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
    let (kind, fast) = (this.kind(), mode::fast());
    if kind & GLIBCS == 0 && fast != Fast::Unsure {
        if !is_plain(kind) {
            return this.unlock_owned(spinpark_linux::known_token());
        }
        if fast == Fast::Alone && this.raw.unlock_alone() {
            return 0;
        }
        return this.release(spinpark_linux::known_token());
    }
    // SAFETY: the caller's mutex.
    unsafe { unlock_elsewhere(mutex) }
}

/// glibc's mutex, or a process that has not decided yet.
///
/// # Safety
///
/// As POSIX has it.
#[cold]
#[inline(never)]
unsafe fn unlock_elsewhere(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's mutex.
    let this = unsafe { Mutex::at(mutex) };
    if this.is_ours() {
        let token = Linux::thread_token();
        return if this.is_plain() { this.release(token) } else { this.unlock_owned(token) };
    }
    // SAFETY: the caller's mutex.
    unsafe { real::pthread_mutex_unlock(mutex) }
}
