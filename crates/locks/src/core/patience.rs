//! When a waiter that sleeps does something by itself: rechecks the lock, requests it, or probes it, in case
//! that a thread that was woken before it does not run (T4 in [`core`](super)).
//!
//! Its times. The last two are timers of its sleep:
//!
//! | time      | from then on the waiter                                                                     |
//! |-----------|---------------------------------------------------------------------------------------------|
//! | `end`     | has starved: it requests the lock when it is next woken, or rechecks (L2)                   |
//! | `recheck` | rechecks the lock, as a head that is `TIMED` (L1), or a request of readers (H3)             |
//! | `probe`   | probes the lock: a thread that was woken before it may not run (L3)                         |
//!
//! A waiter that relies on no other thread but the holder has neither timer. A wake-up, or the caller's
//! deadline, may come before them.

use spinpark_platform::{Clock, Deadline, Platform, Wait};

use crate::policy::Policy;
use crate::word::Want;

/// The times of one wait, ns on the monotonic clock.
#[derive(Clone, Copy)]
pub(super) struct Patience {
    /// From here on the waiter has starved: it requests the lock.
    pub(super) end: u64,
    /// When it rechecks the lock by itself; `u64::MAX`: not before it is woken.
    pub(super) recheck: u64,
    /// How long it has let the owner go on the last time; 0: it has not.
    pub(super) span: u64,
    /// How long it keeps readers out before it rechecks what that has come to; 0: it has not done so: see
    /// [`dependent_readers`](super::dependent_readers).
    pub(super) request: u64,
    /// The number of readers of which it requests the lock.
    pub(super) of: Option<u32>,
    /// When it probes the lock next because a thread that was woken before it may not run; `u64::MAX`: it
    /// does not.
    pub(super) probe: u64,
    /// How long after the probe before, ns; 0: it has made none.
    pub(super) probe_span: u64,
    /// What it saw at the last probe.
    pub(super) saw: Saw,
    /// Since when it has seen the same at each probe, ns.
    pub(super) request_since: u64,
    /// In a pause between two requests that it keeps no time of: when that ends, ns.
    pub(super) pause_end: u64,
}

/// On which thread the waiters relied at a probe (L3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Saw {
    /// On the holder only, if at all.
    Holder,
    /// On a waiter that was woken.
    Woken,
    /// On one that keeps its own time, or requests the lock of readers and keeps others out.
    Request,
    /// On one in a pause between two requests.
    Pause,
    /// On another.
    Other,
}

/// How many times as long as the last part of a request the pause after it is: readers that depend on each
/// other go on for three quarters of the time.
pub(super) const PAUSE: u64 = 3;

/// The time in `ns` nanoseconds from now, on the clock of all times here.
#[inline(never)] // for the drop-in's size
pub(super) fn in_ns<P: Platform>(ns: u64) -> u64 {
    P::now(Clock::Monotonic).saturating_add(ns)
}

impl Patience {
    /// Of a waiter that has just arrived: it sleeps until it is woken.
    #[inline(never)]
    pub(super) fn on_arrival<P: Platform, Q: Policy<P>>(want: Want) -> Self {
        let reader = want.joins_readers();
        let patience = if reader { Q::TIMES.reader_patience_ns } else { Q::TIMES.starvation_ns };
        Self {
            end: in_ns::<P>(patience),
            recheck: u64::MAX,
            span: 0,
            request: 0,
            of: None,
            probe: u64::MAX,
            probe_span: 0,
            saw: Saw::Holder,
            request_since: u64::MAX,
            pause_end: 0,
        }
    }

    /// Sleeps until it has starved. As the head of the queue that lost (`TIMED`): a request that it made
    /// before it was woken has ended.
    pub(super) fn until_starved(self) -> Self {
        Self { recheck: self.end.max(self.pause_end), of: None, ..self }
    }

    /// Sleeps until it is woken or handed the lock.
    pub(super) fn until_notified(self) -> Self {
        Self { recheck: u64::MAX, of: None, ..self }
    }

    /// Sleeps until it is notified: it was dequeued.
    pub(super) fn until_dequeued(self) -> Self {
        Self { probe: u64::MAX, ..self.until_notified() }
    }

    /// Lets the owner go on for a while, and for twice as long each time, but not beyond the end: so that a
    /// lock that falls idle meanwhile is idle for no longer than it was busy before. One that has starved
    /// already does it once.
    #[inline(never)]
    pub(super) fn lets_owner_go_on<P: Platform, Q: Policy<P>>(self) -> Self {
        let now = P::now(Clock::Monotonic);
        let span = if self.span == 0 { Q::TIMES.repark_ns } else { self.span.saturating_mul(2) };
        // Once only: a waiter that is woken often must not put off its request each time.
        let end =
            if self.span == 0 { self.end.max(now.saturating_add(Q::TIMES.repark_ns)) } else { self.end };
        Self { end, recheck: end.min(now.saturating_add(span)), span, of: None, ..self }
    }

    /// How long a writer has waited since it queued, ns; less, if it has let the owner go on.
    pub(super) fn waited<P: Platform, Q: Policy<P>>(self) -> u64 {
        let queued = self.end.saturating_sub(Q::TIMES.starvation_ns);
        P::now(Clock::Monotonic).saturating_sub(queued)
    }

    /// L4: whether a waiter that was woken without a mark, and has lost, is to be woken with one.
    pub(super) fn is_over_unmarked<P: Platform, Q: Policy<P>>(self) -> bool {
        self.waited::<P, Q>() >= Q::TIMES.unmarked_ns
    }

    /// Whether it rechecks before it has starved.
    pub(super) fn rechecks_early(self) -> bool {
        self.span > 0
    }

    /// Whether it rechecks the lock by itself.
    pub(super) fn rechecks(self) -> bool {
        self.recheck != u64::MAX
    }

    /// Whether the time of that has come.
    pub(super) fn is_recheck_due<P: Platform>(self) -> bool {
        P::now(Clock::Monotonic) >= self.recheck
    }

    /// Whether it does nothing by itself: if it sleeps for too long, that is by the caller's deadline.
    pub(super) fn has_no_timer(self) -> bool {
        !self.rechecks() && self.probe == u64::MAX
    }

    /// Sleeps on `word` until its next recheck or probe, or until `deadline` if that is earlier.
    ///
    /// A deadline alone is for the kernel, as it is. A recheck is not put on the caller's clock, which may be
    /// set back during the sleep: others rely on it (`TIMED`). So a deadline before the recheck is slept to
    /// as the time that is left; should its clock be set ahead meanwhile, that is noticed at the recheck.
    #[inline(never)]
    pub(super) fn sleep<P: Platform>(
        self,
        word: &P::AtomicU32,
        expected: u32,
        deadline: Option<Deadline>,
    ) -> Wait {
        let kernels = || P::sleep_cancellably(&|| P::futex_wait(word, expected, deadline));
        if self.has_no_timer() {
            return kernels();
        }
        let left = |clock, at: u64| at.saturating_sub(P::now(clock));
        let own = left(Clock::Monotonic, self.recheck.min(self.probe));
        let callers = deadline.map_or(u64::MAX, |deadline| left(deadline.clock, deadline.at));
        let span = own.min(callers);
        // In the drop-in through `sleep_in_queue` of `pthread/leave.rs`, where cancellation acts.
        P::sleep_cancellably(&|| P::futex_wait_for(word, expected, span))
    }

    pub(super) fn is_over<P: Platform>(self) -> bool {
        let now = P::now(Clock::Monotonic);
        now >= self.pause_end && (self.request > 0 || now >= self.end)
    }
}
