//! The observer of locks' slow paths: a profiler, if one is there.
//!
//! It costs a load and a branch per event, on slow paths only: fast paths have no events.

use core::ffi::c_int;
use core::mem;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use spinpark_platform::{Event, Events};

use crate::memory::{LinuxWith, LockPadding};

/// A function that is called with the number of an [`Event`], in the thread to which it happens. It runs on a
/// slow path of a lock, so it must not use locks.
pub type Observer = extern "C" fn(event: c_int);

static OBSERVER: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

/// Installs an observer, or none, from now on.
pub fn observe(observer: Option<Observer>) {
    OBSERVER.store(observer.map_or(ptr::null_mut(), |observer| observer as *mut ()), Relaxed);
}

impl<R: LockPadding> Events for LinuxWith<R> {
    #[inline(always)]
    fn event(event: Event) {
        // SAFETY: null or a function that was installed; `Option<fn>` has null for `None`.
        let observer = unsafe { mem::transmute::<*mut (), Option<Observer>>(OBSERVER.load(Relaxed)) };
        if let Some(observer) = observer {
            observer(event as c_int);
        }
    }
}
