//! The midpath: waiting awake. Optimistic spinning, bounded in time, read-only between attempts.
//!
//! Origin: document 001 (Linux 9d0f4dcc): spin only while the owner runs. In user space that is a question to
//! the kernel, so it is asked once in each `probe_ns`, and the budget bounds what a wrong answer costs. The
//! document's other rule, to leave as soon as the lock goes to another owner, is not followed: it assumes
//! that a sleep costs less than one more turn of the lock, and that a spinner has other work for its CPU.
//!
//! # The queue of spinners
//!
//! Where CPUs are to spare, the writers that spin for a lock do so in a queue, and only its head polls the
//! lock.
//!
//! Origin: the kernel's osq (document 002: each poll of the lock by a second spinner takes the line from the
//! owner). Beyond that, a thread that has found locks taken in more than a quarter of its latest tries *skips
//! the fast path*: it joins the queue without a try, as an MCS lock's waiters do. Otherwise a thread that
//! comes takes a free lock, whichever threads spin: an owner that comes back at once acquires the lock many
//! times in a row, without a transfer of its line.
//!
//! Which threads spin, alone or in turn, how many, and for how long, is the [policy](crate::policy)'s: here
//! they spin as told. Nothing in [`core`](super) rests on the order: a thread that finds the queue full asks
//! again.

use core::marker::PhantomData;

use spinpark_platform::{
    AtomicU32, Clock, Deadline, Event, OnCpu, Ordering::Acquire, Ordering::Relaxed, Platform,
};

use super::LockCore;
use crate::policy::{FirstTry, Note, Policy, Polling, Spin, Spinner, Try, Turn};
use crate::spin_queue::{Behind, Entered, SpinQueue};
use crate::word::{self, Announced, Want};

/// For how long a spinning phase polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Polls {
    /// It polls once.
    Once,
    /// As one of those that poll the lock, each by itself.
    Alone,
    /// As the head of the queue of spinners: others wait behind it.
    AtHead,
}

/// How a spinning phase ended.
pub(super) enum Spun {
    /// The lock is this thread's.
    Acquired,
    /// Spinning does not pay any more; the thread is still counted as `Announced` says.
    Stopped(Announced),
}

// ---- in turn: the queue of spinners

impl<P: Platform, Q: Policy<P>> LockCore<P, Q> {
    /// Whether to join the queue of spinners without a try.
    #[cold]
    #[inline(never)]
    pub(super) fn skips_fast_path(&self) -> bool {
        Q::first_try(self.key(), FirstTry::JoinsSpinners)
            && self.has_spinners()
            && Q::first_try(self.key(), FirstTry::JoinsTheseSpinners)
    }

    /// T2, in the queue of spinners; `None`: it is full.
    #[inline(never)]
    pub(super) fn spin_in_queue(
        &self,
        turn: Turn,
        want: Want,
        token: u32,
        deadline: Option<Deadline>,
    ) -> Option<Spun> {
        if self.has_enough(turn.most) {
            self.adopt();
            // The thread may have come without a try.
            return Some(self.poll(want, token, Announced::None, Polls::Once, deadline));
        }
        P::with_spinner_slots(self.key(), |slots| {
            let queue = SpinQueue::<P>::new(slots);
            let mut wait = HeadWait::<P, Q>::until(turn, deadline);
            let spun = match queue.enter(token, |before| wait.behind(before)) {
                Entered::Full => None,
                Entered::Head(_head) => Some(self.spin_at_head(want, token, deadline)),
                Entered::Left => {
                    wait.failed();
                    self.adopt();
                    Some(Spun::Stopped(Announced::None))
                }
            };
            spun // the head's position has been passed on
        })?
    }

    /// Whether as many threads as that spin in turn already.
    fn has_enough(&self, most: u32) -> bool {
        let has = || P::with_spinner_slots(self.key(), |slots| SpinQueue::<P>::new(slots).has(most));
        most == 0 || most != u32::MAX && has() == Some(true)
    }

    /// Whether threads are in the queue of this lock's spinners; a hint.
    fn has_spinners(&self) -> bool {
        P::with_spinner_slots(self.key(), |slots| SpinQueue::<P>::new(slots).is_joined()) == Some(true)
    }

    fn spin_at_head(&self, want: Want, token: u32, deadline: Option<Deadline>) -> Spun {
        self.adopt();
        let seen = self.peek();
        if Self::is_futile(seen, want, Announced::None) || word::is_glibc_owned(seen) {
            return Spun::Stopped(Announced::None);
        }
        self.poll(want, token, Announced::None, Polls::AtHead, deadline)
    }
}

/// A wait for the position at the head.
struct HeadWait<P: Platform, Q: Policy<P>> {
    turn: Turn,
    start: u64,
    /// How long it may take, ns.
    span: u64,
    /// Whether the caller's deadline leaves less than it would wait.
    is_cut: bool,
    /// How many more readings of the clock there are, in case that it stands still.
    reads_left: u64,
    /// When to ask next whether the thread before this one runs.
    question: u64,
    /// The thread that the last question was about, and what the platform remembers of it.
    asked: u32,
    sample: u64,
    /// Whether it was found to be off its CPU.
    is_stuck: bool,
    policy: PhantomData<(P, Q)>,
}

impl<P: Platform, Q: Policy<P>> HeadWait<P, Q> {
    fn until(turn: Turn, deadline: Option<Deadline>) -> Self {
        let start = P::now(Clock::Monotonic);
        let longest = match deadline {
            Some(Deadline { clock: Clock::Monotonic, at }) => at.saturating_sub(start),
            Some(_) => turn.overstay_ns,
            None => u64::MAX,
        };
        let span = turn.wait_ns.min(longest);
        Self {
            turn,
            start,
            span,
            is_cut: longest < turn.wait_ns,
            reads_left: span / 8, // each takes more than 8 ns, with a poll
            question: start.saturating_add(turn.probe_ns),
            asked: 0,
            sample: 0,
            is_stuck: false,
            policy: PhantomData,
        }
    }

    /// What to do behind the thread `before`.
    fn behind(&mut self, before: u32) -> Behind {
        let now = P::now(Clock::Monotonic);
        self.reads_left = self.reads_left.saturating_sub(1);
        if self.reads_left == 0 || now.wrapping_sub(self.start) >= self.span {
            return Behind::Leaves;
        }
        if now >= self.question {
            self.question = now.saturating_add(self.turn.probe_ns);
            if self.asked != before {
                self.asked = before;
                self.sample = 0;
            }
            let answer = P::owner_on_cpu(before, &mut self.sample);
            if answer != OnCpu::Running && P::has_ended(before) {
                return Behind::TakesOver; // in a handler, by `pthread_exit`
            }
            self.is_stuck = answer == OnCpu::Off;
        }
        Behind::from(!self.is_stuck)
    }

    /// It has ended without the position. If the caller's deadline has ended it, that says nothing.
    fn failed(&self) {
        P::event(if self.is_stuck { Event::SpinLeftOffCpu } else { Event::SpinLeftBudget });
        if self.is_stuck || !self.is_cut {
            Q::learns(0, Note::Spun(Spin::Lock, false));
            Q::learns(0, Note::Tried(Try::Late));
        }
    }
}

// ---- polling the lock

impl<P: Platform, Q: Policy<P>> LockCore<P, Q> {
    /// T2: spins. While others are queued, as the only one that has announced itself in the word, so that
    /// releases wake no head meanwhile that keeps its own time; with an empty queue and a writer inside there
    /// is none to wake, and nothing is written.
    pub(super) fn spin(&self, want: Want, token: u32, deadline: Option<Deadline>) -> Spun {
        if Self::is_futile(self.peek(), want, Announced::None) {
            return Spun::Stopped(Announced::None);
        }
        self.poll(want, token, Announced::None, Polls::Alone, deadline)
    }

    /// Lets a writer go first that waits awake for the readers to go, if it goes soon: a stream of readers
    /// that come back at once leaves it no moment in which to poll. Not for a thread that may be one of those
    /// readers.
    #[inline(never)]
    pub(crate) fn let_spinner_pass(&self) {
        let waits = |seen| word::has_spinner(seen) && !word::is_write_held(seen);
        if !Q::first_try(self.key(), FirstTry::LetsSpinnerPass) || !waits(self.peek()) {
            return;
        }
        let Some(polling) = Q::spins(self.key(), Spinner::Watches(Spin::Writer)) else { return };
        let end = P::now(Clock::Monotonic).saturating_add(polling.span_ns);
        let mut has_passed = false;
        // Each poll takes more than 1 ns: the bound is for a clock that stands.
        for _ in 0..polling.span_ns {
            has_passed = !waits(self.peek());
            if has_passed || P::now(Clock::Monotonic) >= end {
                break;
            }
            P::spin_for(polling.gap_ns);
        }
        Q::learns(self.key(), Note::Spun(Spin::Writer, has_passed));
    }

    /// Whether spinning for a lock in state `seen` is futile: its readers' slots must be closed first (G3 in
    /// [`bias`](crate::bias)), or the thread is to be in the queue.
    ///
    /// Another spinner, or a hand-off to a waiter, is no reason to sleep at once: both are mostly over in a
    /// moment, and a sleep and a wake take longer, on two CPUs as on many.
    fn is_futile(seen: u32, want: Want, announced: Announced) -> bool {
        let futile = match announced {
            Announced::None => {
                want.is_exclusive() && word::has_slots(seen) || word::queues_at_once(seen, want)
            }
            Announced::Spinner => word::queues_at_once(seen, want),
            Announced::Waking | Announced::Unmarked => false,
        };
        futile && !word::admits(seen, want)
    }

    /// T2 and T7: polls until the lock is taken or waiting awake has become pointless.
    pub(super) fn poll(
        &self,
        want: Want,
        token: u32,
        announced: Announced,
        polls: Polls,
        deadline: Option<Deadline>,
    ) -> Spun {
        // The first poll comes before the budget: the waiter that a release woke mostly finds the lock free.
        if self.take(want, token, announced) {
            return Spun::Acquired;
        }
        let was_woken = matches!(announced, Announced::Waking | Announced::Unmarked);
        let kind = if was_woken { Spin::Woken } else { Spin::Lock };
        // On the other clock a spinner may overstay by its budget: that of a lone one is no more than a timer's
        // own slack.
        let is_exact = deadline.is_none_or(|deadline| deadline.clock == Clock::Monotonic);
        let spinner = match polls {
            Polls::Once => return Spun::Stopped(announced),
            Polls::AtHead if is_exact => Spinner::AtHead,
            _ if was_woken => Spinner::Woken { writes: want.is_write() },
            _ => Spinner::Alone { writes: want.is_write() },
        };
        let Some(polling) = Q::spins(self.key(), spinner) else { return Spun::Stopped(announced) };
        let mut announced = announced;
        let mut budget = Budget::<P>::start(polling, spinner == Spinner::AtHead, deadline);
        let acquired = self.poll_for_a_time(want, token, &mut announced, &mut budget);
        // A thread that has left it to others to keep the lock busy has not learnt what a spin is worth.
        if budget.is_head {
            if acquired || budget.owner_left || budget.ran_out {
                Q::learns(self.key(), Note::Spun(kind, acquired));
            }
        } else if acquired || announced != Announced::None || polling.notes_unannounced {
            // A spin whose time was up counts as paid: to sleep and be woken costs more. Only an owner off
            // its CPU is a miss: it may be one that yields inside its sections.
            Q::learns(self.key(), Note::Spun(kind, acquired || !budget.owner_left));
        }
        if acquired {
            P::event(Event::SpinAcquired);
            Spun::Acquired
        } else {
            Spun::Stopped(announced)
        }
    }

    fn poll_for_a_time(
        &self,
        want: Want,
        token: u32,
        announced: &mut Announced,
        budget: &mut Budget<P>,
    ) -> bool {
        loop {
            let seen = self.peek();
            if Self::is_to_be_had(seen, want, *announced) {
                if self.take(want, token, *announced) {
                    Q::learns(self.key(), Note::Moved { clock: budget.clock_read });
                    return true;
                }
            } else if Self::is_futile(seen, want, *announced) {
                break;
            }
            if budget.has_waited_for_others(seen, *announced) {
                break;
            }
            // Alongside readers, which would else enable the bias again and again (G1 in `bias`), and never
            // let a writer queue.
            if *announced == Announced::None && (word::has_waiters(seen) || word::readers(seen) > 0) {
                if word::has_spinner(seen) {
                    budget.waits_as_secondary();
                } else if self.announce(seen) {
                    *announced = Announced::Spinner;
                    budget.waits_as_primary();
                }
            }
            if budget.wait(word::owner(seen)) {
                break;
            }
        }
        false
    }

    /// Says in the word that a thread spins. A2: threads wait, or readers hold the lock.
    fn announce(&self, seen: u32) -> bool {
        self.word().compare_exchange(seen, seen | word::SPINNER, Relaxed, Relaxed).is_ok()
    }

    /// Takes the lock, if that is possible now, and withdraws what it has announced in the same step.
    fn take(&self, want: Want, token: u32, announced: Announced) -> bool {
        let seen = self.peek();
        let new = || {
            let rest = word::withdraw(seen, announced);
            match announced {
                Announced::Waking => word::taken_as_promised(rest, want, token),
                Announced::None | Announced::Spinner | Announced::Unmarked => word::taken(rest, want, token),
            }
        };
        Self::is_to_be_had(seen, want, announced)
            && self.word().compare_exchange(seen, new(), Acquire, Relaxed).is_ok()
    }

    /// Whether the lock is there for a thread that has `announced` itself: one that was woken for it heeds no
    /// promise.
    fn is_to_be_had(seen: u32, want: Want, announced: Announced) -> bool {
        if announced == Announced::Waking {
            word::admits_past_promise(seen, want)
        } else {
            word::admits(seen, want)
        }
    }
}

/// The time that one spinning phase may take, and how it is spent.
struct Budget<P: Platform> {
    polling: Polling,
    /// Whether it is that of the head of the queue of spinners.
    is_head: bool,
    /// For how long to wait for readers, or for a promise to be kept, as the last poll has found, ns; 0: it
    /// has found neither.
    others_span: u64,
    /// Until when that is; `u64::MAX`: neither.
    others_end: u64,
    /// Whether the time is over, not only that for others.
    ran_out: bool,
    /// How long to stay away from the lock word now, ns.
    gap: u64,
    /// The owner that the last poll found.
    owner: u32,
    start: u64,
    /// Of the acquisition, if it is on the monotonic clock.
    deadline: u64,
    end: u64,
    /// When the clock was last read.
    clock_read: u64,
    /// How many more readings of the clock there are, in case that it stands still.
    reads_left: u64,
    /// When to ask the platform next whether the owner runs.
    question: u64,
    /// The owner that the last question was about, and what the platform remembers of it.
    asked: u32,
    sample: u64,
    /// Whether the owner was found to be off its CPU.
    owner_left: bool,
    platform: PhantomData<P>,
}

impl<P: Platform> Budget<P> {
    fn start(polling: Polling, is_head: bool, deadline: Option<Deadline>) -> Self {
        let start = P::now(Clock::Monotonic);
        let deadline = match deadline {
            Some(Deadline { clock: Clock::Monotonic, at }) => at,
            _ => u64::MAX,
        };
        Self {
            polling,
            is_head,
            others_span: 0,
            others_end: u64::MAX,
            ran_out: false,
            gap: polling.gap_ns,
            owner: 0,
            start,
            deadline,
            end: deadline.min(start.saturating_add(polling.span_ns)),
            clock_read: start,
            reads_left: polling.most_clock_reads,
            question: start.saturating_add(polling.probe_ns), // most spins have ended before it
            asked: 0,
            sample: 0,
            owner_left: false,
            platform: PhantomData,
        }
    }

    /// Others sleep, and rely on this spinner.
    fn waits_as_primary(&mut self) {
        let span = self.polling.primary_ns;
        if span > 0 {
            self.end = self.deadline.min(self.start.saturating_add(span));
            self.reads_left = self.reads_left.saturating_add(span.saturating_mul(2));
        }
    }

    /// Whether the lock, which was just `seen`, has been kept by readers or by a promise for too long.
    fn has_waited_for_others(&mut self, seen: u32, announced: Announced) -> bool {
        let span = if self.polling.readers_ns > 0 && word::readers(seen) > 0 {
            self.polling.readers_ns
        } else if word::is_promised(seen) && announced != Announced::Waking {
            self.polling.promised_ns
        } else {
            0
        };
        if self.others_span != span {
            self.others_span = span;
            self.others_end = if span == 0 { u64::MAX } else { self.clock_read.saturating_add(span) };
        }
        let is_over = self.clock_read >= self.others_end;
        if is_over {
            P::event(Event::SpinLeftBudget);
        }
        is_over
    }

    /// Another spinner is ahead of this one.
    fn waits_as_secondary(&mut self) {
        let span = self.polling.secondary_ns;
        if span > 0 {
            self.end = self.end.min(self.start.saturating_add(span));
        }
    }

    /// Stays away from the lock word before the next poll. Returns whether to stop: the time is over, or
    /// `owner` (0: unknown) does not run, perhaps because this thread has its CPU.
    ///
    /// A spinner doubles its gap, if it may, each time that it finds another owner than before: other
    /// threads take turns, and its polls cost each of them a transfer of the line. Another one takes the lock
    /// while it is away.
    fn wait(&mut self, owner: u32) -> bool {
        if self.owner != owner {
            if self.owner != 0 {
                self.gap = self.polling.widest_gap_ns.min(self.gap.saturating_mul(2));
            }
            self.owner = owner;
        }
        let until = self.others_end.min(self.clock_read.saturating_add(self.gap));
        loop {
            self.clock_read = P::now(Clock::Monotonic);
            self.reads_left = self.reads_left.saturating_sub(1);
            self.ran_out = self.clock_read >= self.end;
            if self.reads_left == 0 || self.ran_out || self.clock_read < self.start {
                P::event(Event::SpinLeftBudget);
                return true;
            }
            if self.owner_is_off(owner) {
                P::event(Event::SpinLeftOffCpu);
                self.owner_left = true;
                return true;
            }
            if self.clock_read >= until {
                return false;
            }
            P::spin_for(self.polling.probe_ns.min(until - self.clock_read));
        }
    }

    fn owner_is_off(&mut self, owner: u32) -> bool {
        // A mutex that this thread has locked itself, and that another one is to unlock: POSIX leaves that
        // undefined.
        if owner != 0 && owner == P::thread_token() {
            return true;
        }
        if self.clock_read < self.question {
            return false;
        }
        self.question = self.clock_read.saturating_add(self.polling.probe_ns);
        if owner != self.asked {
            self.asked = owner;
            self.sample = 0;
        }
        P::owner_on_cpu(owner, &mut self.sample) == OnCpu::Off
    }
}
