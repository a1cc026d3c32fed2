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
use crate::policy::Policy;
use crate::queue::{EarlyWake, HasQueue, Slept, WaitNode};
use crate::word;

// ---- E1: waiters that may be deep asleep

/// A waiter that came late wakes this number early, from the head of the queue on, whether woken early
/// before or not. This and the next two are from the simulator (`notes/tuning.md`, "Longest waits").
const LATE_EARLY_WAKES: usize = 8;
/// One that came in time wakes this number early, of those that have not been: one for its own turn, and
/// one more.
const EARLY_WAKES: usize = 2;
/// How far from the head those may be. Further ones would sleep deeply again before their turns come.
const EARLY_WAKES_OF: usize = 16;

impl<P: Platform, Q: Policy<P>> LockCore<P, Q> {
    /// The woken waiter of `node` wakes waiters behind it early if it has waited for long.
    pub(super) fn wake_others_early(&self, node: &WaitNode<P>, patience: Patience) {
        let seen = self.peek();
        // A promised lock is idle until it is taken.
        let waits = node.want.is_write()
            && !node.is_realtime()
            && word::has_waiters(seen)
            && !word::is_promised(seen);
        if waits && Q::wakes_early() && patience.is_long::<P>() {
            self.wake_early(!node.was_woken_early(P::TUNING.deep_sleep_ns));
        }
    }

    /// Wakes the first waiters of the queue early: many if the woken thread that calls came `late`, else one
    /// or two more.
    #[cold]
    #[inline(never)]
    fn wake_early(&self, late: bool) {
        let mut woken = [const { None }; LATE_EARLY_WAKES];
        let (first, most) =
            if late { (LATE_EARLY_WAKES, LATE_EARLY_WAKES) } else { (EARLY_WAKES_OF, EARLY_WAKES) };
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

impl Patience {
    /// Whether it has waited for so long that others are to be woken early.
    fn is_long<P: Platform>(self) -> bool {
        self.waited::<P>() >= P::TUNING.longest_wait_ns / 2
    }
}

// ---- E2: a head that a release may leave asleep

impl<P: Platform, Q: Policy<P>> LockCore<P, Q> {
    /// Whether a release may leave the waiter asleep because its thread comes back for the lock
    /// ([`LockCore::comes_back`]).
    pub(super) fn may_be_left(&self, node: &WaitNode<P>, patience: Patience) -> bool {
        Q::leaves_asleep() && node.want.is_write() && !node.is_realtime() && patience.may_be_left()
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
