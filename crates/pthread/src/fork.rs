//! Fork: our handler runs first in the child, before any of the program's handlers uses a lock.
//!
//! Child handlers run in the order in which they were registered, and the textbook use (lock in the parent, unlock in
//! the child) is a lock operation in the child. So the drop-in also intercepts the registration: whichever comes first,
//! ours is registered before ([`mode::start`]).

use core::ffi::{c_int, c_void};

pub use crate::real::Handler;
use crate::{mode, real};

/// `__register_atfork`, which `pthread_atfork` is a static stub for.
///
/// # Safety
///
/// As POSIX has it for `pthread_atfork`.
pub unsafe fn register(prepare: Handler, parent: Handler, child: Handler, library: *mut c_void) -> c_int {
    mode::start(); // which registers our handler
    // SAFETY: the caller's handlers.
    unsafe { real::__register_atfork(prepare, parent, child, library) }
}
