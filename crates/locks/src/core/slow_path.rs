//! The slow path: a thread that cannot have the lock at once spins ([`midpath`](super::midpath)), queues,
//! sleeps, contends as it is woken, and queues again.
//!
//! Each step of a waiter on the queue (it joins, joins again, requests a hand-off, leaves) holds the queue
//! lock. One compare-exchange of the word either acquires, or records the waiter and withdraws what the
//! thread was counted as; then the thread makes a wake pass itself if others relied on it (L1).

use spinpark_platform::{
    AtomicU32, Deadline, Event, Ordering::Acquire, Ordering::Relaxed, Ordering::Release as ReleaseOrder,
    Platform,
};

use super::midpath::{Polls, Spun};
use super::patience::Patience;
use super::{LockCore, NoWait, Outcome};
use crate::policy::{Arrival, Asleep, BeforeQueueing, Note, Policy, Spin, Spinner, WhenWoken};
use crate::queue::{Ask, HasQueue, Notice, QueueGuard, WaitNode};
use crate::word::{self, Announced, Want};

/// Of a thread whose time is up.
struct AtDeadline;

impl NoWait for AtDeadline {}

// ---- the wait, from the first spin to the last wake-up

fn is_past<P: Platform>(deadline: Option<Deadline>) -> bool {
    deadline.is_some_and(|deadline| deadline.left::<P>() == 0)
}

impl<P: Platform, Q: Policy<P>> LockCore<P, Q> {
    /// Acquires for `want`, or gives up.
    pub(crate) fn acquire_slow(&self, want: Want, deadline: Option<Deadline>) -> Outcome {
        self.note_wait(want);
        let outcome = self.spin_then_queue(want, P::thread_token(), deadline);
        if outcome == Outcome::Acquired && want == Want::Upgradable && word::has_waiters(self.peek()) {
            self.wake_pass_now(); // L1: readers behind this one have room alongside it
        }
        outcome
    }

    fn spin_then_queue(&self, want: Want, token: u32, deadline: Option<Deadline>) -> Outcome {
        let asks = |may_take_turns| {
            Q::before_queueing(self.key(), Arrival { writes: want.is_write(), may_take_turns })
        };
        let mut does = asks(true);
        let mut spun = None;
        if let BeforeQueueing::InTurn(turn) = does {
            spun = self.spin_in_queue(turn, want, token, deadline);
            if spun.is_none() {
                does = asks(false);
            }
        }
        let spun = spun.unwrap_or_else(|| {
            self.adopt();
            match does {
                BeforeQueueing::Polls => self.spin(want, token, deadline),
                _ => Spun::Stopped(Announced::None),
            }
        });
        let announced = match spun {
            Spun::Acquired => {
                self.time_acquisition(want, false);
                return Outcome::Acquired;
            }
            Spun::Stopped(announced) => announced,
        };
        if is_past::<P>(deadline) {
            P::queues();
            return Outcome::of(self.give_up(want, token, announced) || self.last_try(want, token));
        }
        let node = WaitNode::new(want, token, core::ptr::null());
        let mut patience = Patience::on_arrival::<P, Q>(want);
        P::queues(); // late: what the node asks takes a system call
        let backs_off = does == BeforeQueueing::BacksOff && !node.is_realtime();
        let (joined, timed) = self.join(&node, announced, backs_off, &mut patience, deadline);
        match joined {
            Joined::Acquired => {
                self.time_acquisition(want, false);
                Outcome::Acquired
            }
            Joined::Queued => {
                Q::learns(self.key(), Note::Sleeps); // E2
                let patience = if timed { patience.lets_owner_go_on::<P, Q>() } else { patience };
                if want.is_write() && word::queues_at_once(self.peek(), want) {
                    self.watch(Spin::Readers, &node, patience); // awake, as it would have spun
                }
                self.wait_in_queue(&node, patience, deadline)
            }
            Joined::Biased => Outcome::Biased,
            Joined::GlibcOwned => Outcome::GlibcOwned,
            Joined::TimedOut => Outcome::TimedOut,
        }
    }

    /// Has an acquisition of a thread that waited for it, perhaps in the queue, timed now and then: see
    /// [`Adaptive`](crate::policy::Adaptive).
    #[inline(never)] // for the drop-in's size
    fn time_acquisition(&self, want: Want, queued: bool) {
        if !want.is_write() {
            return;
        }
        if let Some(timing) = Q::wants_time(self.key(), queued) {
            // So that the release is not a plain store, which nothing can time.
            if let Some(set_contended) = self.queue().begin_contended(timing.may_set_contended) {
                Q::learns(self.key(), Note::Acquired { set_contended });
            }
        }
    }

    /// Waits in the queue, where `node` is linked or dequeued, until the lock is held or `deadline` passes,
    /// or the word is found to be glibc-owned.
    ///
    /// Also the end of every wait on a condition variable whose waiter was deferred to this mutex's release
    /// (T10).
    pub(crate) fn wait_queued(&self, node: &WaitNode<P>, deadline: Option<Deadline>) -> Outcome {
        self.note_wait(node.want);
        self.wait_in_queue(node, Patience::on_arrival::<P, Q>(node.want), deadline)
    }

    /// Only writers guess that a lock is free ([`LockCore::enter_uncontended`]), and have turns.
    #[inline(never)] // for the drop-in's size
    fn note_wait(&self, want: Want) {
        if want.is_write() {
            Q::learns(self.key(), Note::Waits);
        }
    }

    fn wait_in_queue(&self, node: &WaitNode<P>, patience: Patience, deadline: Option<Deadline>) -> Outcome {
        let outcome = QueuedWait { lock: self, node, patience, deadline }.until_let_in();
        if outcome == Outcome::Acquired {
            self.time_acquisition(node.want, true);
        }
        outcome
    }

    /// Sleeps until notified, until the next recheck or probe, until it is woken early for one (E2), or
    /// until `deadline`.
    #[inline(never)] // for the drop-in's size
    fn sleep_on(&self, node: &WaitNode<P>, patience: Patience, deadline: Option<Deadline>) -> Notice {
        let may_be_left = self.may_be_left(node, patience);
        self.or_leave_queue(node, patience, || {
            node.park(deadline, |word, expected, deadline| {
                let sleep = || patience.sleep::<P>(word, expected, deadline).into();
                if may_be_left {
                    self.sleep_with_note(word, sleep)
                } else {
                    sleep()
                }
            })
        })
    }

    /// T7: the woken waiter contends with running threads.
    ///
    /// A real-time waiter polls once: its CPU may be the owner's.
    fn contend(
        &self,
        node: &WaitNode<P>,
        announced: Announced,
        starved: bool,
        does: WhenWoken,
        deadline: Option<Deadline>,
    ) -> Spun {
        let (want, token) = (node.want, node.token);
        if node.is_realtime() {
            return self.poll(want, token, announced, Polls::Once, deadline);
        }
        let once = does.backs_off || starved && does.requests_at_once;
        let polls = if once { Polls::Once } else { Polls::Alone };
        self.or_give_up(node, announced, || self.poll(want, token, announced, polls, deadline))
    }

    /// T3, T8: the next release, or that of the last reader, leaves the lock to this waiter: mostly in no time, so
    /// a sleep would only delay all waiters.
    fn watch(&self, kind: Spin, node: &WaitNode<P>, patience: Patience) {
        if let Some(polling) = Q::spins(self.key(), Spinner::Watches(kind)) {
            // H3: it is to recheck its request in time.
            let span = polling.span_ns.min(Q::TIMES.request_ns);
            let notified = self.or_leave_queue(node, patience, || node.watch(span));
            Q::learns(self.key(), Note::Spun(kind, notified));
        }
    }

    /// T9: the deadline has passed, or the thread leaves its call by unwinding. `true` if the lock came
    /// first.
    pub(super) fn time_out(&self, node: &WaitNode<P>, patience: Patience) -> bool {
        if self.leave(node) {
            P::event(Event::TimedOut);
            return false;
        }
        // Dequeued just now: the notification is on its way, and comes first (Q3).
        match self.sleep_on(node, patience.until_dequeued(), None) {
            Notice::Granted => true,
            Notice::Woken => self.give_up(node.want, node.token, Announced::Waking),
            Notice::Unmarked => self.give_up(node.want, node.token, Announced::Unmarked),
            Notice::Released | Notice::Due => false,
            // A condition variable's waiter has come to this queue meanwhile; or it was dequeued after that.
            Notice::Appointed => {
                node.accepts();
                self.time_out(node, patience)
            }
        }
    }

    /// `core.T1` at the deadline: the lock may be free, as the thread that was woken for it, or to which it
    /// is promised, need not have run.
    #[cold]
    #[inline(never)] // for the drop-in's size
    fn last_try(&self, want: Want, token: u32) -> bool {
        self.try_once(want, token, AtDeadline)
    }
}

// ---- the wait in the queue: asleep, woken, or by its own time

/// A wait of the calling thread in the queue, by `node`.
struct QueuedWait<'a, P: Platform, Q: Policy<P>> {
    lock: &'a LockCore<P, Q>,
    node: &'a WaitNode<P>,
    patience: Patience,
    deadline: Option<Deadline>,
}

impl<P: Platform, Q: Policy<P>> QueuedWait<'_, P, Q> {
    fn until_let_in(mut self) -> Outcome {
        loop {
            let ended = match self.lock.sleep_on(self.node, self.patience, self.deadline) {
                Notice::Granted => Some(Outcome::Acquired),
                Notice::Released => Some(self.lock.acquire(self.node.want, self.node.token, self.deadline)),
                Notice::Woken => self.woken(Announced::Waking),
                Notice::Unmarked => self.woken(Announced::Unmarked),
                Notice::Appointed => self.appointed(),
                Notice::Due => self.due(),
            };
            if let Some(outcome) = ended {
                return outcome;
            }
        }
    }

    /// T7, and T8 if a running thread has taken the lock first.
    fn woken(&mut self, announced: Announced) -> Option<Outcome> {
        let (lock, node) = (self.lock, self.node);
        let is_marked = announced == Announced::Waking;
        let does = Q::when_woken(lock.key(), node.want.is_write() && !node.is_realtime());
        let backs_off = does.backs_off;
        lock.wake_others_early(node, self.patience, does.wakes_others);
        // A stream of readers passes a real-time writer once.
        let passed = node.is_realtime() && word::readers(lock.peek()) > 0;
        let paused = self.patience.is_in_pause::<P>(); // H3
        let starved = if is_marked {
            let is_over = self.patience.is_over::<P>() && (!backs_off || self.patience.rechecks_early());
            !paused && (passed || is_over)
        } else {
            self.patience.is_over_unmarked::<P, Q>()
        };
        if let Spun::Acquired = lock.contend(node, announced, starved, does, self.deadline) {
            return Some(Outcome::Acquired);
        }
        if is_past::<P>(self.deadline) {
            return Some(Outcome::of(lock.give_up(node.want, node.token, announced)));
        }
        if !starved {
            self.patience = match is_marked {
                _ if paused => self.patience.until_pause_ends(),
                _ if backs_off => self.patience.lets_owner_go_on::<P, Q>(),
                true => self.patience.until_starved(),
                false => self.patience,
            };
        }
        let joined = lock.rejoin(node, announced, starved, paused, &mut self.patience, self.deadline);
        self.goes_on(joined, starved)
    }

    /// L3: it is to have a timer.
    fn appointed(&mut self) -> Option<Outcome> {
        if self.node.accepts() {
            self.patience.sets_timer::<P, Q>(true);
        }
        None
    }

    /// T4, and T9: its sleep has ended by time, or it was woken early to recheck (E2).
    fn due(&mut self) -> Option<Outcome> {
        let (lock, node) = (self.lock, self.node);
        // Nothing but the deadline ends a sleep without a recheck: the kernel's time-out is trusted, and the
        // clock not read again.
        if self.patience.has_no_timer() || is_past::<P>(self.deadline) {
            let came = lock.time_out(node, self.patience) || lock.last_try(node.want, node.token);
            return Some(Outcome::of(came));
        }
        if self.patience.is_probe_due::<P>() {
            let (joined, saw) = lock.probe(node, self.patience);
            self.patience.has_probed::<P, Q>(saw);
            return self.goes_on(joined, false);
        }
        if !self.patience.rechecks() {
            return None; // a clock was a little ahead
        }
        if self.patience.is_requesting() {
            lock.consider_request(node, &mut self.patience); // H3
            return None;
        }
        if node.is_realtime() && lock.comes_later(node, &mut self.patience) {
            return None;
        }
        let starved = self.patience.is_over::<P>();
        // One that was woken early (E2) has let its owner go on for a part of the time only.
        if !starved && self.patience.rechecks_early() && self.patience.is_recheck_due::<P>() {
            self.patience = self.patience.lets_owner_go_on::<P, Q>();
        }
        let joined = lock.recheck(node, starved);
        self.goes_on(joined, starved)
    }

    /// After a step on the queue; it `requests` the lock if it is in the queue.
    fn goes_on(&mut self, joined: Joined, requests: bool) -> Option<Outcome> {
        match joined {
            Joined::Queued => {
                if requests {
                    self.patience.requests::<P, Q>(self.node.rechecks(), self.lock.peek());
                    self.lock.watch(Spin::HandOver, self.node, self.patience);
                }
                None
            }
            Joined::Acquired => Some(Outcome::Acquired),
            // G3: only of a waiter that was woken alongside another, and was in no flag meanwhile.
            Joined::Biased => Some(Outcome::Biased),
            Joined::GlibcOwned => Some(Outcome::GlibcOwned),
            Joined::TimedOut => Some(Outcome::TimedOut),
        }
    }
}

// ---- steps on the queue

/// What a thread does about a promise that was made to another one (H4).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Promise {
    /// It leaves the lock to that one.
    Heeds,
    /// It takes the lock first; the promise is a request then.
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
    /// It was not acquired: the node is linked, is about to be, or was dequeued; or the thread stays outside.
    Queued,
    /// G3: no thread may queue for an exclusive hold while readers may be in slots. The node is out.
    Biased,
    /// X1: other code has written the word. Nothing was done to it; the node is out.
    GlibcOwned,
    /// T9: the deadline passed first. The node is out, and the thread is in no flag.
    TimedOut,
}

impl<P: Platform, Q: Policy<P>> LockCore<P, Q> {
    /// T1 (of a thread that is queued, T4): takes the lock if there is room now, else records this thread
    /// with `flags` and withdraws what it has announced.
    ///
    /// A thread that was woken for the lock ends a promise. The caller holds the lock of `queue`; with `None` it
    /// marks nothing (`flags` is 0).
    pub(super) fn acquire_or_mark(
        &self,
        queue: Option<&QueueGuard<'_, P, Self>>,
        want: Want,
        token: u32,
        announced: Announced,
        flags: u32,
        promise: Promise,
    ) -> Joined {
        let fenced = queue.is_some_and(|queue| queue.was_contended());
        // H3: along with `TIMED`, a request would be a pause.
        let ends = if flags & word::HANDOFF == 0 { 0 } else { word::TIMED };
        let mut seen = self.peek();
        let mut announced = announced;
        loop {
            if word::is_glibc_owned(seen) {
                return Joined::GlibcOwned;
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
                    self.fence_or_leave(queue, want, flags); // A1
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

    /// T3: queues behind all others of its rank; an upgrade before all others, which wait for its thread's
    /// own hold.
    ///
    /// One that `backs_off` and is the first keeps its own time at once (`TIMED`), so that the next release
    /// need not wake it. Returns whether that is so.
    fn join(
        &self,
        node: &WaitNode<P>,
        mut announced: Announced,
        backs_off: bool,
        patience: &mut Patience,
        deadline: Option<Deadline>,
    ) -> (Joined, bool) {
        let mut queue = match self.enter_queue(node, &mut announced, deadline) {
            Ok(queue) => queue,
            Err(joined) => return (joined, false),
        };
        // Not alongside a woken waiter: if that comes back, it goes to the head, and is served by this one's
        // request.
        let timed = backs_off && queue.head().is_none() && !word::is_waking(self.peek());
        let flags = if timed { word::WAITERS | word::TIMED } else { word::WAITERS };
        let joined =
            self.acquire_or_mark(Some(&queue), node.want, node.token, announced, flags, Promise::of(node));
        if let Joined::Queued = joined {
            if node.want == Want::Upgrade {
                self.word().fetch_and(!word::TIMED, Relaxed); // of the head before it
            }
            self.decide_timer(node, patience, &queue, timed);
            queue.push(node);
        }
        if announced == Announced::None {
            queue.set_joined(true);
        }
        if !matches!(joined, Joined::Acquired) {
            self.wake_pass_and_unlock(queue); // L1: the announced state may have been what the head relied on
        }
        (joined, timed)
    }

    /// T8: the woken waiter lost to a running thread: back to the head, with a timer, or with a request if
    /// `starved`. One that was woken without a mark gets neither; if it has `starved`, the next one is with a
    /// mark (L4). One that has `paused` its requests of readers without a timer keeps the time of the rest.
    fn rejoin(
        &self,
        node: &WaitNode<P>,
        mut announced: Announced,
        starved: bool,
        paused: bool,
        patience: &mut Patience,
        deadline: Option<Deadline>,
    ) -> Joined {
        let is_unmarked = announced == Announced::Unmarked;
        let mut queue = match self.enter_queue(node, &mut announced, deadline) {
            Ok(queue) => queue,
            Err(joined) => return joined,
        };
        // L4: several may be on their way. None of them passes one that has requested the lock, which is the
        // first, nor one that has starved. (Along with `WAKING`, a request is that waiter's, H1.)
        let seen = self.peek();
        let requested = word::wants_handoff(seen) && !word::is_waking(seen);
        // An upgrade that came meanwhile stays first (this waiter waits for its thread's hold), and so does a
        // real-time waiter.
        let first = queue.would_lead(node) && !node.is_realtime();
        // Another waiter may have been woken if this one withdrew its part before it had the queue.
        let is_alone = !word::is_waking(word::withdraw(seen, announced));
        let heads = match (starved, first) {
            _ if is_unmarked => 0,
            (true, _) => word::HANDOFF,
            _ if paused && is_alone => word::HANDOFF | word::TIMED, // H3
            _ if paused => 0,
            // A release may leave it to its own timer (`comes_back`).
            (false, true) if is_alone && Q::sleeps(Asleep::HeadKeepsTime) => word::TIMED,
            (false, _) => 0,
        };
        let flags = word::WAITERS | heads;
        let promise = Promise::of(node);
        let joined = self.acquire_or_mark(Some(&queue), node.want, node.token, announced, flags, promise);
        if let Joined::Queued = joined {
            node.reset();
            self.decide_timer(node, patience, &queue, heads != 0);
            node.set_starved(is_unmarked && starved);
            if is_unmarked {
                node.set_rechecks(false);
                queue.push_behind_owed(node, requested);
            } else {
                let requests = starved || heads == word::HANDOFF | word::TIMED;
                node.set_rechecks(requests && !word::is_write_held(self.peek()));
                queue.push_again(node);
            }
            if heads == word::HANDOFF {
                self.note_request();
            }
        }
        if !matches!(joined, Joined::Acquired) {
            // L1: the announced state may have been what the head relied on; X2
            let pass = self.wake_pass(&mut queue, None);
            let leads = queue.head().is_some_and(|head| core::ptr::eq(head, node));
            let seen = self.peek();
            if paused && leads && node.rechecks() && word::wants_handoff(seen) && !word::is_waking(seen) {
                self.word().fetch_or(word::TIMED, Relaxed); // the pass has ended that of a real-time head (U1)
            }
            pass.unlock_and_notify(queue);
        }
        joined
    }

    /// The head has requested the lock. Along with `WAKING` it is not owed that yet: the waiter that is on
    /// its way comes first, and ends the request (H1).
    fn note_request(&self) {
        if !word::is_waking(self.peek()) {
            P::event(Event::RequestedHandoff);
        }
    }

    /// Lets in or wakes waiters that can come in next to the present holders, and unlocks the queue. For a
    /// caller that keeps the lock alive: it holds it, or waits for it.
    #[inline(never)] // for the drop-in's size
    pub(super) fn wake_pass_and_unlock(&self, mut queue: QueueGuard<'_, P, Self>) {
        let pass = self.wake_pass(&mut queue, None);
        pass.unlock_and_notify(queue);
    }

    /// [`LockCore::wake_pass_and_unlock`], or leaves that to the thread that has the queue locked (V1).
    #[cold]
    #[inline(never)]
    pub(crate) fn wake_pass_now(&self) {
        if let Some(queue) = self.lock_queue_or(Ask::WakePass) {
            self.wake_pass_and_unlock(queue);
        }
    }

    /// T4: the waiter rechecks by itself: it takes the lock, or, if its patience is over, `requests` it.
    ///
    /// A reader requests nothing, but now comes in alongside other readers whatever writer is owed the lock:
    /// one of those readers may be waiting for this one, and the writer has not let it in by itself (H3): its
    /// thread does not run, perhaps.
    fn recheck(&self, node: &WaitNode<P>, requests: bool) -> Joined {
        self.recheck_as(self.lock_queue(), node, requests, Promise::of(node))
    }

    #[inline(never)] // for the drop-in's size
    pub(super) fn recheck_as(
        &self,
        mut queue: QueueGuard<'_, P, Self>,
        node: &WaitNode<P>,
        requests: bool,
        promise: Promise,
    ) -> Joined {
        let was_head = queue.head().is_some_and(|head| core::ptr::eq(head, node));
        // A writer was put at the head; only an upgrade goes before that. If it is not linked, it was
        // dequeued just now.
        let request = if requests { word::HANDOFF } else { 0 };
        let (want, request) =
            if node.want.joins_readers() { (Want::ReadAgain, 0) } else { (node.want, request) };
        // One that was signalled just now may still be linked in the condition variable's queue, which has
        // its own lock.
        if node.is_elsewhere() || !queue.is_linked(node) {
            return Joined::Queued;
        }
        let joined = self.acquire_or_mark(Some(&queue), want, node.token, Announced::None, request, promise);
        match joined {
            Joined::Queued if request != 0 => {
                node.set_rechecks(!word::is_write_held(self.peek()));
                if was_head {
                    self.note_request();
                }
                self.wake_pass_and_unlock(queue); // L3: the others may rely on this waiter now
            }
            // G3: there is no bias for a thread in the queue.
            Joined::Queued | Joined::Biased | Joined::TimedOut => {}
            Joined::GlibcOwned => {
                queue.remove(node);
                self.wake_pass_and_unlock(queue); // X2
            }
            Joined::Acquired => {
                queue.remove(node);
                self.settle_flags(queue.head().is_some(), was_head, node.want);
                self.wake_pass_and_unlock(queue);
            }
        }
        joined
    }

    /// T9: leaves the queue; `false` if the node was dequeued already, or is being deferred to here, and will
    /// be notified.
    fn leave(&self, node: &WaitNode<P>) -> bool {
        let mut queue = self.lock_queue();
        let was_head = queue.head().is_some_and(|head| core::ptr::eq(head, node));
        // One that was signalled just now may still be linked in the condition variable's queue, which has
        // its own lock.
        if node.is_elsewhere() || !queue.remove(node) {
            return false;
        }
        self.settle_flags(queue.head().is_some(), was_head, node.want);
        // Readers behind this one may have waited only for it.
        self.wake_pass_and_unlock(queue);
        true
    }

    /// Makes the flags agree with a queue that lost a node: W1, and the head's own flags if the head has
    /// gone. An upgrade leaves a request: it may have been that of the waiter behind it, before whom it went
    /// (H2).
    ///
    /// The caller holds the queue lock.
    pub(super) fn settle_flags(&self, more: bool, head_gone: bool, gone: Want) {
        let waiters = if more { 0 } else { word::WAITERS };
        let heads = match head_gone {
            true if more && gone == Want::Upgrade => word::TIMED,
            true => word::TIMED | word::HANDOFF,
            false => 0,
        };
        let mut seen = self.peek();
        loop {
            // H4: along with `WAKING`, it may be the promise to the waiter that was woken.
            let kept = if word::is_waking(seen) { word::HANDOFF } else { 0 };
            let rest = seen & !(waiters | heads & !kept);
            match self.word().compare_exchange_weak(seen, rest, ReleaseOrder, Relaxed) {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
    }

    /// T9: a thread that is awake and not queued gives up; it still takes the lock if it is there.
    pub(super) fn give_up(&self, want: Want, token: u32, announced: Announced) -> bool {
        if let Joined::Acquired = self.acquire_or_mark(None, want, token, announced, 0, Promise::Passes) {
            return true;
        }
        P::event(Event::TimedOut);
        let counts = |seen| word::has_waiters(seen) || word::is_glibc_owned(seen);
        if announced != Announced::None && counts(self.peek()) {
            self.wake_pass_now(); // L1: the announced state may have been what the head relied on; X2
        }
        false
    }
}
