//! The fork handler: what must run first in every forked child.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::{attach, cpu, generation, slots, thread};

/// Whether it is registered, or the layer above has taken it to register it.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The function that must run first in every forked child. A caller that takes it registers it; otherwise a
/// thread's first lock operation does, which is too late for handlers that were registered before it and use
/// locks.
pub fn take_over_fork_handler() -> unsafe extern "C" fn() {
    TAKEN.store(true, Relaxed);
    in_forked_child
}

/// Registers the handler, unless it is registered or taken; returns whether it did.
pub(crate) fn register() -> bool {
    if TAKEN.swap(true, Relaxed) {
        return false;
    }
    // SAFETY: registers a function that is sound to run in a forked child. It fails only without memory; then
    // locks on which threads waited at a fork are not usable in the child.
    unsafe { libc::pthread_atfork(None, None, Some(in_forked_child)) };
    true
}

/// The surviving thread has a new id, and every wait queue belongs to threads that are not here.
unsafe extern "C" fn in_forked_child() {
    attach::in_forked_child();
    if !crate::STARTED.load(Relaxed) {
        return; // locks are not in use
    }
    generation::in_forked_child();
    cpu::in_forked_child(thread::ask_token());
    slots::in_forked_child();
}
