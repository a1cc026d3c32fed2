//! When a waiter that sleeps does something by itself: rechecks the lock, requests it, or probes it, in case
//! that a thread that was woken before it does not run (T14 in [`core`](super)).
//!
//! Its times, and what it is woken by:
//!
//! | time      | then the waiter                                                                             |
//! |-----------|---------------------------------------------------------------------------------------------|
//! | `end`     | has starved: it requests the lock (L2)                                                      |
//! | `recheck` | rechecks the lock, as the head that backs off (L1), or a request of readers (H3)            |
//! | `probe`   | probes the lock: a thread that was woken before it may not run (L3)                         |
//!
//! A waiter that relies on no other thread but the holder has none of them. A wake-up, or the caller's
//! deadline, may come before any of them.

use spinpark_platform::{Clock, Deadline, Platform, Wait};

use crate::policy::Policy;
use crate::word::{self, Want};

/// The times of one wait, ns on the monotonic clock.
#[derive(Clone, Copy)]
pub(super) struct Patience {
    /// From here on the waiter has starved: it requests the lock.
    end: u64,
    /// When it rechecks the lock by itself; `u64::MAX`: not before it is woken.
    recheck: u64,
    /// How long it has let the owner go on the last time; 0: it has not.
    span: u64,
    /// How long it keeps readers out before it rechecks what that has come to; 0: it has not done so: see
    /// "Requests over readers" in `slow_path`.
    request: u64,
    /// The number of readers of which it requests the lock.
    of: Option<u32>,
    /// When it probes the lock next because a thread that was woken before it may not run; `u64::MAX`: it
    /// does not.
    probe: u64,
    /// How long after the probe before, ns; 0: it has made none.
    probe_span: u64,
    /// What it saw at the last probe.
    saw: Saw,
    /// Since when it has seen the same at each probe, ns.
    request_since: u64,
    /// In a pause between two requests that it keeps no time of: when that ends, ns.
    pause_end: u64,
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
const PAUSE: u64 = 3;

/// The time in `ns` nanoseconds from now, on the clock of all times here.
#[inline(never)] // for the drop-in's size
fn in_ns<P: Platform>(ns: u64) -> u64 {
    P::now(Clock::Monotonic).saturating_add(ns)
}

/// Whether waiters of this machine probe at all (L3).
pub(super) const fn has_probes<P: Platform>() -> bool {
    P::TUNING.probe_ns != u64::MAX
}

impl Patience {
    /// Of a waiter that has just arrived: it sleeps until it is woken.
    #[inline(never)]
    pub(super) fn on_arrival<P: Platform>(want: Want) -> Self {
        let reader = want.joins_readers();
        let patience = if reader { P::TUNING.reader_patience_ns } else { P::TUNING.starvation_ns };
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

    /// L3: sets the timer of its first probe; or it has none, as no other thread needs it.
    #[inline(never)] // for the drop-in's size
    pub(super) fn sets_timer<P: Platform, Q: Policy<P>>(&mut self, sets: bool) {
        if !sets {
            self.probe = u64::MAX;
        } else if self.probe == u64::MAX {
            let least = Q::least_probe_ns().min(P::TUNING.longest_probe_ns); // a timer in any case
            self.probe_span = P::TUNING.probe_ns.max(least);
            self.probe = in_ns::<P>(self.probe_span);
            self.saw = Saw::Holder;
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

    /// Whether it is time to probe the lock, and not for a recheck.
    #[inline(never)] // for the drop-in's size, as in the next one
    pub(super) fn is_probe_due<P: Platform>(&self) -> bool {
        self.probe < self.recheck && P::now(Clock::Monotonic) >= self.probe
    }

    /// Has probed the lock. It goes on with that if it `saw` a thread that may not run.
    #[inline(never)]
    pub(super) fn has_probed<P: Platform>(&mut self, saw: Saw) {
        if saw == Saw::Holder {
            self.probe = u64::MAX;
            return;
        }
        if saw != self.saw {
            self.request_since = P::now(Clock::Monotonic);
        }
        self.saw = saw;
        self.probe_span = self.probe_span.saturating_mul(2).min(P::TUNING.longest_probe_ns);
        self.probe = in_ns::<P>(self.probe_span);
    }

    pub(super) fn saw_waking(&self) -> bool {
        self.saw == Saw::Woken
    }

    /// Whether a request of readers, or a `pause`, has lasted for longer than any does whose thread runs.
    pub(super) fn saw_long_request<P: Platform>(&self, pause: bool) -> bool {
        let since = P::now(Clock::Monotonic).saturating_sub(self.request_since);
        let longest = P::TUNING.reader_patience_ns;
        match self.saw {
            Saw::Request => !pause && since >= longest,
            Saw::Pause => pause && since > PAUSE * longest,
            _ => false,
        }
    }

    /// Has just requested the lock, whose word is `seen`; if of readers, it `rechecks` it by itself. A writer
    /// is to release it soon, whatever readers do.
    #[inline(never)]
    pub(super) fn requests<P: Platform>(&mut self, rechecks: bool, seen: u32) {
        if !rechecks {
            *self = self.until_notified();
            return;
        }
        self.request = self.request.min(P::TUNING.reader_patience_ns).max(P::TUNING.request_ns);
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
    pub(super) fn ends_request<P: Platform>(&mut self) -> u64 {
        self.of = None;
        let longer = self.request.saturating_mul(2).min(P::TUNING.reader_patience_ns);
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
    pub(super) fn requests_in_vain<P: Platform>(&self) -> bool {
        self.request >= P::TUNING.reader_patience_ns
    }

    /// Lets the owner go on for a while, and for twice as long each time, but not beyond the end: so that a
    /// lock that falls idle meanwhile is idle for no longer than it was busy before. One that has starved
    /// already does it once.
    #[inline(never)]
    pub(super) fn lets_owner_go_on<P: Platform>(self) -> Self {
        let now = P::now(Clock::Monotonic);
        let span = if self.span == 0 { P::TUNING.repark_ns } else { self.span.saturating_mul(2) };
        // Once only: a waiter that is woken often must not put off its request each time.
        let end =
            if self.span == 0 { self.end.max(now.saturating_add(P::TUNING.repark_ns)) } else { self.end };
        Self { end, recheck: end.min(now.saturating_add(span)), span, of: None, ..self }
    }

    /// Rechecks later, once: of a real-time waiter that leaves the lock to one that was woken for it. It gives
    /// that one as long as readers give a writer.
    pub(super) fn rechecks_later<P: Platform>(&mut self) {
        let pause = P::TUNING.reader_patience_ns;
        self.request = pause.saturating_mul(2);
        self.end = in_ns::<P>(pause);
        self.recheck = self.end;
        self.span = 1;
    }

    /// How long a writer has waited since it queued, ns; less, if it has let the owner go on.
    fn waited<P: Platform>(self) -> u64 {
        let queued = self.end.saturating_sub(P::TUNING.starvation_ns);
        P::now(Clock::Monotonic).saturating_sub(queued)
    }

    /// T13: whether it has waited for so long that others are to be woken early.
    pub(super) fn is_long<P: Platform>(self) -> bool {
        self.waited::<P>() >= P::TUNING.longest_wait_ns / 2
    }

    /// T16: whether a waiter that was woken without a mark, and has lost, is to be woken with one.
    pub(super) fn is_over_unmarked<P: Platform>(self) -> bool {
        self.waited::<P>() >= P::TUNING.unmarked_ns
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

    /// Whether it keeps its own time, and has not requested the lock: a pause between two requests is not cut
    /// short.
    pub(super) fn may_be_left(self) -> bool {
        self.rechecks() && self.request == 0
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
