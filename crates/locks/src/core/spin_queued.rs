//! Waiting awake in order: where CPUs are to spare, the writers that spin for a lock do so in a queue, and only its head polls the
//! lock.
//!
//! Origin: the kernel's osq (document 002: each poll of the lock by a second spinner takes the line from the owner). Beyond that, a
//! thread that has found locks taken in more than a quarter of its latest looks joins the queue *unseen*, without a look at the
//! lock, as an MCS lock's waiters do. Otherwise a thread that comes takes a free lock, whichever threads spin: an owner that comes
//! back at once acquires the lock many times in a row, without a transfer of its line.
//!
//! A thread that knows its sections and pauses joins only if fewer wait awake than keep the lock busy
//! ([`Pacing::awake`](spinpark_platform::Pacing::awake)), and else sleeps at once. One that knows nothing waits for a short time.
//!
//! Nothing in [`core`](super) rests on the order: a thread that leaves the queue, or finds no room in it, goes on as one that
//! spins alone. Real-time threads do not queue here: others' polls are not worth their wait.

use core::marker::PhantomData;

use spinpark_platform::{Awake, Clock, Deadline, Event, Look, OnCpu, Platform, Spin, Spinning};

use super::spin::{has_cpus_to_spare, Polls, Spun};
use super::LockCore;
use crate::spin_queue::{Behind, Entered, SpinQueue};
use crate::word::{self, Announced, Want};

impl<P: Platform> LockCore<P> {
    /// Whether to join the queue of spinners without a look at the lock. Not at back-off: the owner is expected to leave the lock free
    /// between its turns.
    #[cold]
    #[inline(never)]
    pub(super) fn joins_unseen(&self) -> bool {
        has_cpus_to_spare::<P>()
            && P::joins_unseen()
            && self.has_spinners()
            && P::spinning(self.key()) == Spinning::Eager
    }

    /// T2, in the queue of spinners; `None`: not there.
    #[inline(never)]
    pub(super) fn spin_in_turn(&self, want: Want, token: u32, deadline: Option<Deadline>) -> Option<Spun> {
        if !want.is_write() || !has_cpus_to_spare::<P>() || P::priority() > 0 {
            return None;
        }
        let awake = P::awake(self.key());
        if !P::can_spin(Spin::Lock) || self.has_enough(awake) {
            self.adopt();
            // The thread may have come without a look.
            return Some(self.poll(want, token, Announced::None, Polls::Once, deadline));
        }
        P::with_spin_room(self.key(), |room| {
            let queue = SpinQueue::<P>::new(room);
            let mut turn = Turn::<P>::until(awake, deadline);
            let spun = match queue.enter(token, |before| turn.behind(before)) {
                Entered::NoRoom => None,
                Entered::Head(_head) => Some(self.spin_at_head(token, deadline)),
                Entered::Left => {
                    turn.was_in_vain();
                    self.adopt();
                    Some(Spun::Stopped(Announced::None))
                }
            };
            spun // the head's position has been passed on
        })?
    }

    /// Whether as many threads wait awake already as keep the lock busy, or as have a CPU beside the owner's. Under a quota, more of them
    /// would run, and use it up.
    fn has_enough(&self, awake: Awake) -> bool {
        let beside = P::cpus() - 1; // more than one: `has_cpus_to_spare`
        let most = match awake {
            Awake::AtMost(most) if most < beside => most,
            _ if beside < FEW => beside,
            _ => return false,
        };
        P::with_spin_room(self.key(), |room| SpinQueue::<P>::new(room).has(most)) == Some(true)
    }

    /// Whether threads are in the queue of this lock's spinners; a hint.
    fn has_spinners(&self) -> bool {
        P::with_spin_room(self.key(), |room| SpinQueue::<P>::new(room).is_joined()) == Some(true)
    }

    fn spin_at_head(&self, token: u32, deadline: Option<Deadline>) -> Spun {
        self.adopt();
        let seen = self.peek();
        if Self::is_in_vain(seen, Want::Write, Announced::None) || word::is_foreign(seen) {
            return Spun::Stopped(Announced::None);
        }
        self.poll(Want::Write, token, Announced::None, Polls::AtHead, deadline)
    }
}

/// A wait for the position at the head.
struct Turn<P: Platform> {
    start: u64,
    /// How long it may take, ns.
    span: u64,
    /// Whether the caller's deadline leaves less than it would wait.
    is_cut: bool,
    /// So many more readings of the clock, in case that it stands still.
    reads_left: u64,
    /// When to ask next whether the thread before this one runs.
    question: u64,
    /// The thread that the last question was about, and what the platform remembers of it.
    asked: u32,
    sample: u64,
    /// Whether it was found to be off its CPU.
    is_stuck: bool,
    platform: PhantomData<P>,
}

/// How seldom a spinner asks whether the one before it runs, in intervals of the head's questions about the owner.
const PROBES: u64 = 16;

/// So many spinners are not counted against the CPUs: to read that many slots costs more than it tells.
const FEW: u32 = 8;

/// A thread that knows nothing of the lock waits for so long, times the CPUs, ns: through a short section of as many threads as run.
/// Longer ones are not worth its wait, and many threads may have come at once.
const FIRST_TURN_NS: u64 = 1_250;

impl<P: Platform> Turn<P> {
    fn until(awake: Awake, deadline: Option<Deadline>) -> Self {
        let start = P::now(Clock::Monotonic);
        let longest = match deadline {
            Some(Deadline { clock: Clock::Monotonic, at }) => at.saturating_sub(start),
            // It may overstay on the other clock: by no more than a timer's slack.
            Some(_) => P::TUNING.spin_ns,
            None => u64::MAX,
        };
        let most = match awake {
            Awake::Briefly => P::TUNING.primary_spin_ns.max(u64::from(P::cpus()) * FIRST_TURN_NS),
            Awake::All | Awake::AtMost(_) => u64::MAX,
        };
        let most = most.min(P::TUNING.queue_spin_ns);
        let span = most.min(longest);
        Self {
            start,
            span,
            is_cut: longest < most,
            reads_left: span / 8, // each takes more than 8 ns, with a poll
            question: start.saturating_add(PROBES * P::TUNING.owner_probe_ns),
            asked: 0,
            sample: 0,
            is_stuck: false,
            platform: PhantomData,
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
            self.question = now.saturating_add(PROBES * P::TUNING.owner_probe_ns);
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
    fn was_in_vain(&self) {
        P::event(if self.is_stuck { Event::SpinLeftOffCpu } else { Event::SpinLeftBudget });
        if self.is_stuck || !self.is_cut {
            P::spun(Spin::Lock, false);
            P::looked(Look::Late);
        }
    }
}
