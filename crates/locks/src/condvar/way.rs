//! How a signal goes on with the waiter whose wait it ends.

use spinpark_platform::Platform;

use super::RawCondvar;
use crate::core::LockCore;
use crate::queue::WaitNode;
use crate::word;

/// What a signal does with a waiter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Wakes it.
    Wake,
    /// Leaves that to the calling thread's release of the mutex.
    Defer,
    /// Leaves it asleep until the mutex is its own.
    Move,
}

impl<P: Platform> RawCondvar<P> {
    /// The mutex that a popped waiter takes back.
    #[allow(unsafe_code)] // waiters remember their mutexes as pointers
    pub(super) fn mutex_of<'a>(waiter: &WaitNode<P>) -> Option<&'a LockCore<P>> {
        let queue = waiter.mutex;
        // SAFETY: the pointer came from a `LockCore` in `with_mutex`, and a waiter that has not been told yet is going to take
        // that mutex back, so its mutex is alive (Q3).
        (!queue.is_null()).then(|| unsafe { LockCore::from_queue_ptr(queue) })
    }

    /// How to go on with a waiter. `defers`: what was found out for those before it.
    #[inline(never)]
    pub(super) fn way_to(waiter: &WaitNode<P>, defers: &mut Option<bool>) -> Way {
        let Some(mutex) = Self::mutex_of(waiter) else { return Way::Wake };
        // It cannot run before the calling thread leaves its CPU, as far as is known.
        if P::cpus() == 1 || (waiter.only_cpu.is_some() && waiter.only_cpu == P::only_cpu()) {
            return Way::Move;
        }
        let holds = || word::owner(mutex.peek()) == P::thread_token();
        if holds() && *defers.get_or_insert_with(|| P::waits_next(mutex.key())) {
            Way::Defer
        } else {
            Way::Wake
        }
    }
}
