//! Waiting awake: optimistic spinning, bounded in time, read-only between attempts.
//!
//! Origin: document 001 (Linux 9d0f4dcc): spin only while the owner seen at the start stays the owner, and leave as
//! soon as the lock goes to somebody else, which means heavy contention. In user space "the owner runs" is a question
//! to the kernel, so it is asked late and seldom, and the budget bounds what a wrong answer costs.

use core::marker::PhantomData;

use spinpark_platform::{
    AtomicU32, Clock, Deadline, Event, OnCpu, Ordering::Acquire, Ordering::Relaxed, Pace, Platform, Spin,
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
    /// T2: spins as the only one that has announced itself in the word, so that releases wake nobody meanwhile.
    pub(super) fn spin(&self, want: Want, token: u32, deadline: Option<Deadline>) -> Spun {
        if !P::can_spin(Spin::Lock) {
            return Spun::Stopped(Credit::None);
        }
        let mut seen = self.peek();
        loop {
            let (new, order) = if word::admits(seen, want) {
                (word::taken(seen, want, token), Acquire)
            } else if word::wants_handoff(seen)
                || word::has_spinner(seen)
                || (want.is_exclusive() && word::has_slots(seen))
            {
                return Spun::Stopped(Credit::None);
            } else {
                (seen | word::SPINNER, Relaxed)
            };
            match self.word().compare_exchange_weak(seen, new, order, Relaxed) {
                Ok(_) if order == Acquire => return Spun::Acquired,
                Ok(_) => {
                    self.queue().ask_attention(); // A2
                    break;
                }
                Err(now) => seen = now,
            }
        }
        self.poll(want, token, Credit::Spinner, true, deadline)
    }

    /// T2 and T7: polls until the lock is taken or waiting awake has become pointless.
    ///
    /// A spinner leaves when the owner changes; the woken waiter does not, it has paid for its wake already. Who is not
    /// `patient` looks once.
    pub(super) fn poll(
        &self,
        want: Want,
        token: u32,
        credit: Credit,
        patient: bool,
        deadline: Option<Deadline>,
    ) -> Spun {
        // The first look comes before the clock: the waiter that a release woke mostly finds the lock free.
        if self.take(want, token, credit) {
            return Spun::Acquired;
        }
        let kind = if credit == Credit::Waking { Spin::Turn } else { Spin::Lock };
        if !patient || (credit == Credit::Waking && !P::can_spin(kind)) {
            return Spun::Stopped(credit);
        }
        let acquired = self.poll_for_a_time(want, token, credit, deadline);
        P::spun(kind, acquired);
        if acquired {
            P::event(Event::SpinAcquired);
            Spun::Acquired
        } else {
            Spun::Stopped(credit)
        }
    }

    fn poll_for_a_time(&self, want: Want, token: u32, credit: Credit, deadline: Option<Deadline>) -> bool {
        let mut budget = Budget::<P>::start(deadline);
        let mut first_owner = 0;
        loop {
            let seen = self.peek();
            if word::admits(seen, want) {
                if self.take(want, token, credit) {
                    P::spun_into(budget.looked);
                    return true;
                }
            } else if word::wants_handoff(seen) {
                break;
            } else if first_owner == 0 {
                first_owner = word::owner(seen);
            } else if credit == Credit::Spinner && word::owner(seen) != first_owner {
                P::event(Event::SpinLeftOwnerChanged);
                break;
            }
            if budget.wait(word::owner(seen)) {
                break;
            }
        }
        false
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
    pace: Pace,
    start: u64,
    end: u64,
    /// When the clock was last read.
    looked: u64,
    /// So many more looks at the clock, in case that it stands still.
    looks: u64,
    /// When to ask the platform next whether the owner runs.
    question: u64,
    /// The owner that the last question was about, and what the platform remembers of it.
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
        let question = start + P::TUNING.oracle_ns;
        Self {
            pace: P::pace(start),
            start,
            end,
            looked: start,
            looks: 2 * P::TUNING.spin_ns + 2, // each takes more than 1 ns
            question,
            asked: 0,
            sample: 0,
            platform: PhantomData,
        }
    }

    /// Stays away from the lock word before the next poll. Returns whether to stop: the time is over, or `owner` (0:
    /// unknown) does not run, perhaps because this thread has its CPU.
    ///
    /// Each poll takes the owner's cache line away from it, and each success moves the lock and all that it protects
    /// to another CPU. Where threads come back for the lock faster than it can move, one that leaves the owner alone for
    /// many of its turns costs everybody less than one that takes the first chance (document 004: back-off); elsewhere,
    /// to stay away is to leave a free lock idle. The platform tells which it is.
    fn wait(&mut self, owner: u32) -> bool {
        let gap = match self.pace {
            Pace::Close => P::TUNING.close_gap_ns,
            Pace::Apart => P::TUNING.apart_gap_ns,
        };
        let until = self.looked.saturating_add(gap);
        loop {
            self.looked = P::now(Clock::Monotonic);
            self.looks -= 1;
            if self.looks == 0 || self.looked >= self.end || self.looked < self.start {
                P::event(Event::SpinLeftBudget);
                return true;
            }
            if self.owner_is_off(owner) {
                P::event(Event::SpinLeftOffCpu);
                return true;
            }
            if self.looked >= until {
                return false;
            }
            P::spin_for(P::TUNING.oracle_ns.min(until - self.looked));
        }
    }

    fn owner_is_off(&mut self, owner: u32) -> bool {
        if self.looked < self.question {
            return false;
        }
        self.question = self.looked + P::TUNING.oracle_ns;
        if owner != self.asked {
            self.asked = owner;
            self.sample = 0;
        }
        owner != 0 && P::owner_on_cpu(owner, &mut self.sample) == OnCpu::Off
    }
}
