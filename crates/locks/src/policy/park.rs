//! The shortest policy: no thread spins, and waiters are woken in order. To start from, for one of your own.

use spinpark_platform::Platform;

use super::{
    Adaptive, Arrival, Asleep, BeforeQueueing, FirstTry, Note, OnRelease, Policy, Polling, Reads, Spinner,
    Times, Timing, WhenWoken,
};

/// No thread spins, and waiters are woken in order.
#[derive(Debug, Clone, Copy)]
pub enum Park {}

impl<P: Platform + Adaptive> Policy<P> for Park {
    const TIMES: Times = Times::of(&P::TUNING);

    /// Nothing; but see [`Policy::learns`].
    fn learns(lock: usize, note: Note) {
        if note == Note::Sleeps {
            P::notes(lock, note);
        }
    }

    fn wants_time(_: usize, _: bool) -> Option<Timing> {
        None
    }

    #[inline(always)]
    fn first_try(_: usize, _: FirstTry) -> bool {
        false
    }

    fn before_queueing(_: usize, _: Arrival) -> BeforeQueueing {
        BeforeQueueing::Queues
    }

    fn spins(_: usize, _: Spinner) -> Option<Polling> {
        None
    }

    fn when_woken(_: usize, _: bool) -> WhenWoken {
        WhenWoken { backs_off: false, requests_at_once: true, wakes_others: None }
    }

    /// A head that was woken and lost keeps its own time: it requests the lock once it has starved.
    fn sleeps(asks: Asleep) -> bool {
        matches!(asks, Asleep::HeadKeepsTime | Asleep::ProbesLate)
    }

    /// Nothing but the machine's: when a lock without waiters is uncontended again.
    fn on_release(lock: usize, asks: OnRelease) -> bool {
        asks == OnRelease::EndsContended && P::ends_contended(lock)
    }

    fn reads(_: u32) -> Option<Reads> {
        Some(Reads { weight: 1, enough: P::reads_before_slots() })
    }
}
