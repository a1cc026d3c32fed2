//! What a starved waiter asks of readers: to stay out until it has had its turn, and for how long.
//!
//! Gives: a writer gets its turn past readers whose holds overlap, and yet cannot stop readers that depend on each other: a
//! thread that reads and waits for another thread's reads (a parallel loop under a read lock). glibc's default kind promises that
//! those go on. Does not give: a bound on the writer's wait in that case; it then waits until no reader is inside, as on glibc.
//!
//! A demand (`HANDOFF`) keeps new readers out. If they depend on each other, the lock never becomes free by it. The waiter cannot
//! tell, so its demand has an end: it *withdraws* it, lets in the readers that have queued meanwhile, and makes another one much
//! later ([`Patience::starved`]). In between it is *promised* the lock: the release that leaves the lock free hands it over, as
//! with a demand, but nothing keeps readers out. A thread whose demands were withdrawn makes fewer of them
//! ([`Platform::demands_pay`]).
//!
//! - **H3** A demand of readers ends within half of the waiter's time so far (at least `demand_ns`), as long as the waiter
//!   runs; and in any case as soon as one reader has waited for `reader_patience_ns`.
//!
//! [`Patience::starved`]: super::patience::Patience::starved

use spinpark_platform::{AtomicU32, Event, Ordering::AcqRel, Ordering::Relaxed, Platform};

use super::patience::Demand;
use super::release::READERS_PER_GRANT;
use super::LockCore;
use crate::queue::{WaitNode, GRANTED};
use crate::word::{self, Want};

impl<P: Platform> LockCore<P> {
    /// What the waiter asks for, now that it has `starved`. A writer always gives way; readers are only asked if that has helped
    /// lately.
    #[inline(never)]
    pub(super) fn choose_demand(&self, node: &WaitNode<P>, starved: bool) -> Demand {
        if !starved {
            return Demand::None;
        }
        node.promise();
        if word::is_write_held(self.peek()) {
            Demand::OfWriter
        } else if P::demands_pay() {
            Demand::OfReaders
        } else {
            Demand::None
        }
    }

    /// H3: withdraws the demand of `node` and lets in the readers that queue behind it. `false`: it is not the head, or a writer
    /// holds the lock, so that the demand keeps out no reader that a holder may wait for.
    #[cold]
    #[inline(never)]
    pub(super) fn withdraw(&self, node: &WaitNode<P>) -> bool {
        let mut queue = self.lock_queue();
        let mut seen = self.peek();
        let is_head = queue.head().is_some_and(|head| core::ptr::eq(head, node));
        let readers = |node: &WaitNode<P>| node.want == Want::Read;
        let waiting = queue.iter().take(READERS_PER_GRANT).filter(|&node| readers(node)).count() as u32;
        loop {
            if !is_head || word::is_write_held(seen) {
                return false;
            }
            let count = waiting.min(word::MAX_READERS.saturating_sub(word::readers(seen)));
            // The waiter stays the head, and looks by itself.
            let new = (seen & !word::HANDOFF | word::TIMED) + count * word::UNIT;
            match self.word().compare_exchange_weak(seen, new, AcqRel, Relaxed) {
                Ok(_) => {
                    P::event(Event::WithdrewDemand);
                    P::demanded(false);
                    let let_in = queue.pop_some(count, readers);
                    drop(queue);
                    let_in.notify_all(GRANTED);
                    return true;
                }
                Err(now) => seen = now,
            }
        }
    }
}
