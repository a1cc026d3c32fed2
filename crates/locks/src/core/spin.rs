//! Waiting awake: optimistic spinning, bounded in time, read-only between attempts.
//!
//! Origin: document 001 (Linux 9d0f4dcc): spin only while the owner seen at the start stays the owner, and leave as
//! soon as the lock goes to somebody else, which means heavy contention. In user space "the owner runs" is a question
//! to the kernel, so it is asked late and seldom, and the budget bounds what a wrong answer costs.

use core::marker::PhantomData;

use spinpark_platform::{
    AtomicU32, Clock, Deadline, Event, OnCpu, Ordering::Acquire, Ordering::Relaxed, Platform,
};

use super::LockCore;
use crate::word::{self, Credit, Want};

/// How a spinning phase ended.
pub(super) enum Spun {
    /// The lock is this thread's.
    Acquired,
    /// Spinning does not pay any more; the thread is still counted as `Credit` says.
    Stopped(Credit),
}

impl<P: Platform> LockCore<P> {
    /// T2: spins as one of at most `max_spinners`, announced in the word so that releases wake nobody meanwhile.
    pub(super) fn spin(&self, want: Want, token: u32, deadline: Option<Deadline>) -> Spun {
        if !P::can_spin() {
            return Spun::Stopped(Credit::None);
        }
        let mut seen = self.peek();
        loop {
            let (new, order) = if word::admits(seen, want) {
                (word::taken(seen, want, token), Acquire)
            } else if word::wants_handoff(seen) || word::spinners(seen) >= P::TUNING.max_spinners {
                return Spun::Stopped(Credit::None);
            } else {
                (seen + word::SPINNER, Relaxed)
            };
            match self.word().compare_exchange_weak(seen, new, order, Relaxed) {
                Ok(_) if order == Acquire => return Spun::Acquired,
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        self.poll(want, token, Credit::Spinner, deadline)
    }

    /// T2 and T7: polls until the lock is taken or waiting awake has become pointless.
    ///
    /// A spinner leaves when the owner changes; the woken waiter does not, it has paid for its wake already.
    pub(super) fn poll(&self, want: Want, token: u32, credit: Credit, deadline: Option<Deadline>) -> Spun {
        // The first look comes before the clock: the waiter that a release woke mostly finds the lock free.
        if self.take(want, token, credit) {
            return Spun::Acquired;
        }
        let mut budget = Budget::<P>::start(deadline);
        let mut first_owner = 0;
        loop {
            let seen = self.peek();
            if word::admits(seen, want) {
                if self.take(want, token, credit) {
                    P::event(Event::SpinAcquired);
                    return Spun::Acquired;
                }
            } else if word::wants_handoff(seen) {
                break;
            } else if first_owner == 0 {
                first_owner = word::owner(seen);
            } else if credit == Credit::Spinner && word::owner(seen) != first_owner {
                P::event(Event::SpinLeftOwnerChanged);
                break;
            }
            if budget.is_spent(word::owner(seen)) {
                break;
            }
            budget.back_off();
        }
        Spun::Stopped(credit)
    }

    /// Takes the lock, if that is possible now, and retires `credit` in the same step.
    fn take(&self, want: Want, token: u32, credit: Credit) -> bool {
        let seen = self.peek();
        let new = || word::taken(word::retire(seen, credit), want, token);
        word::admits(seen, want) && self.word().compare_exchange(seen, new(), Acquire, Relaxed).is_ok()
    }
}

/// The time that one spinning phase may take, and how it is spent.
struct Budget<P: Platform> {
    /// How long to stay away from the lock word before the next poll.
    gap: u64,
    start: u64,
    end: u64,
    /// When to ask about the owner next.
    ask: u64,
    asked: u32,
    sample: u64,
    platform: PhantomData<P>,
}

impl<P: Platform> Budget<P> {
    fn start(deadline: Option<Deadline>) -> Self {
        let start = P::now(Clock::Monotonic);
        let end = start + P::TUNING.spin_ns;
        let end = match deadline {
            Some(Deadline { clock: Clock::Monotonic, at }) => end.min(at),
            // On the other clock a spinner may overstay by its budget, which is far below a timer's own slack.
            _ => end,
        };
        let ask = start + P::TUNING.oracle_ns;
        Self { gap: P::TUNING.first_gap_ns, start, end, ask, asked: 0, sample: 0, platform: PhantomData }
    }

    /// Whether to stop: the time is over, or `owner` (0: unknown) does not run.
    fn is_spent(&mut self, owner: u32) -> bool {
        let now = P::now(Clock::Monotonic);
        if now >= self.end || now < self.start {
            P::event(Event::SpinLeftBudget);
            return true;
        }
        now >= self.ask && self.owner_is_off(owner, now)
    }

    /// Stays away from the lock word before the next poll, twice as long each time up to a bound.
    ///
    /// Each poll takes the owner's cache line away from it, and each success moves the lock and all that it protects
    /// to another CPU. A thread that leaves the owner alone for a few of its turns costs everybody less than one that
    /// takes the first chance (document 004: back-off).
    fn back_off(&mut self) {
        P::spin_for(self.gap);
        self.gap = P::TUNING.longest_gap_ns.min(self.gap * 2);
    }

    fn owner_is_off(&mut self, owner: u32, now: u64) -> bool {
        self.ask = now + P::TUNING.oracle_ns;
        if owner != self.asked {
            self.asked = owner;
            self.sample = 0;
        }
        let off = owner != 0 && P::owner_on_cpu(owner, &mut self.sample) == OnCpu::Off;
        if off {
            P::event(Event::SpinLeftOffCpu);
        }
        off
    }
}
