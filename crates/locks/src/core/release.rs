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
//! B the queue is not empty, and a thread that is in it, or was popped from it, is still inside a call on this lock and
//! cannot get out of it before C (if it is queued, because leaving takes the queue lock) or D (if it was popped).

use spinpark_platform::{
    AtomicU32, Event, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
    Ordering::Release as ReleaseOrder, Platform,
};

use super::spin::has_no_cpu_to_spare;
use super::LockCore;
use crate::queue::{Ask, Chain, QueueGuard, WaitNode, BESIDE, GRANTED, RELEASED, WOKEN};
use crate::word::{self, Release, Want};

/// How far one release looks for readers to let in (rwsem's number): its own thread has work to do, and others wait
/// for the queue lock.
const READERS_PER_GRANT: usize = 256;

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

    /// Adds the waiters that `later`, a look without a release, has popped.
    pub(super) fn append(&mut self, later: Self) {
        self.granted.append(later.granted);
        self.woken.append(later.woken);
        self.beside.append(later.beside);
        self.told.append(later.told);
    }

    /// D: tells the waiters that the look popped. The queue is unlocked.
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
            if word::must_look(seen, after, release, self.returns(seen, release)) {
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
                if word::wants_handoff(seen) && !word::is_held(after) {
                    self.ends_lower_demand(&queue);
                }
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

    /// H2: the calling thread, which is about to leave the lock free, does not hand it over to a waiter of a lower priority.
    ///
    /// With the demand goes the `TIMED` of its pause (H3); beside `WAKING`, that is U1's.
    #[cold]
    #[inline(never)]
    fn ends_lower_demand(&self, queue: &QueueGuard<'_, P>) {
        if queue.head().is_some_and(|head| head.rank < P::priority()) {
            let pause = if word::is_waking(self.peek()) { 0 } else { word::TIMED };
            self.word().fetch_and(!(word::HANDOFF | pause), Relaxed); // H1: the caller holds the lock
        }
    }

    /// V1: releases, whatever the word is by now, and leaves the look to the thread that has the queue locked.
    fn release_pinned(&self, release: Release, seen: u32, generation: u32) {
        let mut seen = seen;
        while let Err(now) =
            self.word().compare_exchange_weak(seen, word::released(seen, release), ReleaseOrder, Relaxed)
        {
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

    /// Takes over waiters that were popped from a condition variable's queue: they sleep on, in this queue.
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

/// One way to go on: the word that records it, and whom it lets in.
struct Plan {
    word: u32,
    action: Action,
}

#[derive(Clone, Copy)]
enum Action {
    Nothing,
    /// Lets in so many readers.
    Grant(u32),
    HandOver,
    Wake,
    /// Wakes a real-time head, for which `WAKING` does not stand.
    WakeBeside,
    /// Ends the waits of those that the holder has signalled.
    Tell,
    /// Ends all waits (X2).
    TellAll,
}

impl Plan {
    /// What to do about the queue; `None` if it is empty.
    fn choose<P: Platform>(
        seen: u32,
        release: Option<Release>,
        returns: bool,
        queue: &QueueGuard<'_, P>,
    ) -> Option<Self> {
        let head = queue.head()?;
        let realtime = head.is_realtime();
        let seen = word::led_by(seen, realtime); // U1
        let after = release.map_or(seen, |release| word::released(seen, release));
        let next = queue.iter().nth(1);
        let nothing = Self { word: after | word::WAITERS, action: Action::Nothing };
        let wake = || Self {
            word: Self::without_head(after & !word::HANDOFF | word::WAKING, head.want, next),
            action: Action::Wake,
        };
        if !word::fits(after, head.want) {
            // L2: readers that come and go may pass this head; it must know that it is the head to time itself.
            let passed = release == Some(Release::Read) && matches!(head.want, Want::Write | Want::Upgrade);
            let timed = word::is_timed(seen) || word::is_waking(seen) || word::wants_handoff(seen);
            return Some(if passed && !timed { wake() } else { nothing });
        }
        // A fair release has promised the lock to the head.
        if head.is_deferred() && !word::wants_handoff(seen) {
            let others = queue.iter().find(|node| !node.is_deferred());
            return Some(Self { word: Self::without_head(after, head.want, others), action: Action::Tell });
        }
        if head.want.is_read() {
            if head.want == Want::ReadBehindWaiters && word::is_waking(seen) && !realtime {
                return Some(nothing); // behind the woken one, who looks here when it has settled
            }
            let room = word::MAX_READERS.saturating_sub(word::readers(after));
            // A real-time reader came before writers that have waited longer: it does not take the readers behind them along.
            let last = |node: &&WaitNode<P>| !realtime || node.want.is_read();
            let near = || queue.iter().take(READERS_PER_GRANT).take_while(last);
            let count = room.min(near().filter(|node| node.want.is_read()).count() as u32);
            let others = queue.iter().nth(count as usize); // real-time, only if all before it are let in
            let word = Self::without_head(after, head.want, others) + count * word::UNIT;
            return Some(Self { word, action: Action::Grant(count) });
        }
        if word::wants_handoff(seen) {
            let rest = Self::without_head(after, head.want, next);
            return Some(Self { word: word::taken(rest, head.want, head.token), action: Action::HandOver });
        }
        Some(match word::is_left_to_others(seen, returns) {
            true => nothing,
            false if !word::is_waking(seen) => wake(),
            false => Self { word: Self::without_head(after, head.want, next), action: Action::WakeBeside },
        })
    }

    /// The word once the head has gone: its own two flags are cleared (H2), `WAITERS` as the queue will be (W1), urgent as
    /// `next` is (U1).
    ///
    /// An upgrade that went before everyone passes a demand on: it may have been that of the waiter behind it (L2).
    fn without_head<P: Platform>(word: u32, head: Want, next: Option<&WaitNode<P>>) -> u32 {
        let word = word & !word::TIMED;
        match (next, head) {
            (None, _) => word & !(word::HANDOFF | word::WAITERS),
            (Some(next), Want::Upgrade) => word::led_by(word | word::WAITERS, next.is_realtime()),
            (Some(next), _) => word::led_by(word & !word::HANDOFF | word::WAITERS, next.is_realtime()),
        }
    }

    /// Pops whom the plan lets in or wakes.
    fn pop<P: Platform>(self, queue: &mut QueueGuard<'_, P>) -> Chain<P> {
        let (count, event) = match self.action {
            Action::Nothing => return Chain::new(),
            Action::Grant(count) => (count, Some(Event::GrantedReaders)),
            Action::HandOver => (1, Some(Event::HandedOff)),
            Action::Wake => (1, Some(Event::WokeHead)),
            Action::WakeBeside => (1, Some(Event::WokeBeside)),
            Action::Tell => return queue.pop_some(u32::MAX, WaitNode::is_deferred),
            Action::TellAll => (u32::MAX, None),
        };
        if let Some(event) = event {
            P::event(event);
        }
        let readers = matches!(self.action, Action::Grant(_));
        queue.pop_some(count, |node| !readers || node.want.is_read())
    }
}
