//! Other processes of the same user may read this one, if its user wants that.
//!
//! Where Yama restricts that to parents (`kernel.yama.ptrace_scope` 1), a process may name another that may, or
//! all. The kernel forgets it of a forked child. Elsewhere the call does nothing.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::{environment, raw, sandbox};

static ALLOWED: AtomicBool = AtomicBool::new(false);

/// With `SPINPARK_ALLOW_ATTACH=1`: lets all processes of this user read and debug this one. To be called when
/// the library is loaded.
pub fn allow_attach() {
    if environment::is_on(c"SPINPARK_ALLOW_ATTACH") {
        ALLOWED.store(true, Relaxed);
        raw::allow_tracers();
    }
}

/// A filter may have come meanwhile, and kill.
pub(crate) fn in_forked_child() {
    if ALLOWED.load(Relaxed) && !sandbox::is_confined() {
        raw::allow_tracers();
    }
}
