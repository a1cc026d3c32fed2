//! How long a starved waiter keeps readers out: a demand over readers has pauses.
//!
//! Gives: a writer gets its turn past independent readers whose holds overlap; and yet readers that depend on each other (one
//! holds the lock for reading and waits for another thread's read, as in a parallel loop under a read lock) lose about a
//! quarter of the time. glibc's default kind promises that those go on. Does not give: a bound on the writer's wait while
//! dependent readers hold the lock; as on glibc, it then waits until they leave it, and is handed it.
//!
//! A demand (`HANDOFF`) keeps new readers out. If one inside waits for them, none leaves and the lock never becomes free by
//! it; no lock can tell such readers from slow ones. So the waiter rechecks its demand after `demand_ns`. If some of the
//! readers have left since, the demand goes on for as long as it has lasted. Else comes a *pause* (`HANDOFF` with `TIMED`):
//! the readers that it has kept out come in, and others after them, for three times as long. (Also if none is queued: a
//! thread that only tries may come again and again.) The demand after that lasts twice as long as this one, up to
//! `reader_patience_ns`: readers that hold the lock for a time `h`, up to that, delay the writer by less than `9h`.
//!
//! In a pause the release that leaves the lock free hands it over (H1), so a free lock never waits for the pause to end.
//! Beside a waiter that was woken, and perhaps does not run, there is no demand in the pause: that waiter, or a real-time
//! head, is awake for a free lock.
//!
//! - H3 in detail: a waiter that demands the lock of readers rechecks its demand by itself, and so does one in a pause.
//!   So neither lasts. (If its thread does not run, a reader that has waited for `reader_patience_ns` comes in by
//!   itself.)

use spinpark_platform::{AtomicU32, Event, Ordering::AcqRel, Ordering::Relaxed, Platform};

use super::patience::Patience;
use super::release::Serviced;
use super::LockCore;
use crate::queue::{Owner, WaitNode};
use crate::word::{self, Want};

impl<P: Platform> LockCore<P> {
    /// H3: the waiter of `node`, which demands the lock of readers, goes on with that or lets in those that it keeps out.
    #[cold]
    #[inline(never)]
    pub(super) fn consider_demand(&self, node: &WaitNode<P>, patience: &mut Patience) {
        let mut queue = self.lock_queue();
        let is_kept_out = |node: &WaitNode<P>| node.want.joins_readers();
        let is_upgradable = |node: &WaitNode<P>| node.want == Want::Upgradable;
        let upgradable = !is_upgradable(node) && queue.iter().any(is_upgradable);
        let kept_out = queue.iter().filter(|&node| is_kept_out(node)).count() as u32;
        let mut seen = self.peek();
        let let_in = loop {
            let inside = word::readers(seen);
            let count = kept_out.min(word::MAX_READERS.saturating_sub(inside));
            // A writer that holds the lock hands it over whatever readers do. A waiter that was dequeued just now is
            // notified at once.
            if patience.has_made_way(inside)
                || word::is_write_held(seen)
                || !word::wants_handoff(seen)
                || node.is_elsewhere()
                || !queue.is_linked(node)
            {
                let rechecks = !word::is_write_held(seen) && word::wants_handoff(seen);
                node.set_rechecks(rechecks);
                drop(queue);
                patience.ends_demand::<P>();
                if rechecks || word::is_write_held(seen) {
                    patience.demands::<P>(rechecks, seen);
                } else {
                    patience.pauses::<P>(0); // another thread has ended it: this one demands the lock again, at once
                }
                return;
            }
            // Beside a woken waiter, which may not run, `TIMED` is not a pause (U1): the demand ends, until the pause is over.
            let paused = if word::is_waking(seen) { seen & !word::HANDOFF } else { seen | word::TIMED };
            let beside = if upgradable && word::fits(seen, Want::Upgradable) { word::UPGRADE } else { 0 };
            let with_them = (paused | beside) + count * word::UNIT;
            match self.word().compare_exchange_weak(seen, with_them, AcqRel, Relaxed) {
                Ok(_) => {
                    P::event(Event::WithdrewDemand);
                    let mut let_in = queue.pop_some(count, is_kept_out);
                    if beside != 0 {
                        let_in.append(queue.pop_some(1, is_upgradable));
                    }
                    break let_in;
                }
                Err(now) => seen = now,
            }
        };
        Serviced::granting(let_in).unlock_and_notify(queue);
        let span = patience.ends_demand::<P>();
        patience.pauses::<P>(span);
    }
}
