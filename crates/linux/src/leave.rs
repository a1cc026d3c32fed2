//! How a thread leaves a call that waits for a lock by unwinding: what it does first, and where it can be
//! cancelled.

use core::ffi::c_void;
use core::mem;
use core::ptr;
use core::sync::atomic::{compiler_fence, AtomicPtr, Ordering::Relaxed, Ordering::SeqCst};

use spinpark_platform::Wait;

use crate::thread::{self, Call};

/// Runs the sleep that it gets.
pub type Sleep = fn(&dyn Fn() -> Wait) -> Wait;
/// Ends the calling thread, with a value for `pthread_join`.
pub type Exit = fn(*mut c_void) -> !;

static SLEEP: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static EXIT: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// From now on every thread that waits for a lock sleeps by `sleep`, and ends by `exit` if it has put that
/// off: functions of the layer above, which knows cancellation.
pub fn leave_by(sleep: Sleep, exit: Exit) {
    SLEEP.store(sleep as *mut c_void, Relaxed);
    EXIT.store(exit as *mut c_void, Relaxed);
}

/// Ends the calling thread if it has put that off, where it can be left.
#[inline]
pub fn exit_if_put_off() {
    if let Some(value) = thread::take_exit(Call::innermost()) {
        exit(value);
    }
}

#[cold]
#[inline(never)]
fn exit(value: *mut c_void) {
    // SAFETY: null, or a function of this type.
    if let Some(exit) = unsafe { mem::transmute::<*mut c_void, Option<Exit>>(EXIT.load(Relaxed)) } {
        exit(value);
    }
}

pub(crate) fn sleep_cancellably(sleep: &dyn Fn() -> Wait) -> Wait {
    // SAFETY: null, or a function of this type.
    match unsafe { mem::transmute::<*mut c_void, Option<Sleep>>(SLEEP.load(Relaxed)) } {
        Some(by) => by(sleep),
        None => sleep(),
    }
}

/// What a thread does before it leaves: behind one pointer, so that a signal handler never finds half of it.
struct Leave<'a>(&'a dyn Fn());

/// See [`Futex::or_leave`](spinpark_platform::Futex::or_leave).
#[inline(always)]
pub(crate) fn or_leave<R>(leave: &dyn Fn(), body: impl FnOnce() -> R) -> R {
    let leave = Leave(leave);
    let outer = thread::set_leave(ptr::from_ref(&leave).cast());
    // A handler of this thread finds the pointer only during the body.
    compiler_fence(SeqCst);
    exit_if_put_off();
    let result = body();
    compiler_fence(SeqCst);
    thread::set_leave(outer);
    result
}

impl Call {
    /// Called when the thread leaves its innermost call by unwinding: runs what that needs. `false`: it
    /// cannot be left here.
    #[must_use]
    pub fn leave(&self) -> bool {
        let leave: *const Leave<'_> = self.take_leave().cast();
        if !self.is_queued() {
            return true;
        }
        // SAFETY: null, or in a frame of `or_leave` that the thread has not returned from: the unwinder is on
        // top of it.
        let Some(leave) = (unsafe { leave.as_ref() }) else { return false };
        (leave.0)();
        true
    }
}
