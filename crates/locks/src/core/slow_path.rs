//! The slow path: a thread that cannot have the lock at once spins ([`midpath`](super::midpath)), queues,
//! sleeps, contends as it is woken, and queues again.
//!
//! Each step of a waiter on the queue (it joins, joins again, requests a hand-off, leaves) holds the queue
//! lock. One compare-exchange of the word either acquires, or records the waiter and withdraws what the
//! thread was counted as; then the thread makes a wake pass itself if others relied on it (L1).
//!
//! # Requests over readers
//!
//! How long a starved waiter keeps readers out: a request over readers has pauses.
//!
//! Gives: a writer gets its turn past independent readers whose holds overlap; and yet readers that depend on
//! each other (one holds the lock for reading and waits for another thread's read, as in a parallel loop
//! under a read lock) lose about a quarter of the time. glibc's default kind promises that those go on. Does
//! not give: a bound on the writer's wait while dependent readers hold the lock; as on glibc, it then waits
//! until they leave it, and is handed it.
//!
//! A request (`HANDOFF`) keeps new readers out. If one inside waits for them, none leaves and the lock never
//! becomes free by it; no lock can tell such readers from slow ones. So the waiter rechecks its request after
//! `request_ns`. If some of the readers have left since, the request goes on for as long as it has lasted.
//! Else comes a *pause* (`HANDOFF` with `TIMED`): the readers that it has kept out come in, and others after
//! them, for three times as long. (Also if none is queued: a thread that only tries may come again and
//! again.) The request after that lasts twice as long as this one, up to `reader_patience_ns`: readers that
//! hold the lock for a time `h`, up to that, delay the writer by less than `9h`.
//!
//! Once its requests last for `reader_patience_ns`, and no reader has left in the last one, the waiter sleeps
//! without a timer and without a request: readers that neither come nor go are not delayed by it. A reader
//! that leaves others inside wakes it (L2), and it keeps the time of the rest of the pause.
//!
//! In a pause the release that leaves the lock free hands it over (H1), so a free lock never waits for the
//! pause to end. Alongside a waiter that was woken, and perhaps does not run, there is no request in the
//! pause: that waiter, or a real-time head, is awake for a free lock.
//!
//! - H3 in detail: a waiter that requests the lock of readers rechecks its request by itself, and so does one
//!   in a pause. So neither lasts. (If its thread does not run, a waiter that probes lets the readers in: L3.)

use spinpark_platform::{
    AtomicU32, Deadline, Event, Note, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
    Ordering::Release as ReleaseOrder, Platform, Spin, Spinning,
};

use super::midpath::{Polls, Spun};
use super::patience::{has_probes, Patience, Saw};
use super::wake_pass::WakePass;
use super::{LockCore, NoWait, Outcome};
use crate::policy::Policy;
use crate::queue::{Ask, EarlyWake, HasQueue, Notice, QueueGuard, Slept, WaitNode};
use crate::word::{self, Announced, Release, Want};

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
        let backs_off = self.backs_off_for(want);
        let spun = self.spin_in_queue(want, token, deadline).unwrap_or_else(|| {
            self.adopt();
            if backs_off {
                Spun::Stopped(Announced::None)
            } else {
                self.spin(want, token, deadline)
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
        let mut patience = Patience::on_arrival::<P>(want);
        P::queues(); // late: what the node asks takes a system call
        let backs_off = backs_off && !node.is_realtime();
        let (joined, timed) = self.join(&node, announced, backs_off, &mut patience, deadline);
        match joined {
            Joined::Acquired => {
                self.time_acquisition(want, false);
                Outcome::Acquired
            }
            Joined::Queued => {
                Q::learns(self.key(), Note::Sleeps); // T17
                let patience = if timed { patience.lets_owner_go_on::<P>() } else { patience };
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
    /// [`spinpark_platform::Adaptive`].
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
        self.wait_in_queue(node, Patience::on_arrival::<P>(node.want), deadline)
    }

    /// Only writers guess that a lock is free ([`LockCore::enter_uncontended`]), and have turns.
    #[inline(never)] // for the drop-in's size
    fn note_wait(&self, want: Want) {
        if want.is_write() {
            Q::learns(self.key(), Note::Waits);
        }
    }

    fn wait_in_queue(&self, node: &WaitNode<P>, patience: Patience, deadline: Option<Deadline>) -> Outcome {
        let outcome = self.sleep_until_let_in(node, patience, deadline);
        if outcome == Outcome::Acquired {
            self.time_acquisition(node.want, true);
        }
        outcome
    }

    fn sleep_until_let_in(
        &self,
        node: &WaitNode<P>,
        mut patience: Patience,
        deadline: Option<Deadline>,
    ) -> Outcome {
        loop {
            let mut hands_over = false;
            let joined = match self.sleep_on(node, patience, deadline) {
                Notice::Granted => return Outcome::Acquired,
                Notice::Released => return self.acquire(node.want, node.token, deadline),
                notice @ (Notice::Woken | Notice::Unmarked) => {
                    // T7: this thread is the one for which WAKING is set; or no mark stands for it (T12,
                    // T16).
                    let is_marked = notice == Notice::Woken;
                    let announced = if is_marked { Announced::Waking } else { Announced::Unmarked };
                    let backs_off = !node.is_realtime() && self.backs_off_for(node.want);
                    self.wake_others_early(node, patience);
                    // A stream of readers passes a real-time writer once.
                    let passed = node.is_realtime() && word::readers(self.peek()) > 0;
                    let paused = patience.is_in_pause::<P>();
                    let starved = if is_marked || node.is_realtime() {
                        let is_over = patience.is_over::<P>() && (!backs_off || patience.rechecks_early());
                        !paused && (passed || is_over)
                    } else {
                        patience.is_over_unmarked::<P>()
                    };
                    if let Spun::Acquired = self.contend(node, announced, starved, backs_off, deadline) {
                        return Outcome::Acquired;
                    }
                    if is_past::<P>(deadline) {
                        return Outcome::of(self.give_up(node.want, node.token, announced));
                    }
                    patience = match (backs_off, starved) {
                        (_, true) => patience,
                        _ if paused => patience.until_pause_ends(),
                        (true, false) => patience.lets_owner_go_on::<P>(),
                        (false, false) if is_marked || node.is_realtime() => patience.until_starved(),
                        (false, false) => patience,
                    };
                    hands_over = starved;
                    self.rejoin(node, announced, starved, paused, &mut patience, deadline)
                }
                Notice::Appointed => {
                    if node.accepts() {
                        patience.sets_timer::<P, Q>(true);
                    }
                    Joined::Queued
                }
                // Nothing but the deadline ends a sleep without a recheck: the kernel's time-out is trusted,
                // and the clock not read again.
                Notice::Due if patience.has_no_timer() || is_past::<P>(deadline) => {
                    return Outcome::of(
                        self.time_out(node, patience) || self.last_try(node.want, node.token),
                    );
                }
                Notice::Due if patience.is_probe_due::<P>() => {
                    let (joined, saw) = self.probe(node, patience);
                    patience.has_probed::<P>(saw);
                    joined
                }
                Notice::Due if !patience.rechecks() => Joined::Queued, // a clock was a little ahead
                Notice::Due if patience.is_requesting() => {
                    self.consider_request(node, &mut patience);
                    Joined::Queued
                }
                Notice::Due if node.is_realtime() && self.comes_later(node, &mut patience) => Joined::Queued,
                Notice::Due if patience.is_over::<P>() => {
                    hands_over = true;
                    self.recheck(node, true)
                }
                Notice::Due if patience.rechecks_early() => {
                    // One that was woken early (T17) has let its owner go on for a part of the time only.
                    if patience.is_recheck_due::<P>() {
                        patience = patience.lets_owner_go_on::<P>();
                    }
                    self.recheck(node, false)
                }
                // It was woken early by a thread that left it asleep, and does not come back; or the two
                // clocks disagree by a little.
                Notice::Due => self.recheck(node, false),
            };
            match joined {
                Joined::Acquired => return Outcome::Acquired,
                Joined::Queued if hands_over => {
                    patience.requests::<P>(node.rechecks(), self.peek());
                    self.watch(Spin::HandOver, node, patience);
                }
                Joined::Queued => {}
                // G3: only of a waiter that was woken alongside another, and was in no flag meanwhile.
                Joined::Biased => return Outcome::Biased,
                Joined::GlibcOwned => return Outcome::GlibcOwned,
                Joined::TimedOut => return Outcome::TimedOut,
            }
        }
    }

    /// T13: wakes waiters behind this one early if it has waited for long.
    fn wake_others_early(&self, node: &WaitNode<P>, patience: Patience) {
        let seen = self.peek();
        // A promised lock is idle until it is taken.
        let waits = node.want.is_write()
            && !node.is_realtime()
            && word::has_waiters(seen)
            && !word::is_promised(seen);
        if waits && Q::wakes_early() && patience.is_long::<P>() {
            self.wake_early(!node.was_woken_early(P::TUNING.deep_sleep_ns));
        }
    }

    /// Sleeps until notified, until the next recheck or probe, until it is woken early for one (T17), or
    /// until `deadline`.
    #[inline(never)] // for the drop-in's size
    fn sleep_on(&self, node: &WaitNode<P>, patience: Patience, deadline: Option<Deadline>) -> Notice {
        let may_be_left = self.may_be_left(node, patience);
        P::or_leave(&|| self.abandon(node.want, self.time_out(node, patience)), || {
            node.park(deadline, |word, expected, deadline| {
                if !may_be_left {
                    return patience.sleep::<P>(word, expected, deadline).into();
                }
                P::notes_sleep(self.key(), word);
                let slept = patience.sleep::<P>(word, expected, deadline);
                if P::sleep_note_was_taken(self.key(), word) {
                    Slept::Due
                } else {
                    slept.into()
                }
            })
        })
    }

    /// T17: whether a release may leave the waiter asleep because its thread comes back for the lock
    /// ([`LockCore::comes_back`]).
    fn may_be_left(&self, node: &WaitNode<P>, patience: Patience) -> bool {
        Q::leaves_asleep() && node.want.is_write() && !node.is_realtime() && patience.may_be_left()
    }

    /// Whether a waiter leaves the lock to its owner for a while instead of taking turns with it, because
    /// that gets more work done ([`Platform::spinning`]). With CPUs to spare, it watches the lock from afar
    /// instead.
    fn backs_off_for(&self, want: Want) -> bool {
        want.is_write()
            && Q::backs_off_asleep()
            && Q::spinning(self.key()) == Spinning::BackOff
            && P::has_fine_timers()
    }

    /// T7: the woken waiter contends with running threads.
    ///
    /// A real-time waiter polls once: its CPU may be the owner's. So does, with CPUs to spare, one that has
    /// starved: it requests the lock.
    fn contend(
        &self,
        node: &WaitNode<P>,
        announced: Announced,
        starved: bool,
        backs_off: bool,
        deadline: Option<Deadline>,
    ) -> Spun {
        let (want, token) = (node.want, node.token);
        if node.is_realtime() {
            return self.poll(want, token, announced, Polls::Once, deadline);
        }
        let polls =
            if backs_off || starved && Q::starved_requests_at_once() { Polls::Once } else { Polls::Alone };
        let poll = || self.poll(want, token, announced, polls, deadline);
        let owns = || word::owner(self.peek()) == token;
        // Only of a writer does the word tell whether it has the lock by now; and not of one that has locked
        // it before.
        if want.is_exclusive() && !owns() {
            P::or_leave(&|| self.abandon(want, owns() || self.give_up(want, token, announced)), poll)
        } else {
            poll()
        }
    }

    /// T4, T8: the next release, or that of the last reader, leaves the lock to this waiter: mostly in no time, so
    /// a sleep would only delay all waiters.
    fn watch(&self, kind: Spin, node: &WaitNode<P>, patience: Patience) {
        if Q::can_spin(kind) {
            let notified = P::or_leave(&|| self.abandon(node.want, self.time_out(node, patience)), || {
                node.watch(P::TUNING.spin_ns)
            });
            Q::learns(self.key(), Note::Spun(kind, notified));
        }
    }

    /// T9: the deadline has passed, or the thread leaves its call by unwinding. `true` if the lock came
    /// first.
    fn time_out(&self, node: &WaitNode<P>, patience: Patience) -> bool {
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

    /// T11: the thread leaves its call by unwinding, and its node is out: it gives up the lock if that `came`
    /// first.
    #[cold]
    #[inline(never)]
    fn abandon(&self, want: Want, came: bool) {
        if came {
            self.release_contended(match want {
                Want::Write | Want::WriteFirst | Want::Lock | Want::Upgrade => Release::Write,
                Want::Read | Want::ReadAgain | Want::ReadBehindWaiters => Release::Read,
                Want::Upgradable => Release::Upgradable,
            });
        }
    }
}

// ---- steps on the queue

/// T13: a waiter that came late wakes this number early, from the head of the queue on, whether woken early
/// before or not. This and the next two are from the simulator
/// (`notes/tuning.md`, "Longest waits").
const LATE_EARLY_WAKES: usize = 8;
/// T13: one that came in time wakes this number early, of those that have not been: one for its own turn, and
/// one more.
const EARLY_WAKES: usize = 2;
/// T13: how far from the head those may be. Further ones would sleep deeply again before their turns come.
const EARLY_WAKES_OF: usize = 16;

/// What a thread does about a promise that was made to another one (H4).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Promise {
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
enum Joined {
    /// There was room: the lock is this thread's, the node is out.
    Acquired,
    /// The node is linked.
    Queued,
    /// G3: no thread may queue for an exclusive hold while readers may be in slots. The node is out.
    Biased,
    /// X1: other code has written the word. Nothing was done to it; the node is out.
    GlibcOwned,
    /// T9: the deadline passed first. The node is out, and the thread is in no flag.
    TimedOut,
}

impl<P: Platform, Q: Policy<P>> LockCore<P, Q> {
    /// T3 (of a thread that is queued, T19): takes the lock if there is room now, else records this thread
    /// with `flags` and withdraws what it has announced.
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
                    // A1
                    P::or_leave(&|| self.abandon_marked(queue, want, flags), || P::asymmetric_barrier());
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

    /// T11: the thread leaves its call in the fence, by which it has the queue locked: that is as it was, but
    /// for what `flags` say.
    #[cold]
    #[inline(never)]
    #[allow(unsafe_code)] // see `QueueGuard::taken_over`
    fn abandon_marked(&self, queue: Option<&QueueGuard<'_, P, Self>>, want: Want, flags: u32) {
        let Some(queue) = queue else { return };
        // SAFETY: the thread does not go on in the frame that has the guard. Nor is that frame's guard
        // dropped: a program that can run this is built without unwinding of Rust frames (the drop-in).
        let queue = unsafe { queue.taken_over() };
        let heads = flags & (word::TIMED | word::HANDOFF) != 0;
        self.settle_flags(queue.head().is_some(), heads, want);
        self.wake_pass_and_unlock(queue);
    }

    /// T15: locks the queue for the waiter of `node`, which is not in it. While another thread has it locked,
    /// which perhaps does not run, the waiter probes the lock by itself, as those do that are queued (L3):
    /// it takes a free one, whatever is promised. It has withdrawn by then what it has `announced`, on which
    /// others rely.
    fn enter_queue(
        &self,
        node: &WaitNode<P>,
        announced: &mut Announced,
        deadline: Option<Deadline>,
    ) -> Result<QueueGuard<'_, P, Self>, Joined> {
        let mut span = P::TUNING.probe_ns;
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
            span = span.saturating_mul(2).min(P::TUNING.longest_probe_ns);
        }
    }

    /// T4: queues behind all others of its rank; an upgrade before all others, which wait for its thread's
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
                self.word().fetch_and(!word::TIMED, Relaxed); // of the head before it; U1: of a real-time head, too
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
    /// mark (T16). One that has `paused` its requests of readers without a timer keeps the time of the rest.
    fn rejoin(
        &self,
        node: &WaitNode<P>,
        mut announced: Announced,
        starved: bool,
        paused: bool,
        patience: &mut Patience,
        deadline: Option<Deadline>,
    ) -> Joined {
        let is_unmarked = announced == Announced::Unmarked && !node.is_realtime();
        let mut queue = match self.enter_queue(node, &mut announced, deadline) {
            Ok(queue) => queue,
            Err(joined) => return joined,
        };
        // T16: several may be on their way. None of them passes one that has requested the lock, which is the
        // first, nor one that has starved. (Along with `WAKING`, a request is that waiter's, H1.)
        let seen = self.peek();
        let requested = word::wants_handoff(seen) && !word::is_waking(seen);
        // An upgrade that came meanwhile stays first (this waiter waits for its thread's hold), and so does a
        // real-time waiter.
        let first = queue.would_lead(node) && !node.is_realtime();
        let heads = match (starved, first) {
            _ if is_unmarked => 0,
            (true, _) => word::HANDOFF,
            // H3: not alongside another woken waiter.
            _ if paused => {
                let is_alone = !word::is_waking(word::withdraw(seen, announced));
                if is_alone {
                    word::HANDOFF | word::TIMED
                } else {
                    0
                }
            }
            // A release may leave it to its own timer (`comes_back`).
            (false, true) if Q::head_keeps_time() => word::TIMED,
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

    /// L3: whether the waiter of `node`, which is about to be linked, sets a timer: if it relies on another
    /// thread than the holder, or is soon to do so. Not if the others rely on it, which keeps its own time.
    #[inline(never)] // for the drop-in's size
    fn decide_timer(
        &self,
        node: &WaitNode<P>,
        patience: &mut Patience,
        queue: &QueueGuard<'_, P, Self>,
        keeps_time: bool,
    ) {
        let needs = || queue.was_served() || word::relies_on_another(self.peek());
        let sets = has_probes::<P>() && !keeps_time && needs();
        node.set_timer(sets);
        patience.sets_timer::<P, Q>(sets);
        // A real-time waiter that comes beside a woken one is not to wait for that one's time.
        let is_beside = word::relies_on_another(self.peek()) && !keeps_time;
        if is_beside && node.is_realtime() && !patience.rechecks() {
            *patience = patience.until_starved();
        }
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

    /// Whether a real-time waiter, whose time is up, does not recheck: one of a higher priority is queued, or
    /// the lock is free for one that was woken and may be on its way. It waits for a woken one once only:
    /// that may be kept from its CPU (T12). It rechecks behind an upgrade, which keeps no time before it is
    /// woken: else a request might have no waiter that rechecks it (H2).
    #[cold]
    #[inline(never)]
    fn comes_later(&self, node: &WaitNode<P>, patience: &mut Patience) -> bool {
        let queue = self.lock_queue();
        let leads = queue.head().is_none_or(|head| core::ptr::eq(head, node) || head.want == Want::Upgrade);
        let seen = self.peek();
        let is_owed = word::is_waking(seen) && !word::is_held(seen);
        if !leads {
            *patience = patience.until_notified(); // the next release wakes it, once it is the head
            return true;
        }
        let later = is_owed && !patience.rechecks_early();
        if later {
            patience.rechecks_later::<P>();
        }
        later
    }

    /// T19: the waiter rechecks by itself: it takes the lock, or, if its patience is over, `requests` it.
    ///
    /// A reader requests nothing, but now comes in alongside other readers whatever writer is owed the lock:
    /// one of those readers may be waiting for this one, and the writer has not let it in by itself (H3): its
    /// thread does not run, perhaps.
    fn recheck(&self, node: &WaitNode<P>, requests: bool) -> Joined {
        self.recheck_as(self.lock_queue(), node, requests, Promise::of(node))
    }

    /// T14: the waiter has slept for long, and probes the lock, because a thread that was woken before it
    /// may not run. If the lock is free, it takes it, whatever is promised, and with it the part of that
    /// thread. If a waiter was on its way already when it saw the lock last, and still is, it ends that one's
    /// part: the next release wakes a waiter again. If a request of readers has lasted for longer than any
    /// whose waiter runs, it ends the request. (L3)
    ///
    /// Returns what it saw: its timer ends with `Saw::Holder`.
    #[cold]
    #[inline(never)]
    fn probe(&self, node: &WaitNode<P>, patience: Patience) -> (Joined, Saw) {
        P::event(Event::Probed);
        // The holder of the queue may be stopped as well: then the waiter can only probe again later.
        let Some(mut queue) = self.lock_queue_within(&|| P::TUNING.probe_ns) else {
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
            self.word().fetch_and(!(word::WAKING | word::TIMED), Relaxed);
            self.wake_pass_and_unlock(queue);
            return (Joined::Queued, Saw::Other);
        }
        // Neither is a pause, which lasts longer.
        let keeps_time = word::relies_on_head(seen) && !word::is_write_held(seen);
        let pauses = word::is_timed(seen) && word::wants_handoff(seen);
        if keeps_time && patience.saw_long_request::<P>(pauses) {
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

    #[inline(never)] // for the drop-in's size
    fn recheck_as(
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

    /// T13: wakes the first waiters of the queue early: many if the woken thread that calls came `late`, else
    /// one or two more.
    #[cold]
    #[inline(never)]
    fn wake_early(&self, late: bool) {
        let mut woken = [const { None }; LATE_EARLY_WAKES];
        let (first, most) =
            if late { (LATE_EARLY_WAKES, LATE_EARLY_WAKES) } else { (EARLY_WAKES_OF, EARLY_WAKES) };
        let Some(queue) = self.try_lock_queue() else { return };
        let sleepers = queue.iter().take(first).filter(|node| node.want.is_write());
        for (place, node) in
            woken.iter_mut().take(most).zip(sleepers.filter_map(|node| node.wake_early(late)))
        {
            *place = Some(node);
        }
        drop(queue);
        woken.into_iter().flatten().for_each(EarlyWake::wake);
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
    fn settle_flags(&self, more: bool, head_gone: bool, gone: Want) {
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

    /// T18: a thread that is awake and not queued gives up; it still takes the lock if it is there.
    fn give_up(&self, want: Want, token: u32, announced: Announced) -> bool {
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

// ---- a request over readers

impl<P: Platform, Q: Policy<P>> LockCore<P, Q> {
    /// H3: the waiter of `node`, which requests the lock of readers, goes on with that or lets in those that
    /// it keeps out. If its requests are as long as they get, it keeps no time of the pause: readers that
    /// neither come nor go are not delayed by it, and one that leaves others inside wakes it.
    #[cold]
    #[inline(never)]
    fn consider_request(&self, node: &WaitNode<P>, patience: &mut Patience) {
        let queue = self.lock_queue();
        let keeps_time = !patience.requests_in_vain::<P>();
        let is_out = node.is_elsewhere() || !queue.is_linked(node);
        let requested = *patience;
        let pause = |seen| {
            // A writer that holds the lock hands it over whatever readers do. A waiter that was dequeued just
            // now is notified at once.
            if requested.has_made_way(word::readers(seen))
                || word::is_write_held(seen)
                || !word::wants_handoff(seen)
                || is_out
            {
                return None;
            }
            // Alongside a woken waiter, which may not run, `TIMED` is not a pause (U1): the request ends,
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
                let span = patience.ends_request::<P>();
                patience.pauses::<P>(span, keeps_time);
            }
            Err(queue) => {
                let seen = self.peek();
                let rechecks = !word::is_write_held(seen) && word::wants_handoff(seen);
                node.set_rechecks(rechecks);
                drop(queue);
                patience.ends_request::<P>();
                if rechecks || word::is_write_held(seen) {
                    patience.requests::<P>(rechecks, seen);
                } else {
                    patience.pauses::<P>(0, true); // another thread has ended it: this one requests the lock again, at once
                }
            }
        }
    }

    /// H3: lets in the readers that a request keeps out, and an upgradable waiter other than that of `node`.
    /// `pause` maps the word to the one without the request; `None` of that: nothing is done.
    #[inline(never)] // for the drop-in's size
    fn let_in_readers<'a>(
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
