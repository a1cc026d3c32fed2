//! The slow way out: lock the queue, let go and choose in one step, then tell.
//!
//! ```text
//! release_slow:  A  lock the queue while still holding the lock
//!                B  in one compare-exchange, release and: grant the lock to all readers at the head
//!                                                         or hand it over to a head that starved
//!                                                         or set WAKING for a head that sleeps
//!                                                         or wake a real-time head beside WAKING (T12)
//!                                                         or end the waits that the holder has signalled
//!                                                         or leave it to threads that are awake
//!                   and pop whom that concerns; then look again, without the release
//!                C  unlock the queue
//!                D  notify the dequeued waiters
//! ```
//!
//! If another thread has the queue locked, the release leaves steps B (but for letting go), C and D to that thread (V1):
//!
//! ```text
//! release_pinned:  1  pin the queue and ask its holder to look; fails if the queue is unlocked meanwhile: then A
//!                  2  let go
//!                  3  unpin: the last access
//! holder:          4  wait until there are no pins; look; unlock, unless asked again
//! ```
//!
//! The queue lock is unlocked *after* the release (C after B). That is no access to a lock that might be gone (R1): in
//! B the queue is not empty, and a thread that is in it, or was dequeued from it, is still inside a call on this lock and
//! cannot get out of it before C (if it is queued, because leaving takes the queue lock) or D (if it was dequeued).

use spinpark_platform::{
    AtomicU32, Event, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
    Ordering::Release as ReleaseOrder, Platform,
};

use super::plan::{Action, Plan};
use super::spin::has_no_cpu_to_spare;
use super::LockCore;
use crate::queue::{Ask, Chain, QueueGuard, WaitNode, BESIDE, GRANTED, RELEASED, WOKEN};
use crate::word::{self, Release};

/// What a look at the queue led to.
pub(super) struct Look<P: Platform> {
    /// These hold the lock.
    granted: Chain<P>,
    /// This one is to contend for the lock.
    woken: Chain<P>,
    /// So is this real-time one, beside another.
    beside: Chain<P>,
    /// These were signalled by the lock's holder: they lock it as any thread.
    told: Chain<P>,
    /// The release was made on the way. Not if the queue was empty.
    released: bool,
}

impl<P: Platform> Look<P> {
    pub(super) const fn new() -> Self {
        Self {
            granted: Chain::new(),
            woken: Chain::new(),
            beside: Chain::new(),
            told: Chain::new(),
            released: false,
        }
    }

    /// Adds the waiters that `later`, a look without a release, has dequeued.
    pub(super) fn append(&mut self, later: Self) {
        self.granted.append(later.granted);
        self.woken.append(later.woken);
        self.beside.append(later.beside);
        self.told.append(later.told);
    }

    /// D: tells the waiters that the look dequeued. The queue is unlocked.
    pub(super) fn deliver(self) {
        self.granted.notify_all(GRANTED);
        self.woken.notify_all(WOKEN);
        self.beside.notify_all(BESIDE);
        self.told.notify_all(RELEASED);
    }
}

impl<P: Platform> LockCore<P> {
    /// T5 with flags set, or with a word that changes under us.
    #[cold]
    #[inline(never)]
    pub(crate) fn release_slow(&self, release: Release) {
        self.adopt();
        let generation = P::generation();
        loop {
            let seen = self.word().load(Acquire);
            if word::is_foreign(seen) {
                return self.release_foreign(seen);
            }
            let after = word::released(seen, release);
            if word::needs_service(seen, after, release, self.returns(seen, release)) {
                // V1: a reader that leaves others inside asks for nothing. A look without its release could do no more, and the
                // next release looks again; but the pins of a stream of such readers would keep the holder from unlocking.
                let stays = release == Release::Read && word::readers(after) > 0;
                let ask = if stays { Ask::Nothing } else { Ask::ServicePinned };
                let Some(mut queue) = self.lock_queue_or(ask) else {
                    if !stays {
                        return self.release_pinned(release, seen, generation);
                    }
                    if self.word().compare_exchange_weak(seen, after, ReleaseOrder, Relaxed).is_ok() {
                        return; // the last access
                    }
                    continue;
                }; // A
                let look = self.look(&mut queue, Some(release)); // B
                drop(queue); // C
                let released = look.released;
                look.deliver(); // D
                if released {
                    return;
                }
            } else if self.word().compare_exchange_weak(seen, after, ReleaseOrder, Relaxed).is_ok() {
                return; // the last access
            }
        }
    }

    /// T5, with a demand on behalf of the head; on `false` nothing was done. If readers have come in meanwhile, the look that
    /// releases also ends the demand (H2).
    #[cold]
    #[inline(never)]
    pub(super) fn release_to_head(&self, release: Release) -> bool {
        let mut queue = self.lock_queue();
        if queue.head().is_none() {
            return false;
        }
        let before = self.word().fetch_or(word::HANDOFF, ReleaseOrder); // H1: the caller holds the lock
        if word::is_timed(before) {
            self.word().fetch_and(!word::TIMED, Relaxed); // H3: no reader is to come in before its release
        }
        let look = self.look(&mut queue, Some(release));
        drop(queue);
        let released = look.released;
        look.deliver();
        released
    }

    /// V1: releases, whatever the word is by now, and leaves the look to the thread that has the queue locked. That thread's
    /// priority is not this one's: so a real-time thread ends a demand itself (H2), of whatever head.
    fn release_pinned(&self, release: Release, seen: u32, generation: u32) {
        let mut seen = seen;
        let after = |seen| word::released(Plan::without_lower_demand::<P>(seen, release, 0), release);
        while let Err(now) = self.word().compare_exchange_weak(seen, after(seen), ReleaseOrder, Relaxed) {
            seen = now;
        }
        if word::is_foreign(seen) {
            P::futex_wake(self.word(), 1); // X3
        }
        // A handler may have forked meanwhile: the pin is the parent's.
        if P::generation() == generation {
            self.queue().unpin(); // the last access
        }
    }

    /// Whether the releasing thread is about to come back for the lock, so that a head that keeps its own time is better left
    /// asleep.
    pub(super) fn returns(&self, seen: u32, release: Release) -> bool {
        release == Release::Write
            && word::is_timed(seen)
            && has_no_cpu_to_spare::<P>()
            && P::returns_soon(self.key())
    }

    /// Gives up part of a hold in favour of others: `change` maps the word. The caller still holds the lock
    /// afterwards, so the queue can be looked at then.
    pub(crate) fn downgrade(&self, change: impl Fn(u32) -> u32) {
        let mut seen = self.peek();
        while let Err(now) = self.word().compare_exchange_weak(seen, change(seen), ReleaseOrder, Relaxed) {
            seen = now;
        }
        if word::has_waiters(seen) {
            self.look_now();
        }
    }

    /// Takes over waiters that were dequeued from a condition variable's queue: they sleep on, in this queue.
    ///
    /// `defers`: the calling thread holds the lock, and its release is to end their waits. Those whom it gives back are to be
    /// told by the caller: others queue already, and would be served before them; or another thread has the queue locked, for
    /// which a signal does not wait.
    ///
    /// Nothing here is touched after the queue lock is released and before the notification: as soon as they are all
    /// served, the last of them may free the lock.
    #[cold]
    #[inline(never)]
    pub(crate) fn absorb(&self, mut waiters: Chain<P>, defers: bool) -> Chain<P> {
        let Some(mut queue) = self.lock_queue_or(Ask::Nothing) else { return waiters };
        let calm = match queue.head() {
            None => self.peek() & word::FLAGS == 0,
            // Beside a woken waiter (after a fair release) the next release would leave the queue to that one.
            Some(head) => head.is_deferred() && !word::is_waking(self.peek()),
        };
        if defers && !calm {
            return waiters;
        }
        while let Some(waiter) = waiters.pop() {
            P::event(if defers { Event::DeferredWake } else { Event::MovedWaiter });
            waiter.move_to(&mut queue, defers);
        }
        let look = self.look(&mut queue, None);
        drop(queue);
        look.deliver();
        waiters
    }

    /// B: lets in, or wakes, the head of the queue, if there is room after `release` (or, without one,
    /// now) and no other thread will see to it; then the next one. Leaves `WAITERS` right for what is queued (W1).
    pub(super) fn look(&self, queue: &mut QueueGuard<'_, P>, release: Option<Release>) -> Look<P> {
        let mut release = release;
        let mut look = Look::new();
        let mut seen = self.peek();
        loop {
            if word::is_foreign(seen) {
                look.told.append(Plan { word: seen, action: Action::TellAll }.pop(queue)); // X2
                break;
            }
            let returns = release.is_some_and(|release| self.returns(seen, release));
            let Some(plan) = Plan::choose(seen, release, returns, queue) else { break };
            // A reader that leaves and one that comes in for it make no difference to the word, and are to be made all the
            // same. To tell waiters, or wake one beside another, makes no difference to it either, if others stay.
            let pops = matches!(plan.action, Action::Tell | Action::WakeBeside);
            if plan.word == seen && release.is_none() && !pops {
                break; // nothing to do, and nothing left to release
            }
            if let Err(now) = self.word().compare_exchange_weak(seen, plan.word, AcqRel, Relaxed) {
                seen = now;
                continue;
            }
            let before = core::mem::replace(&mut seen, plan.word);
            if word::wants_handoff(before & !seen) && matches!(plan.action, Action::Wake | Action::Nothing) {
                P::event(Event::WithdrewDemand);
            }
            // Those behind it come after a real-time waiter: the thread that settles `WAKING` looks again.
            let is_last = matches!(plan.action, Action::Wake | Action::WakeBeside)
                && queue.head().is_some_and(WaitNode::is_realtime);
            look.released |= release.take().is_some();
            match plan.action {
                Action::Nothing => {}
                Action::Wake => look.woken.append(plan.pop(queue)),
                Action::WakeBeside => look.beside.append(plan.pop(queue)),
                Action::Tell | Action::TellAll => look.told.append(plan.pop(queue)),
                Action::Grant(_) | Action::HandOver => look.granted.append(plan.pop(queue)),
            }
            // If the calling thread holds the lock, it is the one that releases it, later, and sees its own mark.
            if word::marks_in_passing(before, seen)
                && !queue.had_attention()
                && word::owner(before) != P::thread_token()
            {
                P::heavy_fence(); // A1
                seen = self.peek();
            } else if is_last {
                break;
            }
        }
        look
    }
}
