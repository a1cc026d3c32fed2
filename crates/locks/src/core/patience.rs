//! When a waiter that sleeps does something by itself: looks at the lock, or asks for more than its turn.

use spinpark_platform::{Clock, Deadline, Platform, Wait};

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

    /// Whether it does nothing by itself: if it sleeps for too long, that is by the caller's deadline.
    pub(super) fn is_told(self) -> bool {
        self.look == u64::MAX
    }

    /// Sleeps on `word` until the next look, or until `deadline` if that is earlier.
    ///
    /// A deadline alone is for the kernel, as it is. A look is not put on the caller's clock, which may be set back during the
    /// sleep: others rely on it (`TIMED`). So a deadline before the look is slept to as the time that is left; should its clock be
    /// set ahead meanwhile, that is noticed at the look. `leave`: see [`Platform::sleep_or`].
    #[inline(never)]
    pub(super) fn sleep<P: Platform>(
        self,
        word: &P::AtomicU32,
        expected: u32,
        deadline: Option<Deadline>,
        leave: &dyn Fn(),
    ) -> Wait {
        if self.is_told() {
            return P::sleep_or(&|| P::futex_wait(word, expected, deadline), leave);
        }
        let left = |clock, at: u64| at.saturating_sub(P::now(clock));
        let look = left(Clock::Monotonic, self.look);
        let span = deadline.map_or(look, |deadline| look.min(left(deadline.clock, deadline.at)));
        P::sleep_or(&|| P::futex_wait_for(word, expected, span), leave)
    }

    pub(super) fn is_over<P: Platform>(self) -> bool {
        P::now(Clock::Monotonic) >= self.end
    }
}
