//! `pthread_cond_*`.
//!
//! The object (48 bytes in glibc): references to it of signalled waiters; our condition variable, within
//! which is `__wrefs` at glibc's place (see [`fields`]), whose two lowest bits are written by glibc's own
//! initialiser: process-shared, and clock. Where that place is depends on glibc's version (2.41 moved it), so
//! it is found once, by initialising a scratch object (`probe`).
//!
//! # Which mutex
//!
//! | condition variable | mutex  | served by                                                                       |
//! |--------------------|--------|---------------------------------------------------------------------------------|
//! | ours               | ours   | us: a signal wakes the waiter, or defers that to the release of the mutex       |
//! | ours               | glibc's| us: a signal wakes the waiter, which then locks through glibc                   |
//! | glibc's (shared)   | glibc's| glibc                                                                           |
//! | glibc's (shared)   | ours   | us from then on: a private mutex shows that no other process takes part         |

use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::mem::{align_of, offset_of, size_of};
use core::sync::atomic::{AtomicU32, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};

use libc::{EBUSY, EINVAL, EOWNERDEAD, ETIMEDOUT};
use libc::{clockid_t, pthread_cond_t, pthread_condattr_t, pthread_mutex_t, timespec};
use spinpark_linux::clock_of;
use spinpark_locks::{RawCondvar, WaitResult, Waiter, WaiterRefs};
use spinpark_platform::{Clock, Deadline, Platform, Threads};

use crate::fields::{self, Linux, MONOTONIC, Policy, SHARED};
use crate::mutex::Mutex;
use crate::{cancel, leave, mode, mutex, real};

/// Ours in a process-shared object that is used with a private mutex. (glibc's bit for "being destroyed",
/// which it never sees: such an object does not go to glibc any more.)
const TAKEN_OVER: u32 = 4;
/// glibc counts its waiters from this bit on.
const WAITER_SHIFT: u32 = 3;

/// What our queue needs for itself, in words from the start: the word, the queue lock, the head.
const OURS: [usize; 4] = [2, 8, 10, 11];

/// How long a destroyer sleeps between two checks of a waiter that returns at its deadline.
const LEAVING_NS: u64 = 50_000;

/// Our view of a `pthread_cond_t`.
#[repr(C)]
struct Cond {
    refs: WaiterRefs<Linux>,
    /// In its padding or its gap: glibc's flags.
    raw: RawCondvar<Linux, Policy>,
}

const _: () = assert!(size_of::<Cond>() == size_of::<pthread_cond_t>());
const _: () = assert!(align_of::<Cond>() <= align_of::<pthread_cond_t>());
const _: () = assert!(offset_of!(Cond, raw) == fields::COND_QUEUE_AT);

impl Cond {
    /// # Safety
    ///
    /// `cond` points to a condition variable, which lives for `'a`.
    #[inline(always)]
    unsafe fn at<'a>(cond: *const pthread_cond_t) -> &'a Self {
        // SAFETY: the caller's pointer; size and alignment fit; every field in use is atomic.
        unsafe { &*cond.cast() }
    }

    #[inline(always)]
    fn flags(&self) -> &AtomicU32 {
        fields::cond_flags(self.raw.queue())
    }

    #[inline(always)]
    fn is_ours(&self) -> bool {
        // Acquire: of an object that was taken over, the queue as it was made empty for that.
        mode::ours() && {
            let flags = self.flags().load(Acquire);
            flags & !MONOTONIC == 0 || Self::is_ours_by(flags)
        }
    }

    /// Shared, taken over, or waited for through glibc's own functions, past the drop-in: then the process
    /// ends. Neither side can wake the other's waiters.
    #[cold]
    #[inline(never)]
    fn is_ours_by(flags: u32) -> bool {
        if flags & SHARED == 0 {
            if flags >> WAITER_SHIFT != 0 {
                Linux::overwritten(0);
            }
            return true;
        }
        flags & TAKEN_OVER != 0
    }

    fn clock(&self) -> Clock {
        if self.flags().load(Relaxed) & MONOTONIC == 0 { Clock::Realtime } else { Clock::Monotonic }
    }

    /// A process-shared object meets a private mutex: it is ours from now on, unless glibc has waiters in it.
    ///
    /// Waiters hold their mutex here, and there may be one mutex only, so no two threads do this at a time. A
    /// signaller need not hold it: so what glibc has counted where our queue lies is gone before the object
    /// is ours.
    #[cold]
    fn take_over(&self) -> bool {
        let flags = self.flags().load(Relaxed);
        if flags >> WAITER_SHIFT != 0 {
            return false;
        }
        let words = core::ptr::from_ref(self).cast::<AtomicU32>();
        for at in OURS {
            // SAFETY: words of the object which are ours to write to: all of them are atomic or touched only
            // under the queue's lock, and before this nothing of ours was in them.
            unsafe { &*words.wrapping_add(at) }.store(0, Relaxed);
        }
        self.refs.reset();
        // Release: pairs with `is_ours`.
        self.flags().compare_exchange(flags, flags | TAKEN_OVER, AcqRel, Relaxed).is_ok()
    }
}

/// One wait, as the cancellation handler needs it.
struct Waiting<'a> {
    cond: &'a Cond,
    mutex: *mut pthread_mutex_t,
    ours: Option<&'a Mutex>,
    depth: u32,
    /// It is counted as a user of glibc's mutex.
    is_user: Cell<bool>,
    waiter: Waiter<Linux, Policy>,
}

impl<'a> Waiting<'a> {
    fn new(cond: &'a Cond, mutex: *mut pthread_mutex_t, ours: Option<&'a Mutex>, depth: u32) -> Self {
        let waiter = ours.map_or_else(Waiter::without_mutex, |mutex| Waiter::with_mutex(&mutex.raw));
        let waiter = waiter.cancellable(&cond.refs);
        Self { cond, mutex, ours, depth, is_user: Cell::new(false), waiter }
    }

    fn release_mutex(&self) -> c_int {
        match self.ours {
            Some(mutex) => {
                mutex.raw.unlock_to_wait();
                0
            }
            None => {
                // SAFETY: the caller of the wait vouches for its mutex, in which glibc's fields are where
                // they are in ours.
                let theirs = unsafe { Mutex::at(self.mutex) };
                self.is_user.set(theirs.owner().load(Relaxed) == Linux::thread_token());
                self.add_user(1);
                // SAFETY: as above.
                let error = unsafe { mutex::unlock_general(self.mutex) };
                if error != 0 {
                    self.add_user(u32::MAX);
                }
                error
            }
        }
    }

    /// A waiter is a user of its mutex, as it is in glibc's own waits: glibc does not destroy a mutex that
    /// has users. It counts them while it holds the mutex, and so does this: a thread that does not own it is
    /// no user.
    fn add_user(&self, number: u32) {
        if self.is_user.get() {
            // SAFETY: as in `release_mutex`.
            unsafe { Mutex::at(self.mutex) }.users().fetch_add(number, Relaxed);
        }
    }

    fn finish(&self, is_cancelled: bool) -> WaitResult {
        let result = self.cond.raw.finish(&self.waiter);
        if result == WaitResult::Signalled {
            self.cond.raw.settle(&self.waiter, is_cancelled);
        }
        result
    }

    /// Ends the wait with the mutex held; an errno if the mutex has one to tell (a robust one).
    ///
    /// A cancelled waiter's signal is passed on first: the condition variable may be destroyed by a thread
    /// that holds the mutex.
    fn end(&self, is_cancelled: bool) -> (WaitResult, c_int) {
        let result = self.finish(is_cancelled);
        let error = match self.ours {
            Some(mutex) if self.waiter.reacquire_shared(result, &mutex.raw) => {
                mutex.hold_again(self.depth);
                0
            }
            Some(mutex) => mutex.hold_in_glibc_again(self.depth),
            None => {
                // SAFETY: the caller of the wait vouches for its mutex.
                let error = unsafe { real::pthread_mutex_lock(self.mutex) };
                if error == 0 || error == EOWNERDEAD {
                    self.add_user(u32::MAX);
                }
                error
            }
        };
        (result, error)
    }

    fn wait(&self, deadline: Option<Deadline>) -> c_int {
        spinpark_linux::set_queued(true);
        self.cond.raw.enqueue(&self.waiter);
        let error = self.release_mutex();
        if error != 0 {
            self.finish(true);
            return error;
        }
        cancel::with_handler(self, cancelled, |sleep| self.waiter.sleep(deadline, sleep));
        match self.end(false) {
            (_, error) if error != 0 => error,
            (WaitResult::TimedOut, _) => ETIMEDOUT,
            (WaitResult::Signalled, _) => 0,
        }
    }
}

/// The thread was cancelled in its sleep: the mutex must be held when the user's own handlers run, and a
/// signal that came first goes to the next waiter.
unsafe extern "C" fn cancelled(argument: *mut c_void) {
    // SAFETY: `with_handler` got this context, which lives in a frame below this one.
    let waiting = unsafe { &*argument.cast::<Waiting<'_>>() };
    match spinpark_linux::call() {
        Some(call) => leave::being_left(call, || waiting.end(true)),
        None => waiting.end(true),
    };
    spinpark_linux::set_queued(false);
}

/// Which function was called.
#[derive(Clone, Copy)]
enum WaitFunction {
    Wait,
    Timed,
    Clock(clockid_t, Clock),
}

impl WaitFunction {
    /// glibc's function, with the caller's arguments.
    ///
    /// # Safety
    ///
    /// As POSIX has it.
    #[cold]
    unsafe fn real(
        self,
        cond: *mut pthread_cond_t,
        mutex: *mut pthread_mutex_t,
        time: *const timespec,
    ) -> c_int {
        match self {
            // SAFETY: the caller's pointers.
            Self::Wait => unsafe { real::pthread_cond_wait(cond, mutex) },
            // SAFETY: the caller's pointers.
            Self::Timed => unsafe { real::pthread_cond_timedwait(cond, mutex, time) },
            // SAFETY: the caller's pointers.
            Self::Clock(clock, _) => unsafe { real::pthread_cond_clockwait(cond, mutex, clock, time) },
        }
    }
}

/// Waits; `time` is null for ever.
///
/// # Safety
///
/// As POSIX has it: `cond` is initialised, `mutex` is held by this thread, `time` points to a timespec or is
/// null.
#[inline(never)] // for the drop-in's size
unsafe fn wait_by(
    call: WaitFunction,
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    time: *const timespec,
) -> c_int {
    // SAFETY: the caller's condition variable.
    let this = unsafe { Cond::at(cond) };
    // SAFETY: the caller's mutex.
    let ours = Some(unsafe { Mutex::at(mutex) }).filter(|mutex| mutex.keep_to_wait());
    if !this.is_ours() {
        if ours.is_none() {
            // SAFETY: the caller's pointers.
            return unsafe { call.real(cond, mutex, time) };
        }
        if !this.take_over() {
            return EINVAL; // two mutexes at a time
        }
    }
    let mut deadline = None;
    if !time.is_null() {
        let clock = if let WaitFunction::Clock(_, known) = call { known } else { this.clock() };
        // SAFETY: the caller's timespec.
        deadline = unsafe { spinpark_linux::deadline(clock, time) };
        if deadline.is_none() {
            return EINVAL;
        }
    }
    // The wait itself is the only place to be cancelled in, whatever the type.
    leave::always_deferred(|| match ours.map_or(Ok(0), Mutex::check_wait) {
        Ok(depth) => Waiting::new(this, mutex, ours, depth).wait(deadline),
        Err(error) => error,
    })
}

/// `pthread_cond_init`.
///
/// # Safety
///
/// As POSIX has it.
pub(crate) unsafe extern "C" fn init(
    cond: *mut pthread_cond_t,
    attributes: *const pthread_condattr_t,
) -> c_int {
    if mode::ours() {
        // Also what glibc's initialiser leaves, but for its own fields: it is not relied on to clear the
        // rest. SAFETY: the caller's memory for an object; all zero is its static initialiser.
        unsafe { cond.write_bytes(0, 1) };
        if attributes.is_null() {
            return 0;
        }
    }
    // SAFETY: the caller's pointers.
    unsafe { real::pthread_cond_init(cond, attributes) }
}

/// `pthread_cond_destroy`: EBUSY while threads wait that have not been signalled. Waits for those that are
/// just returning at their deadline, and for those that were signalled but have not run since.
///
/// # Safety
///
/// As POSIX has it.
pub(crate) unsafe extern "C" fn destroy(cond: *mut pthread_cond_t) -> c_int {
    // SAFETY: the caller's condition variable.
    let this = unsafe { Cond::at(cond) };
    if !this.is_ours() {
        // SAFETY: the caller's condition variable.
        return unsafe { real::pthread_cond_destroy(cond) };
    }
    while !this.raw.is_idle_with(&this.refs) {
        if this.raw.is_waited_on() {
            return EBUSY;
        }
        spinpark_linux::sleep_for(LEAVING_NS);
    }
    0
}

/// `pthread_cond_wait`, a cancellation point: EPERM (error checking, recursive), and what a robust mutex has
/// to tell.
///
/// # Safety
///
/// As POSIX has it.
pub(crate) unsafe extern "C" fn wait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's pointers.
    unsafe { wait_by(WaitFunction::Wait, cond, mutex, core::ptr::null()) }
}

/// `pthread_cond_timedwait`, a cancellation point, on the condition variable's clock: ETIMEDOUT, EINVAL,
/// EPERM.
///
/// # Safety
///
/// As POSIX has it.
pub(crate) unsafe extern "C" fn timed_wait(
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    time: *const timespec,
) -> c_int {
    // SAFETY: the caller's pointers.
    unsafe { wait_by(WaitFunction::Timed, cond, mutex, time) }
}

/// `pthread_cond_clockwait`, a cancellation point, on either clock: ETIMEDOUT, EINVAL, EPERM.
///
/// # Safety
///
/// As POSIX has it.
pub(crate) unsafe extern "C" fn clock_wait(
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    time: *const timespec,
) -> c_int {
    let Some(known) = clock_of(clock) else { return EINVAL };
    // SAFETY: the caller's pointers.
    unsafe { wait_by(WaitFunction::Clock(clock, known), cond, mutex, time) }
}

/// `pthread_cond_signal`.
///
/// # Safety
///
/// As POSIX has it.
#[inline(never)] // for the drop-in's size: C11's calls this one
pub(crate) unsafe extern "C" fn signal(cond: *mut pthread_cond_t) -> c_int {
    // SAFETY: the caller's condition variable.
    let this = unsafe { Cond::at(cond) };
    if this.is_ours() {
        this.raw.send(false);
        return 0;
    }
    // SAFETY: the caller's condition variable.
    unsafe { real::pthread_cond_signal(cond) }
}

/// `pthread_cond_broadcast`.
///
/// # Safety
///
/// As POSIX has it.
#[inline(never)] // for the drop-in's size: C11's calls this one
pub(crate) unsafe extern "C" fn broadcast(cond: *mut pthread_cond_t) -> c_int {
    // SAFETY: the caller's condition variable.
    let this = unsafe { Cond::at(cond) };
    if this.is_ours() {
        this.raw.send(true);
        return 0;
    }
    // SAFETY: the caller's condition variable.
    unsafe { real::pthread_cond_broadcast(cond) }
}
