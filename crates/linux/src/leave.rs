//! How a thread leaves a call that waits for a lock by unwinding: what it does first, and where it can be cancelled.

use core::ffi::c_void;
use core::mem;
use core::ptr;
use core::sync::atomic::{compiler_fence, AtomicPtr, Ordering::Relaxed, Ordering::SeqCst};

use spinpark_platform::Wait;

use crate::thread;

/// Runs the sleep that it gets.
pub type Sleep = fn(&dyn Fn() -> Wait) -> Wait;

static SLEEP: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Has every thread that waits for a lock sleep by `sleep`, from now on: a function of the layer above, which knows cancellation.
pub fn sleep_by(sleep: Sleep) {
    SLEEP.store(sleep as *mut c_void, Relaxed);
}

pub(crate) fn sleep(sleep: &dyn Fn() -> Wait) -> Wait {
    // SAFETY: null, or a function of this type.
    match unsafe { mem::transmute::<*mut c_void, Option<Sleep>>(SLEEP.load(Relaxed)) } {
        Some(by) => by(sleep),
        None => sleep(),
    }
}

/// What a thread does before it leaves. Behind one pointer, which a signal handler finds whole.
struct Leave<'a>(&'a dyn Fn());

/// See [`Futex::or_leave`](spinpark_platform::Futex::or_leave).
#[inline(always)]
pub(crate) fn or_leave<R>(leave: &dyn Fn(), body: impl FnOnce() -> R) -> R {
    let leave = Leave(leave);
    let outer = thread::set_leave(ptr::from_ref(&leave).cast());
    // A handler of this thread finds the pointer during the body, and not else.
    compiler_fence(SeqCst);
    let result = body();
    compiler_fence(SeqCst);
    thread::set_leave(outer);
    result
}

/// The calling thread leaves its call by unwinding: does what that needs. `false`: the call was at a point where it cannot be left.
#[must_use]
pub fn leave() -> bool {
    let leave: *const Leave<'_> = thread::set_leave(ptr::null()).cast();
    // SAFETY: null, or in a frame of `or_leave` that the thread has not returned from: the unwinder is on top of it.
    let Some(leave) = (unsafe { leave.as_ref() }) else { return false };
    (leave.0)();
    true
}
