//! Fork: our handler runs first in the child, before any of the program's handlers uses a lock.
//!
//! Child handlers run in the order in which they were registered, and the textbook use (lock in the parent, unlock in
//! the child) is a lock operation in the child. So the drop-in also intercepts the registration: whichever comes first,
//! ours is registered before.

use core::ffi::{c_int, c_void};
use core::ptr;

use crate::{mode, real};

/// A fork handler.
pub type Handler = Option<unsafe extern "C" fn()>;

/// Registers our handler with glibc; once, from [`mode::start`].
pub(crate) fn start() {
    let ours = spinpark_linux::take_over_fork_handler();
    // SAFETY: the handler is sound to run in a forked child. A null handle: this library is never unloaded.
    unsafe { real::__register_atfork(None, None, Some(ours), ptr::null_mut()) };
}

/// `__register_atfork`, which `pthread_atfork` is a static stub for.
///
/// # Safety
///
/// As POSIX has it for `pthread_atfork`.
pub unsafe fn register(prepare: Handler, parent: Handler, child: Handler, library: *mut c_void) -> c_int {
    mode::start();
    // SAFETY: the caller's handlers.
    unsafe { real::__register_atfork(prepare, parent, child, library) }
}
