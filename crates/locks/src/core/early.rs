//! Early wakes: a waiter's thread is woken before a release has chosen it. Hints, on which nothing relies.
//!
//! - **E1** Where CPUs are to spare, a woken waiter that has waited for long wakes waiters behind it: their
//!   threads see that they have not been notified, and sleep again, in the queue as before. To wake a thread
//!   whose CPU sleeps deeply takes a third of a millisecond, which for hundreds of waiters that are woken one at
//!   a time adds up to a tenth of a second. A thread that was woken early wakes fast the next time.
//! - **E2** On two CPUs, a release leaves a `TIMED` head asleep if its thread is taken to come back at once
//!   ([`comes_back`](LockCore::comes_back)). If that thread goes to sleep for another lock or a condition variable
//!   first, it wakes the head, which rechecks the lock at once: the head may hold what the thread waits for, and
//!   there may be no other thread that runs. The thread does not touch the lock, which may be gone, but finds a
//!   note of the word that the head sleeps on ([`notes_sleep`](spinpark_platform::Futex::notes_sleep)). The head's
//!   timer ends as before.
//!
//! Either changes nothing but the state of a node, and is as harmless as a wake-up for no reason.

use spinpark_platform::Platform;

use super::patience::Patience;
use super::LockCore;
use crate::policy::{Asleep, EarlyWakes, Policy};
use crate::queue::{EarlyWake, HasQueue, Slept, WaitNode};
use crate::word;

// ---- E1: waiters that may be deep asleep

impl<P: Platform, Q: Policy<P>> LockCore<P, Q> {
    /// The woken waiter of `node` wakes waiters behind it early, if it has waited for long.
    pub(super) fn wake_others_early(
        &self,
        node: &WaitNode<P>,
        patience: Patience,
        wakes: Option<EarlyWakes>,
    ) {
        let seen = self.peek();
        // A promised lock is idle until it is taken.
        let waits = node.want.is_write()
            && !node.is_realtime()
            && word::has_waiters(seen)
            && !word::is_promised(seen);
        let Some(wakes) = wakes.filter(|_| waits) else { return };
        if patience.waited::<P, Q>() >= wakes.after_ns {
            self.wake_early(wakes, !node.was_woken_early(wakes.late_ns));
        }
    }

    /// Wakes the first waiters of the queue early: many if the woken thread that calls came `late`, else one
    /// or two more.
    #[cold]
    #[inline(never)]
    fn wake_early(&self, wakes: EarlyWakes, late: bool) {
        let mut woken = [const { None }; EarlyWakes::MOST];
        let (first, most) = if late { (wakes.late, wakes.late) } else { (wakes.among, wakes.in_time) };
        let Some(queue) = self.try_lock_queue() else { return };
        let sleepers = queue.iter().take(first).filter(|node| node.want.is_write());
        for (place, node) in
            woken.iter_mut().take(most).zip(sleepers.filter_map(|node| node.wake_early(late)))
        {
            *place = Some(node);
        }
        drop(queue);
        woken.into_iter().flatten().for_each(EarlyWake::wake);
    }
}

// ---- E2: a head that a release may leave asleep

impl<P: Platform, Q: Policy<P>> LockCore<P, Q> {
    /// Whether a release may leave the waiter asleep because its thread comes back for the lock
    /// ([`LockCore::comes_back`]).
    pub(super) fn may_be_left(&self, node: &WaitNode<P>, patience: Patience) -> bool {
        Q::sleeps(Asleep::MayBeLeft) && node.want.is_write() && !node.is_realtime() && patience.may_be_left()
    }

    /// Such a waiter sleeps on `word`, and is due if its note was taken.
    pub(super) fn sleep_with_note(&self, word: &P::AtomicU32, sleep: impl FnOnce() -> Slept) -> Slept {
        P::notes_sleep(self.key(), word);
        let slept = sleep();
        if P::sleep_note_was_taken(self.key(), word) {
            Slept::Due
        } else {
            slept
        }
    }
}

impl Patience {
    /// Whether it keeps its own time, and has not requested the lock: a pause between two requests is not cut
    /// short.
    fn may_be_left(self) -> bool {
        self.rechecks() && self.request == 0
    }
}
