//! How a signal goes on with the waiter whose wait it ends, and how that takes the mutex back.

use spinpark_platform::{AtomicU32, Ordering::Relaxed, Platform};

use super::{RawCondvar, WaitResult, Waiter, SIGNALLED_LAST};
use crate::core::{LockCore, Outcome};
use crate::mutex::RawMutex;
use crate::queue::WaitNode;
use crate::word::{self, Want};

/// What a signal does with a waiter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Wakes it.
    Wake,
    /// Leaves that to the calling thread's release of the mutex.
    Defer,
}

impl<P: Platform> RawCondvar<P> {
    /// The mutex that a dequeued waiter takes back.
    #[allow(unsafe_code)] // waiters remember their mutexes as pointers
    pub(super) fn mutex_of<'a>(waiter: &WaitNode<P>) -> Option<&'a LockCore<P>> {
        let queue = waiter.mutex;
        // SAFETY: the pointer came from a `LockCore` in `with_mutex`, and a waiter that has not been notified
        // yet is going to take that mutex back, so its mutex is alive (Q3).
        (!queue.is_null()).then(|| unsafe { LockCore::from_queue_ptr(queue) })
    }

    /// How to go on with a waiter. `defers`: what was found out for those before it.
    #[inline(never)]
    pub(super) fn way_to(waiter: &WaitNode<P>, defers: &mut Option<bool>) -> Way {
        let Some(mutex) = Self::mutex_of(waiter) else { return Way::Wake };
        if waiter.claim.load(Relaxed) == SIGNALLED_LAST {
            return Way::Wake; // C5
        }
        let holds = || word::owner(mutex.peek()) == P::thread_token();
        // It cannot run before the calling thread leaves its CPU, as far as is known.
        let shares_cpu = || P::cpus() == 1 || (waiter.only_cpu.is_some() && waiter.only_cpu == P::only_cpu());
        if holds() && (shares_cpu() || *defers.get_or_insert_with(|| P::waits_next(mutex.key()))) {
            Way::Defer
        } else {
            Way::Wake
        }
    }
}

impl<P: Platform> Waiter<P> {
    /// After [`RawCondvar::finish`]: takes the mutex back, from its queue if the wait was deferred there.
    pub fn reacquire(&self, result: WaitResult, mutex: &RawMutex<P>) {
        if !self.reacquire_shared(result, mutex) {
            P::overwritten(mutex.core().key());
        }
    }

    /// [`Waiter::reacquire`]; `false`: the mutex is not held, because other code has locked it
    /// ([`RawMutex::lock_shared`]).
    #[must_use]
    pub fn reacquire_shared(&self, result: WaitResult, mutex: &RawMutex<P>) -> bool {
        let outcome = match result {
            WaitResult::Signalled => mutex.core().wait_queued(&self.node, None),
            WaitResult::TimedOut => mutex.core().acquire(Want::Lock, self.node.token, None),
        };
        outcome == Outcome::Acquired
    }
}
