//! Probes: the last resort of waiters that rely on a thread that does not run.
//!
//! The usual way passes two hooks of it: [`enter_queue`](LockCore::enter_queue), which locks the queue at once if no
//! thread that is stopped has it, and [`decide_timer`](LockCore::decide_timer), which sets none.
//!
//! - **L3** (a wake-up owed has an end) Waiters may rely on another thread than the holder
//!   ([`relies_on_another`](crate::word::relies_on_another)): on a waiter that was woken (`WAKING`; or without a
//!   mark, L4, and the lock is free), on a promise to it, on a head that keeps its own time (`TIMED`), or on one
//!   that requests the lock of readers. Its thread may be stopped, or kept from its CPU by threads of a higher
//!   priority. So, with the queue lock free, if they rely on one, some waiter other than that has a timer
//!   ([`has_timer`](crate::queue::WaitNode::has_timer)): the first or the last of the list.
//!
//! A waiter gets its timer
//!
//! - as it queues, because the waiters rely on another thread, or a wake pass has woken one lately (`SERVED`):
//!   [`decide_timer`](LockCore::decide_timer); or
//! - because the wake pass that is about to make them rely on one *appoints* the last waiter, and wakes it for
//!   that before it releases: [`see_to_timer`](LockCore::see_to_timer). Each change of the list is followed by a
//!   wake pass or by that alone, and so is a request; a pass that has let readers in chooses again.
//!
//! It probes after `probe_ns` (`least_probe_ns` with one or two CPUs), then after twice as long each time:
//!
//! | the lock                                                        | the probing waiter                              |
//! |-----------------------------------------------------------------|-------------------------------------------------|
//! | is free                                                         | takes it, whatever is promised; clears `WAKING` |
//! | is held, and a waiter was on its way in the last probe, too     | clears `WAKING`: the next release wakes one     |
//! | is requested of readers, for longer than any waiter that runs   | ends the request, lets in the readers           |
//! | does that                                                       |                                                 |
//! | is held, and the waiters rely on the holder only, or this one   | has no timer from now on                        |
//! | is neither first nor last                                       |                                                 |
//!
//! A thread whose `WAKING` was cleared may later clear that of another: that costs a wake-up too many, and loses
//! none, since the other one is awake. So `WAKING` is set only while some thread that was woken has not settled.
//!
//! No probe is made in a wait that is shorter than `probe_ns`. A probe needs the queue, and so does a queued
//! waiter that leaves. If another thread has it locked and does not run, a thread that is to queue probes from
//! outside ([`enter_queue`](LockCore::enter_queue)), also one whose own call has it locked, in a handler; a
//! queued one waits for that thread. A real-time waiter lends it its priority.

use spinpark_platform::{AtomicU32, Clock, Deadline, Event, Ordering::Relaxed, Platform};

use super::patience::{in_ns, Patience, Saw, PAUSE};
use super::slow_path::{Joined, Promise};
use super::LockCore;
use crate::policy::{has_probes, Asleep, Policy};
use crate::queue::{HasQueue, LockedQueue, QueueGuard, WaitNode};
use crate::word::{self, Announced, Want};

// ---- which waiter has a timer

impl<P: Platform, Q: Policy<P>> LockCore<P, Q> {
    /// L3: appoints a waiter if the waiters rely on another thread than the holder, or are about to, with the
    /// head dequeued (`pops`), and none has a timer.
    pub(super) fn see_to_timer(&self, queue: &LockedQueue<'_, P>, word: u32, pops: bool) {
        if has_probes::<P, Q>() && (pops || word::relies_on_another(word)) {
            if let Some(waiter) = queue.lacks_timer(pops, !pops && word::relies_on_head(word)) {
                waiter.appoint();
            }
        }
    }

    /// L3: whether the waiter of `node`, which is about to be linked, sets a timer: if it relies on another
    /// thread than the holder, or is soon to do so. Not if the others rely on it, which keeps its own time.
    #[inline(never)] // for the drop-in's size
    pub(super) fn decide_timer(
        &self,
        node: &WaitNode<P>,
        patience: &mut Patience,
        queue: &QueueGuard<'_, P, Self>,
        keeps_time: bool,
    ) {
        let relies = || {
            let leads = node.is_realtime() && queue.would_lead(node);
            let seen = self.peek();
            // U1
            word::relies_on_another(if leads { word::led_by_realtime(seen) } else { seen })
        };
        let sets = has_probes::<P, Q>() && !keeps_time && (queue.was_served() || relies());
        node.set_timer(sets);
        patience.sets_timer::<P, Q>(sets);
        // A real-time waiter that relies on another one is not to wait for that one's time.
        if relies() && !keeps_time && node.is_realtime() && !patience.rechecks() {
            *patience = patience.until_starved();
        }
    }
}

// ---- the probe

impl<P: Platform, Q: Policy<P>> LockCore<P, Q> {
    /// T4: the waiter has slept for long, and probes the lock, because a thread that was woken before it
    /// may not run. If the lock is free, it takes it, whatever is promised, and with it the part of that
    /// thread. If a waiter was on its way already when it saw the lock last, and still is, it ends that one's
    /// part: the next release wakes a waiter again. If a request of readers has lasted for longer than any
    /// whose waiter runs, it ends the request. (L3)
    ///
    /// Returns what it saw: its timer ends with `Saw::Holder`.
    #[cold]
    #[inline(never)]
    pub(super) fn probe(&self, node: &WaitNode<P>, patience: Patience) -> (Joined, Saw) {
        P::event(Event::Probed);
        // The holder of the queue may be stopped as well: then the waiter can only probe again later.
        let Some(mut queue) = self.lock_queue_within(&|| Q::TIMES.probe_ns) else {
            return (Joined::Queued, Saw::Other);
        };
        // One that was dequeued is notified, but by a thread that may be stopped before it has woken it.
        if node.is_elsewhere() || !queue.is_linked(node) {
            return (Joined::Queued, Saw::Other);
        }
        let mut seen = self.peek();
        let is_waking = word::is_waking(seen);
        // A reader that waits behind all others passes them only if the one that was woken has not come for a
        // while.
        let is_late = node.want != Want::ReadBehindWaiters || patience.saw_waking() && is_waking;
        if is_late && word::admits_past_promise(seen, node.want) {
            let joined = self.recheck_as(queue, node, false, Promise::Ends);
            seen = self.peek();
            while matches!(joined, Joined::Acquired) && word::is_waking(seen) {
                let alone = word::withdraw(seen, Announced::Waking);
                match self.word().compare_exchange_weak(seen, alone, Relaxed, Relaxed) {
                    Ok(_) if word::has_waiters(alone) && !word::is_write_held(alone) => {
                        self.wake_pass_now(); // another one may have room alongside a reader
                        break;
                    }
                    Ok(_) => break,
                    Err(now) => seen = now,
                }
            }
            return (joined, Saw::Other);
        }
        if is_waking && patience.saw_waking() {
            self.word().fetch_and(!word::WAKING, Relaxed);
            self.wake_pass_and_unlock(queue);
            return (Joined::Queued, Saw::Other);
        }
        // Neither is a pause, which lasts longer.
        let keeps_time = word::relies_on_head(seen) && !word::is_write_held(seen);
        let pauses = word::is_timed(seen) && word::wants_handoff(seen);
        if keeps_time && patience.saw_long_request::<P, Q>(pauses) {
            let _ = self.let_in_readers(queue, node, &|seen| Some(word::without_request(seen)));
            return (Joined::Queued, Saw::Other);
        }
        let relies = word::relies_on_another(seen);
        if !relies {
            queue.set_served(false);
        }
        // If it ends here, the others have timers: the first waiter, or the last one.
        let saw = match (relies && queue.is_at_an_end(node), is_waking, keeps_time) {
            (false, _, _) => Saw::Holder,
            (true, true, _) => Saw::Woken,
            (true, false, true) if pauses => Saw::Pause,
            (true, false, true) => Saw::Request,
            (true, false, false) => Saw::Other,
        };
        node.set_timer(saw != Saw::Holder);
        (Joined::Queued, saw)
    }

    /// L3: locks the queue for the waiter of `node`, which is not in it. While another thread has it locked,
    /// which perhaps does not run, the waiter probes the lock by itself, as those do that are queued (L3):
    /// it takes a free one, whatever is promised. It has withdrawn by then what it has `announced`, on which
    /// others rely.
    pub(super) fn enter_queue(
        &self,
        node: &WaitNode<P>,
        announced: &mut Announced,
        deadline: Option<Deadline>,
    ) -> Result<QueueGuard<'_, P, Self>, Joined> {
        let mut span = Q::TIMES.probe_ns;
        let mut waited = 0_u64;
        loop {
            let left = || deadline.map_or(u64::MAX, Deadline::left::<P>);
            if let Some(queue) = self.lock_queue_within(&|| span.min(left())) {
                return Ok(queue);
            }
            waited = waited.saturating_add(span);
            // H3, as in `recheck`: a reader inside may wait for this one.
            let joins = node.want.joins_readers() && waited >= Q::TIMES.reader_patience_ns;
            let want = if joins { Want::ReadAgain } else { node.want };
            let joined = self.acquire_or_mark(None, want, node.token, *announced, 0, Promise::Passes);
            let withdrawn = core::mem::replace(announced, Announced::None) != Announced::None;
            if !matches!(joined, Joined::Acquired) && (withdrawn || matches!(joined, Joined::GlibcOwned)) {
                self.wake_pass_now(); // L1; X2
            }
            match joined {
                Joined::Queued => {} // as it was, but for what it had announced
                joined => return Err(joined),
            }
            if left() == 0 {
                P::event(Event::TimedOut);
                return Err(Joined::TimedOut);
            }
            span = span.saturating_mul(2).min(Q::TIMES.longest_probe_ns);
        }
    }
}

// ---- its times

impl Patience {
    /// L3: sets the timer of its first probe; or it has none, as no other thread needs it.
    #[inline(never)] // for the drop-in's size
    pub(super) fn sets_timer<P: Platform, Q: Policy<P>>(&mut self, sets: bool) {
        if !sets {
            self.probe = u64::MAX;
        } else if self.probe == u64::MAX {
            let least = if Q::sleeps(Asleep::ProbesLate) { Q::TIMES.least_probe_ns } else { 0 };
            let least = least.min(Q::TIMES.longest_probe_ns); // a timer in any case
            self.probe_span = Q::TIMES.probe_ns.max(least);
            self.probe = in_ns::<P>(self.probe_span);
            self.saw = Saw::Holder;
        }
    }

    /// Whether it is time to probe the lock, and not for a recheck.
    #[inline(never)] // for the drop-in's size, as in the next one
    pub(super) fn is_probe_due<P: Platform>(&self) -> bool {
        self.probe < self.recheck && P::now(Clock::Monotonic) >= self.probe
    }

    /// Has probed the lock. It goes on with that if it `saw` a thread that may not run.
    #[inline(never)]
    pub(super) fn has_probed<P: Platform, Q: Policy<P>>(&mut self, saw: Saw) {
        if saw == Saw::Holder {
            self.probe = u64::MAX;
            return;
        }
        if saw != self.saw {
            self.request_since = P::now(Clock::Monotonic);
        }
        self.saw = saw;
        self.probe_span = self.probe_span.saturating_mul(2).min(Q::TIMES.longest_probe_ns);
        self.probe = in_ns::<P>(self.probe_span);
    }

    pub(super) fn saw_waking(&self) -> bool {
        self.saw == Saw::Woken
    }

    /// Whether a request of readers, or a `pause`, has lasted for longer than any does whose thread runs.
    pub(super) fn saw_long_request<P: Platform, Q: Policy<P>>(&self, pause: bool) -> bool {
        let since = P::now(Clock::Monotonic).saturating_sub(self.request_since);
        let longest = Q::TIMES.reader_patience_ns;
        match self.saw {
            Saw::Request => !pause && since >= longest,
            Saw::Pause => pause && since > longest.saturating_mul(PAUSE),
            _ => false,
        }
    }
}
