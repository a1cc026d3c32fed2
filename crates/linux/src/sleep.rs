//! How a thread sleeps that waits for a lock: as it is, or by a function of the layer above, which can clean up after a thread
//! that leaves its call by unwinding.

use core::ffi::c_void;
use core::mem;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use spinpark_platform::Wait;

/// Runs the first; the second runs if the thread leaves that by unwinding.
pub type Sleep = fn(&dyn Fn() -> Wait, &dyn Fn()) -> Wait;

static SLEEP: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Has every thread that waits for a lock sleep by `sleep`, from now on.
pub fn sleep_by(sleep: Sleep) {
    SLEEP.store(sleep as *mut c_void, Relaxed);
}

pub(crate) fn sleep(sleep: &dyn Fn() -> Wait, leave: &dyn Fn()) -> Wait {
    // SAFETY: null, or a function of this type.
    match unsafe { mem::transmute::<*mut c_void, Option<Sleep>>(SLEEP.load(Relaxed)) } {
        Some(by) => by(sleep, leave),
        None => sleep(),
    }
}
