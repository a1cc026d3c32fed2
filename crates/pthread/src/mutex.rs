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
use core::mem::{align_of, size_of};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use libc::{EAGAIN, EBUSY, EDEADLK, EINVAL, EPERM, ETIMEDOUT};
use libc::{clockid_t, pthread_mutex_t, timespec};
use spinpark_linux::thread_id;
use spinpark_locks::{RawMutex, WaitNode};
use spinpark_platform::{Clock, Deadline, Threads};

use crate::fields::Linux;
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
}

const _: () = assert!(size_of::<Mutex>() <= size_of::<pthread_mutex_t>());
const _: () = assert!(align_of::<Mutex>() <= align_of::<pthread_mutex_t>());
const _: () = assert!(
    matches!(WaitNode::<Linux>::layout(), [8, 28, 32]),
    "preload/libspinpark_preload.so-gdb.py follows waiters"
);

impl Mutex {
    /// # Safety
    ///
    /// `mutex` points to a mutex, which lives for `'a`.
    #[inline(always)]
    pub(crate) unsafe fn at<'a>(mutex: *const pthread_mutex_t) -> &'a Self {
        // SAFETY: the caller's pointer; size and alignment fit; every field is atomic.
        unsafe { &*mutex.cast() }
    }

    /// glibc's `__count`: how often a recursive mutex is held beyond the first time; only its owner reads and writes it.
    #[inline(always)]
    fn depth(&self) -> &AtomicU32 {
        &self.raw.queue().room()[0]
    }

    /// glibc's `__owner`, of recursive and error-checking mutexes: the id of the thread that holds it, 0 while it is free.
    /// Written by the owner only, so its own is certain. (The lock word has it too; but a load of what a read-modify-write has
    /// just written costs 5 ns.)
    #[inline(always)]
    fn owner(&self) -> &AtomicU32 {
        &self.raw.queue().room()[1]
    }

    /// glibc's `__nusers`: the threads that wait on a condition variable and will take this mutex back. Read and written by the
    /// thread that holds the mutex, but for the look of a destroyer.
    #[inline(always)]
    fn waiters(&self) -> &AtomicU32 {
        &self.raw.queue().room()[2]
    }

    /// glibc's `__kind`.
    #[inline(always)]
    fn kind_word(&self) -> &AtomicU32 {
        &self.raw.queue().room()[3]
    }

    #[inline(always)]
    fn kind(&self) -> u32 {
        self.kind_word().load(Relaxed)
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
        if is_plain(kind) || !self.is_owned_by(token) {
            return None;
        }
        if kind & TYPE == ERRORCHECK {
            return Some(busy);
        }
        match self.depth().load(Relaxed).checked_add(1) {
            Some(depth) => {
                self.depth().store(depth, Relaxed);
                Some(0)
            }
            None => Some(EAGAIN),
        }
    }

    #[inline(always)]
    fn is_owned_by(&self, token: u32) -> bool {
        self.owner().load(Relaxed) == token
    }

    /// After an acquisition; returns 0.
    #[inline(always)]
    fn acquired_by(&self, token: u32) -> c_int {
        if !self.is_plain() {
            self.owner().store(token, Relaxed);
        }
        0
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

    #[cold]
    #[inline(never)]
    fn lock_slow(&self, token: u32) -> c_int {
        cancel::deferred(|| self.raw.lock());
        self.acquired_by(token)
    }

    #[inline(always)]
    fn try_lock(&self) -> c_int {
        let token = thread_id();
        match self.lock_again(token, EBUSY) {
            Some(result) => result,
            None if self.raw.try_lock_busy(token) => self.acquired_by(token),
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
        match unsafe { time::deadline(clock, time) } {
            None => EINVAL,
            Some(deadline) if cancel::deferred(|| self.raw.lock_until(deadline)) => self.acquired_by(token),
            Some(Deadline { .. }) => ETIMEDOUT,
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
        let depth = self.depth().load(Relaxed);
        if depth > 0 {
            self.depth().store(depth - 1, Relaxed);
            return 0;
        }
        self.owner().store(0, Relaxed);
        self.release()
    }

    /// Before a wait on a condition variable: prepares the release of a mutex that is ours, however deep it is held, and
    /// returns the depth, with which [`Mutex::hold_again`] restores it; or EPERM.
    pub(crate) fn check_wait(&self) -> Result<u32, c_int> {
        let mut depth = 0;
        if !self.is_plain() {
            if !self.is_owned_by(thread_id()) {
                return Err(EPERM);
            }
            self.owner().store(0, Relaxed);
            depth = self.depth().swap(0, Relaxed);
        }
        self.count_waiter(1);
        Ok(depth)
    }

    /// No read-modify-write: the calling thread holds the mutex. Not below 0: a program may initialise the mutex anew
    /// meanwhile.
    fn count_waiter(&self, change: i32) {
        self.waiters().store(self.waiters().load(Relaxed).saturating_add_signed(change), Relaxed);
    }

    /// After the wait, with the mutex held again.
    pub(crate) fn hold_again(&self, depth: u32) {
        self.count_waiter(-1);
        self.acquired_by(thread_id());
        if depth > 0 {
            self.depth().store(depth, Relaxed);
        }
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
            Fast::Threaded if this.raw.try_lock_calm(token) => return 0,
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
unsafe fn unlock_elsewhere(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's mutex.
    let this = unsafe { Mutex::at(mutex) };
    if this.is_ours() {
        return if this.is_plain() { this.release() } else { this.unlock_owned(thread_id()) };
    }
    // SAFETY: the caller's mutex.
    unsafe { real::pthread_mutex_unlock(mutex) }
}
