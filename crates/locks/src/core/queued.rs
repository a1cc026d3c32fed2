//! What a waiter does to the queue: join it, join it again, ask for a hand-off, leave it.
//!
//! Each step holds the queue lock. One compare-exchange of the word either acquires, or records the waiter and withdraws
//! what the thread was counted as; then the thread services the queue itself if others relied on it (L1).

use spinpark_platform::{
    AtomicU32, Deadline, Event, Ordering::Acquire, Ordering::Relaxed, Ordering::Release as ReleaseOrder,
    Platform,
};

use super::patience::Patience;
use super::spin::has_no_cpu_to_spare;
use super::LockCore;
use crate::queue::{Ask, Owner, QueueGuard, Roused, WaitNode};
use crate::word::{self, Announced, Want};

/// T13: a waiter that came late rouses as many, from the head of the queue on, roused before or not: it starts so many
/// wake-ups at a time. This and the next two are from the simulator (`notes/tuning.md`, "Longest waits").
const LATE_ROUSES: usize = 8;
/// T13: one that came in time rouses as many that have not been roused: one for its own turn, and one more.
const ROUSES: usize = 2;
/// T13: how far from the head those may be. Further ones would sleep deeply again before their turns come.
const ROUSED_OF: usize = 16;

/// What a thread does about a promise that was made to another one (H4).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Promise {
    /// It leaves the lock to that one.
    Heeds,
    /// It takes the lock first; the promise is a demand then.
    Passes,
    /// It takes the lock, and does not count on that one.
    Ends,
}

impl Promise {
    /// What the waiter of `node` does.
    fn of<P: Platform>(node: &WaitNode<P>) -> Self {
        if node.is_realtime() {
            Self::Passes
        } else {
            Self::Heeds
        }
    }
}

/// How an attempt to queue ended.
pub(super) enum Joined {
    /// There was room: the lock is this thread's, the node is out.
    Acquired,
    /// The node is linked.
    Queued,
    /// G3: no thread may queue for an exclusive hold while readers may be in slots. The node is out.
    Biased,
    /// X1: other code has written the word. Nothing was done to it; the node is out.
    Foreign,
    /// T9: the deadline passed first. The node is out, and the thread is in no flag.
    TimedOut,
}

impl<P: Platform> LockCore<P> {
    /// T3: takes the lock if there is room now, else records this thread with `flags` and withdraws what it has announced.
    ///
    /// A thread that was woken for the lock ends a promise. The caller holds the queue lock.
    fn acquire_or_mark(
        &self,
        queue: Option<&QueueGuard<'_, P, Self>>,
        want: Want,
        token: u32,
        announced: Announced,
        flags: u32,
        promise: Promise,
    ) -> Joined {
        let fenced = queue.is_some_and(|queue| queue.had_attention());
        // H3: beside `TIMED`, a demand would be a pause.
        let ends = if flags & word::HANDOFF == 0 { 0 } else { word::TIMED };
        let mut seen = self.peek();
        let mut announced = announced;
        loop {
            if word::is_foreign(seen) {
                return Joined::Foreign;
            }
            let promise = if announced == Announced::Waking { Promise::Ends } else { promise };
            let free = match promise {
                Promise::Heeds => word::admits(seen, want),
                Promise::Passes | Promise::Ends => word::admits_past_promise(seen, want),
            };
            let rest = word::withdraw(seen, announced);
            let biased = want.is_exclusive() && word::has_slots(seen);
            let (new, order) = if biased {
                (rest, ReleaseOrder)
            } else if free && promise == Promise::Ends {
                (word::taken_as_promised(rest, want, token), Acquire)
            } else if free {
                (word::taken(rest, want, token), Acquire)
            } else {
                (rest & !ends | flags, ReleaseOrder)
            };
            match self.word().compare_exchange_weak(seen, new, order, Relaxed) {
                Ok(_) if biased => return Joined::Biased,
                Ok(_) if free => return Joined::Acquired,
                Ok(_) if fenced || !word::marks_in_passing(seen, new) => return Joined::Queued,
                Ok(_) => {
                    // A1
                    P::or_leave(&|| self.abandon_marked(queue, want, flags), || P::heavy_fence());
                    seen = self.peek();
                    if word::has_waiters(seen) {
                        return Joined::Queued;
                    }
                    announced = Announced::None; // withdrawn with the mark that was wiped out
                }
                Err(now) => seen = now,
            }
        }
    }

    /// T11: the thread leaves its call in the fence, by which it has the queue locked: that is as it was, but for what `flags` say.
    #[cold]
    #[inline(never)]
    #[allow(unsafe_code)] // see `QueueGuard::taken_over`
    fn abandon_marked(&self, queue: Option<&QueueGuard<'_, P, Self>>, want: Want, flags: u32) {
        let Some(queue) = queue else { return };
        // SAFETY: the thread does not go on in the frame that has the guard. Nor is that frame's guard dropped: a program that can run
        // this is built without unwinding of Rust frames (the drop-in).
        let queue = unsafe { queue.taken_over() };
        let heads = flags & (word::TIMED | word::HANDOFF) != 0;
        self.settle_flags(queue.head().is_some(), heads, want);
        self.service_and_unlock(queue);
    }

    /// T15: locks the queue for the waiter of `node`, which is not in it. While another thread has it locked, which perhaps does not
    /// run, the waiter looks at the lock by itself, as those do that are queued (L3): it takes a free one, whatever is promised. It has
    /// withdrawn by then what it has `announced`, on which others rely.
    fn enter_queue(
        &self,
        node: &WaitNode<P>,
        announced: &mut Announced,
        deadline: Option<Deadline>,
    ) -> Result<QueueGuard<'_, P, Self>, Joined> {
        let mut span = P::TUNING.watch_ns;
        let mut waited = 0_u64;
        loop {
            let left = || deadline.map_or(u64::MAX, Deadline::left::<P>);
            if let Some(queue) = self.lock_queue_within(&|| span.min(left())) {
                return Ok(queue);
            }
            waited = waited.saturating_add(span);
            // H3, as in `recheck`: a reader inside may wait for this one.
            let joins = node.want.joins_readers() && waited >= P::TUNING.reader_patience_ns;
            let want = if joins { Want::ReadAgain } else { node.want };
            let joined = self.acquire_or_mark(None, want, node.token, *announced, 0, Promise::Passes);
            let withdrawn = core::mem::replace(announced, Announced::None) != Announced::None;
            if !matches!(joined, Joined::Acquired) && (withdrawn || matches!(joined, Joined::Foreign)) {
                self.service_now(); // L1; X2
            }
            match joined {
                Joined::Queued => {} // as it was, but for what it had announced
                joined => return Err(joined),
            }
            if left() == 0 {
                P::event(Event::TimedOut);
                return Err(Joined::TimedOut);
            }
            span = span.saturating_mul(2).min(P::TUNING.longest_watch_ns);
        }
    }

    /// T3: queues behind all others of its rank; an upgrade before all others, which wait for its thread's own hold.
    ///
    /// One that `backs_off` and is the first keeps its own time at once (`TIMED`), so that the next release need not wake it.
    /// Returns whether that is so.
    pub(super) fn join(
        &self,
        node: &WaitNode<P>,
        mut announced: Announced,
        backs_off: bool,
        deadline: Option<Deadline>,
    ) -> (Joined, bool) {
        let mut queue = match self.enter_queue(node, &mut announced, deadline) {
            Ok(queue) => queue,
            Err(joined) => return (joined, false),
        };
        // Not beside a woken waiter: if that comes back, it goes to the head, and is served by this one's demand.
        let timed = backs_off && queue.head().is_none() && !word::is_waking(self.peek());
        let flags = if timed { word::WAITERS | word::TIMED } else { word::WAITERS };
        let joined =
            self.acquire_or_mark(Some(&queue), node.want, node.token, announced, flags, Promise::of(node));
        if let Joined::Queued = joined {
            if node.want == Want::Upgrade {
                self.word().fetch_and(!word::TIMED, Relaxed); // of the head before it; U1: of a real-time head, too
            }
            queue.push(node);
        }
        if !matches!(joined, Joined::Acquired) {
            self.service_and_unlock(queue); // L1: the announced state may have been what the head relied on
        }
        (joined, timed)
    }

    /// T8: the woken waiter lost to a running thread: back to the head, with a timer, or with a demand if `starved`. One that was woken
    /// without a mark gets neither; if it has `starved`, the next one is with a mark (T16).
    pub(super) fn rejoin(
        &self,
        node: &WaitNode<P>,
        mut announced: Announced,
        starved: bool,
        deadline: Option<Deadline>,
    ) -> Joined {
        let is_unmarked = announced == Announced::Unmarked && !node.is_realtime();
        let mut queue = match self.enter_queue(node, &mut announced, deadline) {
            Ok(queue) => queue,
            Err(joined) => return joined,
        };
        // T16: several may be on their way. None of them passes one that has demanded the lock, which is the first, nor one that has
        // starved. (Beside `WAKING`, a demand is that waiter's, H1.)
        let seen = self.peek();
        let demanded = word::wants_handoff(seen) && !word::is_waking(seen);
        // An upgrade that came meanwhile stays first (this waiter waits for its thread's hold), and so does a real-time waiter.
        let first = queue.would_lead(node) && !node.is_realtime();
        let heads = match (starved, first) {
            _ if is_unmarked => 0,
            (true, _) => word::HANDOFF,
            // On two CPUs, a release may leave it to its own timer (`returns`).
            (false, true) if !has_no_cpu_to_spare::<P>() || P::has_fine_timers() => word::TIMED,
            (false, _) => 0,
        };
        let flags = word::WAITERS | heads;
        let promise = Promise::of(node);
        let joined = self.acquire_or_mark(Some(&queue), node.want, node.token, announced, flags, promise);
        if let Joined::Queued = joined {
            node.reset();
            node.set_starved(is_unmarked && starved);
            if is_unmarked {
                node.set_rechecks(false);
                queue.push_behind_owed(node, demanded);
            } else {
                node.set_rechecks(starved && !word::is_write_held(self.peek()));
                queue.push_again(node);
            }
            if heads & word::HANDOFF != 0 {
                self.note_demand();
            }
        }
        if !matches!(joined, Joined::Acquired) {
            self.service_and_unlock(queue); // L1: the announced state may have been what the head relied on; X2
        }
        joined
    }

    /// The head has demanded the lock. Beside `WAKING` it is not owed that yet: the waiter that is on its way comes first, and ends
    /// the demand (H1).
    fn note_demand(&self) {
        if !word::is_waking(self.peek()) {
            P::event(Event::DemandedHandoff);
        }
    }

    /// Lets in or wakes waiters that can come in beside the present holders, and unlocks the queue. For a caller that keeps the lock
    /// alive: it holds it, or waits for it.
    #[inline(never)] // for the drop-in's size
    pub(super) fn service_and_unlock(&self, mut queue: QueueGuard<'_, P, Self>) {
        let serviced = self.service(&mut queue, None);
        serviced.unlock_and_notify(queue);
    }

    /// [`LockCore::service_and_unlock`], or leaves that to the thread that has the queue locked (V1).
    #[cold]
    #[inline(never)]
    pub(crate) fn service_now(&self) {
        if let Some(queue) = self.lock_queue_or(Ask::Service) {
            self.service_and_unlock(queue);
        }
    }

    /// Whether a real-time waiter, whose time is up, does not recheck: one of a higher priority is queued, or the lock is free
    /// for one that was woken and may be on its way. It waits for a woken one once only: that may be kept from its CPU (T12). It
    /// rechecks behind an upgrade, which keeps no time before it is woken: else a demand might have no waiter that rechecks it
    /// (H2).
    #[cold]
    #[inline(never)]
    pub(super) fn comes_later(&self, node: &WaitNode<P>, patience: &mut Patience) -> bool {
        let queue = self.lock_queue();
        let leads = queue.head().is_none_or(|head| core::ptr::eq(head, node) || head.want == Want::Upgrade);
        let seen = self.peek();
        let is_owed = word::is_waking(seen) && !word::is_held(seen);
        let later = !leads || (is_owed && !patience.rechecks_early());
        if later {
            patience.rechecks_later::<P>(leads);
        }
        later
    }

    /// The waiter rechecks by itself: it takes the lock, or, if its patience is over, `demands` it.
    ///
    /// A reader demands nothing, but now comes in beside other readers whatever writer is owed the lock: one of those
    /// readers may be waiting for this one, and the writer has not let it in by itself (H3): its thread does not run,
    /// perhaps.
    pub(super) fn recheck(&self, node: &WaitNode<P>, demands: bool) -> Joined {
        self.recheck_as(self.lock_queue(), node, demands, Promise::of(node))
    }

    /// T14: the waiter has slept for long, and looks at the lock, because a thread that was woken before it may not run. If the lock is
    /// free, it takes it, whatever is promised, and with it the part of that thread. If a waiter was on its way already when it `saw`
    /// the lock last, and still is, it ends that one's part if the head does not look by itself or is this waiter: the next release
    /// wakes a waiter again. (L3)
    ///
    /// Returns whether a waiter is on its way.
    #[cold]
    #[inline(never)]
    pub(super) fn watch(&self, node: &WaitNode<P>, saw: bool) -> (Joined, bool) {
        let mut seen = self.peek();
        // A reader that waits behind all others passes them only if the one that was woken has not come for a while.
        let is_late = node.want != Want::ReadBehindWaiters || saw && word::is_waking(seen);
        if is_late && word::admits_past_promise(seen, node.want) {
            // The holder of the queue may be stopped as well: then the waiter can only look again later.
            let Some(queue) = self.lock_queue_within(&|| P::TUNING.watch_ns) else {
                return (Joined::Queued, false);
            };
            let joined = self.recheck_as(queue, node, false, Promise::Ends);
            seen = self.peek();
            while matches!(joined, Joined::Acquired) && word::is_waking(seen) {
                let alone = word::withdraw(seen, Announced::Waking);
                match self.word().compare_exchange_weak(seen, alone, Relaxed, Relaxed) {
                    Ok(_) if word::has_waiters(alone) && !word::is_write_held(alone) => {
                        self.service_now(); // another one may have room beside a reader
                        break;
                    }
                    Ok(_) => break,
                    Err(now) => seen = now,
                }
            }
            return (joined, false);
        }
        if saw && word::is_waking(seen) {
            let Some(queue) = self.lock_queue_within(&|| P::TUNING.watch_ns) else {
                return (Joined::Queued, true);
            };
            let keeps_time = |head: &WaitNode<P>| head.mutex.is_null() && !core::ptr::eq(head, node);
            if !queue.head().is_none_or(keeps_time) && word::is_waking(self.peek()) {
                self.word().fetch_and(!(word::WAKING | word::TIMED), Relaxed);
                self.service_and_unlock(queue);
                return (Joined::Queued, false);
            }
        }
        (Joined::Queued, word::is_waking(seen))
    }

    #[inline(never)] // for the drop-in's size
    fn recheck_as(
        &self,
        mut queue: QueueGuard<'_, P, Self>,
        node: &WaitNode<P>,
        demands: bool,
        promise: Promise,
    ) -> Joined {
        let was_head = queue.head().is_some_and(|head| core::ptr::eq(head, node));
        // A writer was put at the head; only an upgrade goes before that. If it is not linked, it was dequeued just now.
        let demand = if demands { word::HANDOFF } else { 0 };
        let (want, demand) =
            if node.want.joins_readers() { (Want::ReadAgain, 0) } else { (node.want, demand) };
        // One that was signalled just now may still be linked in the condition variable's queue, which has its own lock.
        if node.is_elsewhere() || !queue.is_linked(node) {
            return Joined::Queued;
        }
        let joined = self.acquire_or_mark(Some(&queue), want, node.token, Announced::None, demand, promise);
        match joined {
            Joined::Queued if demand != 0 => {
                node.set_rechecks(!word::is_write_held(self.peek()));
                if was_head {
                    self.note_demand();
                }
            }
            // G3: there is no bias for a thread in the queue.
            Joined::Queued | Joined::Biased | Joined::TimedOut => {}
            Joined::Foreign => {
                queue.remove(node);
                self.service_and_unlock(queue); // X2
            }
            Joined::Acquired => {
                queue.remove(node);
                self.settle_flags(queue.head().is_some(), was_head, node.want);
                self.service_and_unlock(queue);
            }
        }
        joined
    }

    /// T13: rouses the first waiters of the queue: many if the woken thread that calls came `late`, else one or two more.
    #[cold]
    #[inline(never)]
    pub(super) fn rouse(&self, late: bool) {
        let mut roused = [const { None }; LATE_ROUSES];
        let (first, most) = if late { (LATE_ROUSES, LATE_ROUSES) } else { (ROUSED_OF, ROUSES) };
        let Some(queue) = self.lock_queue_or(Ask::Nothing) else { return };
        let sleepers = queue.iter().take(first).filter(|node| node.want.is_write());
        for (place, node) in roused.iter_mut().take(most).zip(sleepers.filter_map(|node| node.rouse(late))) {
            *place = Some(node);
        }
        drop(queue);
        roused.into_iter().flatten().for_each(Roused::wake);
    }

    /// T9: leaves the queue; `false` if the node was dequeued already, or is being moved here, and will be notified.
    pub(super) fn leave(&self, node: &WaitNode<P>) -> bool {
        let mut queue = self.lock_queue();
        let was_head = queue.head().is_some_and(|head| core::ptr::eq(head, node));
        // One that was signalled just now may still be linked in the condition variable's queue, which has its own lock.
        if node.is_elsewhere() || !queue.remove(node) {
            return false;
        }
        self.settle_flags(queue.head().is_some(), was_head, node.want);
        // Readers behind this one may have waited only for it.
        self.service_and_unlock(queue);
        true
    }

    /// Makes the flags agree with a queue that lost a node: W1, and the head's own flags if the head has gone. An upgrade
    /// leaves a demand: it may have been that of the waiter behind it, before whom it went (H2).
    ///
    /// The caller holds the queue lock.
    fn settle_flags(&self, more: bool, head_gone: bool, gone: Want) {
        let waiters = if more { 0 } else { word::WAITERS };
        let heads = match head_gone {
            true if more && gone == Want::Upgrade => word::TIMED,
            true => word::TIMED | word::HANDOFF,
            false => 0,
        };
        let mut seen = self.peek();
        loop {
            // H4: beside `WAKING`, it may be the promise to the waiter that was woken.
            let kept = if word::is_waking(seen) { word::HANDOFF } else { 0 };
            let rest = seen & !(waiters | heads & !kept);
            match self.word().compare_exchange_weak(seen, rest, ReleaseOrder, Relaxed) {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
    }

    /// T4, T9: a thread that is awake and not queued gives up; it still takes the lock if it is there.
    pub(super) fn give_up(&self, want: Want, token: u32, announced: Announced) -> bool {
        if let Joined::Acquired = self.acquire_or_mark(None, want, token, announced, 0, Promise::Passes) {
            return true;
        }
        P::event(Event::TimedOut);
        let counts = |seen| word::has_waiters(seen) || word::is_foreign(seen);
        if announced != Announced::None && counts(self.peek()) {
            self.service_now(); // L1: the announced state may have been what the head relied on; X2
        }
        false
    }
}
