//! When a waiter that sleeps does something by itself: looks at the lock, or asks for more than its turn.

use spinpark_platform::{Clock, Deadline, Platform};

use crate::word::Want;

/// The times of one wait, ns on the monotonic clock.
#[derive(Clone, Copy)]
pub(super) struct Patience {
    /// From here on the waiter has starved: it demands the lock.
    end: u64,
    /// When it looks at the lock by itself; `u64::MAX`: not before it is woken.
    look: u64,
    /// How long it has let the owner go on the last time; 0: it has not.
    span: u64,
}

impl Patience {
    /// Of a waiter that has just arrived. A reader keeps its time from the start, others sleep until they are woken.
    #[inline(never)]
    pub(super) fn on_arrival<P: Platform>(want: Want) -> Self {
        let reader = want == Want::Read;
        let patience = if reader { P::TUNING.reader_patience_ns } else { P::TUNING.starvation_ns };
        let end = P::now(Clock::Monotonic).saturating_add(patience);
        Self { end, look: if reader { end } else { u64::MAX }, span: 0 }
    }

    /// Sleeps until it has starved. As the head of the queue that lost (`TIMED`).
    pub(super) fn until_starved(self) -> Self {
        Self { look: self.end, ..self }
    }

    /// Sleeps until it is woken or handed the lock.
    pub(super) fn until_told(self) -> Self {
        Self { look: u64::MAX, ..self }
    }

    /// Lets the owner go on for a while, and for twice as long each time, but not beyond the end: so that a lock that falls
    /// idle meanwhile is idle for no longer than it was busy before. One that has starved already does it once.
    #[inline(never)]
    pub(super) fn lets_owner_go_on<P: Platform>(self) -> Self {
        let now = P::now(Clock::Monotonic);
        let span = if self.span == 0 { P::TUNING.nap_ns } else { self.span.saturating_mul(2) };
        // Once only: a waiter that is woken often must not put off its demand each time.
        let end = if self.span == 0 { self.end.max(now.saturating_add(P::TUNING.nap_ns)) } else { self.end };
        Self { end, look: end.min(now.saturating_add(span)), span }
    }

    /// Whether it looks before it has starved.
    pub(super) fn looks_early(self) -> bool {
        self.span > 0
    }

    /// The time of the next look on the clock of `deadline`, or `deadline` if that is earlier.
    #[inline(never)]
    pub(super) fn sleep_until<P: Platform>(self, deadline: Option<Deadline>) -> Option<Deadline> {
        if self.look == u64::MAX {
            return deadline;
        }
        let clock = deadline.map_or(Clock::Monotonic, |deadline| deadline.clock);
        let left = self.look.saturating_sub(P::now(Clock::Monotonic));
        let own = P::now(clock).saturating_add(left);
        let at = deadline.map_or(own, |deadline| deadline.at.min(own));
        Some(Deadline { clock, at })
    }

    pub(super) fn is_over<P: Platform>(self) -> bool {
        P::now(Clock::Monotonic) >= self.end
    }
}
