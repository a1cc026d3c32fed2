//! What a service of the queue does next, in one compare-exchange of the word: step B of [`release`](super::release).

use spinpark_platform::{Event, Platform};

use crate::queue::{Chain, LockedQueue, WaitNode};
use crate::word::{self, Release, Want};

/// How far one release searches for readers to let in (rwsem's number): its own thread has work to do, and others wait
/// for the queue lock.
const READERS_PER_GRANT: usize = 256;

/// One way to go on: the word that records it, and the waiters that it lets in.
pub(super) struct Plan {
    pub(super) word: u32,
    pub(super) action: Action,
}

#[derive(Clone, Copy)]
pub(super) enum Action {
    Nothing,
    /// Lets in so many readers.
    Grant(u32),
    /// Turns the upgradable hold of a waiter into a writer's, or lets in an upgradable one beside readers.
    HandOver,
    Wake,
    /// Wakes a waiter for which the lock is kept.
    Promise,
    /// Wakes the head, for which `WAKING` does not stand: a real-time one (T12), or any, without a mark (T16).
    WakeBeside,
    /// Ends the waits of those that the holder has signalled.
    EndWaits,
    /// Ends all waits (X2).
    EndAllWaits,
}

impl Plan {
    /// What to do about the queue; `None` if it is empty.
    pub(super) fn choose<P: Platform>(
        seen: u32,
        release: Option<Release>,
        returns: bool,
        queue: &LockedQueue<'_, P>,
    ) -> Option<Self> {
        let head = queue.head()?;
        let realtime = head.is_realtime();
        let seen = word::led_by(seen, realtime); // U1
        let seen = release.map_or(seen, |release| Self::without_lower_demand::<P>(seen, release, head.rank));
        let after = release.map_or(seen, |release| word::released(seen, release));
        let next = queue.iter().nth(1);
        let nothing = Self { word: after | word::WAITERS, action: Action::Nothing };
        let wake = || Self {
            word: Self::without_head(after & !word::HANDOFF | word::WAKING, head.want, next),
            action: Action::Wake,
        };
        if !word::fits(after, head.want) {
            // L2: readers that come and go may pass this head; it must know that it is the head to time itself.
            let passed = release == Some(Release::Read) && head.want.is_exclusive();
            let timed = word::is_timed(seen) || word::is_waking(seen) || word::wants_handoff(seen);
            // H2: readers would be kept out for a demand that no waiter rechecks. The next head is to keep its own time.
            let left = word::wants_handoff(after)
                && !word::is_write_held(after)
                && !queue.iter().any(WaitNode::rechecks);
            let wakes = passed && !timed || left && !word::is_waking(seen);
            return Some(if wakes {
                wake()
            } else if left {
                Self { word: nothing.word & !word::HANDOFF, ..nothing }
            } else {
                nothing
            });
        }
        // A fair release has promised the lock to the head.
        if head.is_deferred() && !word::wants_handoff(seen) {
            let others = queue.iter().find(|node| !node.is_deferred());
            return Some(Self {
                word: Self::without_head(after, head.want, others),
                action: Action::EndWaits,
            });
        }
        if head.want.is_read() {
            // The lock is promised to the waiter that was woken, or owed to it, after a thread that need not heed that has taken it.
            if word::wants_handoff(after) && word::is_waking(after) && !realtime {
                return Some(nothing);
            }
            if head.want == Want::ReadBehindWaiters && word::is_waking(seen) && !realtime {
                return Some(nothing); // behind the woken waiter, which services the queue when it has settled
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
        // Beside readers, an upgradable waiter is granted the lock as they are.
        let is_beside = word::is_held(after) && !word::is_waking(after);
        if word::wants_handoff(seen) && (head.want == Want::Upgrade || is_beside) {
            let rest = Self::without_head(after, head.want, next);
            return Some(Self { word: word::taken(rest, head.want, head.token), action: Action::HandOver });
        }
        if word::wants_handoff(seen) && !word::is_waking(after) {
            let rest = Self::without_head(after | word::WAKING, head.want, next);
            return Some(Self { word: rest | word::HANDOFF, action: Action::Promise });
        }
        let unmarked = head.want == Want::Lock && !head.has_starved() && P::wakes_unmarked();
        Some(match word::is_left_to_others(seen, returns) {
            true => nothing,
            false if !word::is_waking(seen) && !unmarked => wake(),
            false => Self { word: Self::without_head(after, head.want, next), action: Action::WakeBeside },
        })
    }

    /// H2: `word`, before a `release` by the calling thread, without the demand of a head of `rank` that the release would hand
    /// the lock over to, if the thread has a higher priority.
    pub(super) fn without_lower_demand<P: Platform>(word: u32, release: Release, rank: u8) -> u32 {
        let hands_over = word::wants_handoff(word) && !word::is_held(word::released(word, release));
        if hands_over && rank < P::priority() {
            word::without_demand(word)
        } else {
            word
        }
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

    /// Pops the waiters that the plan lets in or wakes.
    pub(super) fn pop<P: Platform>(self, queue: &mut LockedQueue<'_, P>) -> Chain<P> {
        let (count, event) = match self.action {
            Action::Nothing => return Chain::new(),
            Action::Grant(count) => (count, Some(Event::GrantedReaders)),
            Action::HandOver | Action::Promise => (1, Some(Event::HandedOff)),
            Action::Wake => (1, Some(Event::WokeHead)),
            Action::WakeBeside => (1, Some(Event::WokeBeside)),
            Action::EndWaits => return queue.pop_some(u32::MAX, WaitNode::is_deferred),
            Action::EndAllWaits => (u32::MAX, None),
        };
        if let Some(event) = event {
            P::event(event);
        }
        let readers = matches!(self.action, Action::Grant(_));
        queue.pop_some(count, |node| !readers || node.want.is_read())
    }
}
