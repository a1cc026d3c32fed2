//! Readers that depend on each other: how long a starved waiter keeps readers out.
//!
//! One reader holds the lock and waits for another thread's read, as in a parallel loop under a read lock. No
//! lock can tell such readers from slow ones, and glibc's default kind promises that those go on.
//!
//! Gives: a writer gets its turn past independent readers whose holds overlap; and dependent readers lose about
//! a quarter of the time. Does not give: a bound on the writer's wait while dependent readers hold the lock; as on
//! glibc, it then waits until they leave it, and is handed it.
//!
//! - **H3** A request of readers (`HANDOFF`) keeps new readers out for `request_ns` at first. Then the waiter that
//!   made it rechecks it:
//!
//!   | since it requested the lock      | then                                                                  |
//!   |----------------------------------|-----------------------------------------------------------------------|
//!   | some readers have left           | the request goes on, for as long as it has lasted                     |
//!   | none has left                    | a *pause* (`TIMED` along with `HANDOFF`): readers that it has kept    |
//!   |                                  | out come in, and others after them, for three times as long. The next |
//!   |                                  | request lasts twice as long as this one, up to `reader_patience_ns`   |
//!   | none, in a request of that length| it sleeps without a request and a timer: readers that neither come    |
//!   |                                  | nor go are not delayed. A reader that leaves others inside wakes it   |
//!
//!   So a request and a pause end by themselves; if the waiter's thread does not run, one that probes ends them
//!   (L3). Readers that hold the lock for a time `h`, up to `reader_patience_ns`, delay the writer by less than
//!   `9h`. In a pause the release that leaves the lock free hands it over (H1): a free lock waits for no pause.
//!   Alongside a waiter that was woken, and perhaps does not run, there is no request in the pause.
//!   A pause is made also if no reader is queued: a thread that only tries may come again and again.

use spinpark_platform::{AtomicU32, Clock, Event, Ordering::AcqRel, Ordering::Relaxed, Platform};

use super::patience::{in_ns, Patience, PAUSE};
use super::wake_pass::WakePass;
use super::LockCore;
use crate::policy::Policy;
use crate::queue::{HasQueue, QueueGuard, WaitNode};
use crate::word::{self, Want};

impl<P: Platform, Q: Policy<P>> LockCore<P, Q> {
    /// H3: the waiter of `node`, which requests the lock of readers, goes on with that or lets in those that
    /// it keeps out. If its requests are as long as they get, it keeps no time of the pause: readers that
    /// neither come nor go are not delayed by it, and one that leaves others inside wakes it.
    #[cold]
    #[inline(never)]
    pub(super) fn consider_request(&self, node: &WaitNode<P>, patience: &mut Patience) {
        let queue = self.lock_queue();
        let keeps_time = !patience.requests_in_vain::<P, Q>();
        let is_out = node.is_elsewhere() || !queue.is_linked(node);
        let requested = *patience;
        let is_led = queue.head().is_some_and(WaitNode::is_realtime);
        let pause = |seen| {
            // U1
            let seen = if is_led { word::led_by_realtime(seen) } else { seen };
            // A writer that holds the lock hands it over whatever readers do. A waiter that was dequeued just
            // now is notified at once.
            if requested.has_made_way(word::readers(seen))
                || word::is_write_held(seen)
                || !word::wants_handoff(seen)
                || is_out
            {
                return None;
            }
            // Alongside a woken waiter, which may not run, the head keeps no time: the request ends,
            // until the pause is over.
            Some(match word::is_waking(seen) {
                true => seen & !word::HANDOFF,
                false if keeps_time => seen | word::TIMED,
                false => word::without_request(seen),
            })
        };
        node.set_rechecks(keeps_time);
        match self.let_in_readers(queue, node, &pause) {
            Ok(()) => {
                let span = patience.ends_request::<P, Q>();
                patience.pauses::<P>(span, keeps_time);
            }
            Err(queue) => {
                let seen = self.peek();
                let rechecks = !word::is_write_held(seen) && word::wants_handoff(seen);
                node.set_rechecks(rechecks);
                drop(queue);
                patience.ends_request::<P, Q>();
                if rechecks || word::is_write_held(seen) {
                    patience.requests::<P, Q>(rechecks, seen);
                } else {
                    patience.pauses::<P>(0, true); // another thread has ended it: this one requests the lock again, at once
                }
            }
        }
    }

    /// H3: lets in the readers that a request keeps out, and an upgradable waiter other than that of `node`.
    /// `pause` maps the word to the one without the request; `None` of that: nothing is done.
    #[inline(never)] // for the drop-in's size
    pub(super) fn let_in_readers<'a>(
        &'a self,
        mut queue: QueueGuard<'a, P, Self>,
        node: &WaitNode<P>,
        pause: &dyn Fn(u32) -> Option<u32>,
    ) -> Result<(), QueueGuard<'a, P, Self>> {
        let is_kept_out = |node: &WaitNode<P>| node.want.joins_readers();
        let is_upgradable = |node: &WaitNode<P>| node.want == Want::Upgradable;
        let any = queue.joiners() > 0;
        let upgradable = any && !is_upgradable(node) && queue.iter().any(is_upgradable);
        let kept_out = if any { queue.iter().filter(|&node| is_kept_out(node)).count() as u32 } else { 0 };
        let mut seen = self.peek();
        let let_in = loop {
            let Some(paused) = pause(seen) else { return Err(queue) };
            let count = kept_out.min(word::MAX_READERS.saturating_sub(word::readers(seen)));
            let upgrade = if upgradable && word::fits(seen, Want::Upgradable) { word::UPGRADE } else { 0 };
            let with_them = (paused | upgrade) + count * word::UNIT;
            match self.word().compare_exchange_weak(seen, with_them, AcqRel, Relaxed) {
                Ok(_) => {
                    if word::wants_handoff(seen) {
                        P::event(Event::WithdrewRequest);
                    }
                    let mut let_in = queue.pop_some(count, is_kept_out);
                    if upgrade != 0 {
                        let_in.append(queue.pop_some(1, is_upgradable));
                    }
                    break let_in;
                }
                Err(now) => seen = now,
            }
        };
        self.see_to_timer(&queue, self.peek(), false);
        WakePass::granting(let_in).unlock_and_notify(queue);
        Ok(())
    }
}

// ---- its times

impl Patience {
    /// Has just requested the lock, whose word is `seen`; if of readers, it `rechecks` it by itself. A writer
    /// is to release it soon, whatever readers do.
    #[inline(never)]
    pub(super) fn requests<P: Platform, Q: Policy<P>>(&mut self, rechecks: bool, seen: u32) {
        if !rechecks {
            *self = self.until_notified();
            return;
        }
        self.request = self.request.min(Q::TIMES.reader_patience_ns).max(Q::TIMES.request_ns);
        self.of = Some(word::readers(seen));
        self.recheck = in_ns::<P>(self.request);
    }

    pub(super) fn is_requesting(self) -> bool {
        self.of.is_some()
    }

    /// Whether some of the readers of which it requests the lock have left, if `inside` are left.
    pub(super) fn has_made_way(&self, inside: u32) -> bool {
        self.of.is_some_and(|of| inside < of)
    }

    /// Ends its request. The next one is longer, but no longer than readers put up with it.
    ///
    /// Returns for how long it was one.
    pub(super) fn ends_request<P: Platform, Q: Policy<P>>(&mut self) -> u64 {
        self.of = None;
        let longer = self.request.saturating_mul(2).min(Q::TIMES.reader_patience_ns);
        core::mem::replace(&mut self.request, longer)
    }

    /// Makes no request for some time after one that lasted for `span`. If it `keeps_time`, it makes one then;
    /// else once it has been woken after that.
    pub(super) fn pauses<P: Platform>(&mut self, span: u64, keeps_time: bool) {
        let end = in_ns::<P>(span.saturating_mul(PAUSE));
        (self.recheck, self.pause_end) = if keeps_time { (end, 0) } else { (u64::MAX, end) };
    }

    /// Whether it is in a pause that it keeps no time of.
    pub(super) fn is_in_pause<P: Platform>(self) -> bool {
        self.pause_end != 0 && P::now(Clock::Monotonic) < self.pause_end
    }

    /// Sleeps until such a pause ends.
    pub(super) fn until_pause_ends(self) -> Self {
        Self { recheck: self.pause_end, of: None, ..self }
    }

    /// Whether its requests are as long as they get, and no reader has left in the last one.
    pub(super) fn requests_in_vain<P: Platform, Q: Policy<P>>(&self) -> bool {
        self.request >= Q::TIMES.reader_patience_ns
    }
}
