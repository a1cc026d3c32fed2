//! Deferred waiters: a condition variable's waiter that was signalled, and whose wake-up is left to the release of
//! the mutex (T10).
//!
//! - **D1** (no lost signal) A waiter is deferred only by the lock's writer, under the queue lock, and only if there
//!   are no flags, or the head is deferred and `WAKING` is not set. While the writer holds the lock, no wake pass
//!   sets `WAKING`, and `TIMED` is not set alongside a deferred head, nor a real-time one that comes before that. So
//!   the writer's release makes a wake pass (`needs_wake_pass`); unless a waiter came back before the deferred ones
//!   that had been woken without `WAKING` (L4, U1) and is `TIMED`: they may sleep until its own timer ends. A wake pass that finds a deferred head with the lock
//!   free notifies all that are deferred, unless a fair release has promised the lock to the head, or a waiter came
//!   back before it that had been woken without a mark: that is woken, and the others are notified by a later wake
//!   pass. A deferred waiter has no deadline; it is notified, woken by a promise, or appointed (L3), and nothing else
//!   ends its sleep. It then acquires as any thread (T1).

use spinpark_platform::{Event, Platform};

use super::LockCore;
use crate::policy::Policy;
use crate::queue::{Chain, HasQueue};
use crate::word;

impl<P: Platform, Q: Policy<P>> LockCore<P, Q> {
    /// Takes over waiters that were dequeued from a condition variable's queue: they sleep on, in this queue,
    /// until the release of the calling thread, which holds the lock, ends their waits.
    ///
    /// Those whom it gives back are to be notified by the caller: others queue already, and would be served
    /// before them; or another thread has the queue locked, for which a signal does not wait.
    ///
    /// Nothing here is touched after the queue lock is released and before the notification: as soon as they
    /// are all served, the last of them may free the lock.
    #[cold]
    #[inline(never)]
    pub(crate) fn absorb(&self, mut waiters: Chain<P>) -> Chain<P> {
        let Some(mut queue) = self.try_lock_queue() else { return waiters };
        let uncontended = match queue.head() {
            None => self.peek() & word::FLAGS == 0,
            // Alongside a woken waiter (after a fair release) the next release would leave the queue to that
            // one.
            Some(head) => head.is_deferred() && !word::is_waking(self.peek()),
        };
        if !uncontended {
            return waiters;
        }
        while let Some(waiter) = waiters.pop() {
            P::event(Event::DeferredWake);
            waiter.move_to(&mut queue);
        }
        let pass = self.wake_pass(&mut queue, None);
        drop(queue);
        pass.notify();
        waiters
    }
}
