//! The slow way out: grant, hand over or wake, then let go.
//!
//! ```text
//! release_slow:  A  lock the queue while still holding the lock
//!                B  choose: readers at the head ─► grant them all in the step that releases
//!                           a head that starved ─► hand over in the step that releases
//!                           a head that sleeps  ─► set WAKING, pop it
//!                C  unlock the queue
//!                D  release, if B did not: the last access to the lock (R1)
//!                E  notify whoever was popped
//! ```

use spinpark_platform::{
    AtomicU32, Event, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
    Ordering::Release as ReleaseOrder, Platform,
};

use super::LockCore;
use crate::queue::{Chain, QueueGuard, GRANTED, WOKEN};
use crate::word::{self, Release};

/// Most readers that one release lets in, so that its own thread gets on with its work; rwsem's number.
const READERS_PER_GRANT: u32 = 256;

/// What a look at the queue led to.
pub(super) enum Look<P: Platform> {
    /// Nobody could be let in, judged by this word.
    Nobody(u32),
    /// These hold the lock. If the look was for a release, the same step released.
    Granted(Chain<P>),
    /// These (one) are to contend for the lock; a release is still to be made.
    Woken(Chain<P>),
}

impl<P: Platform> Look<P> {
    /// E: tells everyone whom the look popped. The queue is unlocked.
    pub(super) fn deliver(self) {
        match self {
            Self::Nobody(_) => {}
            Self::Granted(popped) => popped.notify_all(GRANTED),
            Self::Woken(popped) => popped.notify_all(WOKEN),
        }
    }
}

impl<P: Platform> LockCore<P> {
    /// T5 with flags set, or with a word that changes under us.
    #[cold]
    #[inline(never)]
    pub(crate) fn release_slow(&self, release: Release) {
        self.adopt();
        let mut woken = Chain::new();
        // The word by which a look found nobody to let in: no second look while the word is that.
        let mut looked_at = None;
        loop {
            let seen = self.word().load(Acquire);
            let after = word::released(seen, release);
            if word::must_look(seen, after, release) && looked_at != Some(seen) {
                let mut queue = self.lock_queue(); // A
                let look = self.look(&mut queue, Some(release)); // B
                drop(queue); // C
                match look {
                    Look::Nobody(word) => looked_at = Some(word),
                    Look::Woken(popped) => woken.append(popped),
                    granted @ Look::Granted(_) => {
                        granted.deliver();
                        break;
                    }
                }
            } else if self.word().compare_exchange_weak(seen, after, ReleaseOrder, Relaxed).is_ok() {
                break; // D
            }
        }
        woken.notify_all(WOKEN); // E
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

    /// Lets in, or wakes, whoever can come in beside the present holders. The caller keeps the lock alive: it holds
    /// it, or waits for it.
    #[cold]
    #[inline(never)]
    pub(crate) fn look_now(&self) {
        let mut queue = self.lock_queue();
        let look = self.look(&mut queue, None);
        drop(queue);
        look.deliver();
    }

    /// Takes over waiters that were popped from a condition variable's queue: they sleep on, in this queue.
    ///
    /// Nothing here is touched after the queue lock is released and before the notification: as soon as they are all
    /// served, the last of them may free the lock.
    #[cold]
    #[inline(never)]
    pub(crate) fn absorb(&self, mut waiters: Chain<P>) {
        let mut queue = self.lock_queue();
        while let Some(waiter) = waiters.pop() {
            P::event(Event::MovedWaiter);
            waiter.move_to(&mut queue);
        }
        let look = self.look(&mut queue, None);
        drop(queue);
        look.deliver();
    }

    /// B: lets in, or wakes, whoever is at the head of the queue, if there is room after `release` (or, without one,
    /// now) and nobody else will see to it. Leaves `WAITERS` right for what is queued (W1).
    pub(super) fn look(&self, queue: &mut QueueGuard<'_, P>, release: Option<Release>) -> Look<P> {
        let mut seen = self.peek();
        loop {
            let after = release.map_or(seen, |release| word::released(seen, release));
            let plan = Plan::choose(seen, after, queue);
            if plan.word == seen {
                return Look::Nobody(seen);
            }
            match self.word().compare_exchange_weak(seen, plan.word, AcqRel, Relaxed) {
                Ok(_) => return plan.carry_out(queue),
                Err(now) => seen = now,
            }
        }
    }
}

/// One way to go on: the word that records it, and how many nodes to pop.
struct Plan {
    word: u32,
    action: Action,
    count: u32,
}

#[derive(PartialEq, Eq)]
enum Action {
    Nothing,
    GrantReaders,
    HandOver,
    Wake,
}

impl Plan {
    fn choose<P: Platform>(seen: u32, after: u32, queue: &QueueGuard<'_, P>) -> Self {
        let Some(head) = queue.head() else {
            return Self { word: seen, action: Action::Nothing, count: 0 };
        };
        let nothing = Self { word: seen | word::WAITERS, action: Action::Nothing, count: 0 };
        if !word::fits(after, head.want) {
            return nothing;
        }
        let waiting = queue.iter().count() as u32;
        if head.want.is_read() {
            let room = READERS_PER_GRANT.min(word::MAX_COUNT - word::readers(after));
            let count = room.min(queue.iter().filter(|node| node.want.is_read()).count() as u32);
            let word = Self::without_head(after, waiting > count) + count * word::UNIT;
            Self { word, action: Action::GrantReaders, count }
        } else if word::wants_handoff(seen) {
            let word = word::taken(Self::without_head(after, waiting > 1), head.want, head.token);
            Self { word, action: Action::HandOver, count: 1 }
        } else if word::is_waking(seen) || (word::spinners(seen) > 0 && word::is_timed(seen)) {
            nothing
        } else {
            // Not released yet: from `seen`, not `after` (R1).
            let word = Self::without_head(seen, waiting > 1) | word::WAKING;
            Self { word, action: Action::Wake, count: 1 }
        }
    }

    /// The word once the head has gone: its own two flags are cleared (H2), `WAITERS` as the queue will be (W1).
    fn without_head(word: u32, more: bool) -> u32 {
        let rest = word & !(word::HANDOFF | word::TIMED | word::WAITERS);
        if more {
            rest | word::WAITERS
        } else {
            rest
        }
    }

    fn carry_out<P: Platform>(self, queue: &mut QueueGuard<'_, P>) -> Look<P> {
        let readers = self.action == Action::GrantReaders;
        let mut popped = Chain::new();
        for _ in 0..self.count {
            let next = queue.iter().find(|node| !readers || node.want.is_read());
            let Some(node) = next.map(|node| -> *const _ { node }) else { break };
            popped.push(queue.pop(node));
        }
        match self.action {
            Action::Nothing => return Look::Nobody(self.word),
            Action::GrantReaders => P::event(Event::GrantedReaders),
            Action::HandOver => P::event(Event::HandedOff),
            Action::Wake => {
                P::event(Event::WokeHead);
                return Look::Woken(popped);
            }
        }
        Look::Granted(popped)
    }
}
