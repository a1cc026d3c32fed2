//! One CPU or two: the owner's CPU and the waiter's are all there are.

use spinpark_platform::Platform;

use super::{
    as_learned, watches, Adaptive, Arrival, Asleep, BeforeQueueing, FirstTry, Note, OnRelease, Policy,
    Polling, Reads, Spin, Spinner, Spinning, Times, Timing, Try, WhenWoken,
};

/// The policy for one CPU or two.
#[derive(Debug, Clone, Copy)]
pub enum Few {}

impl<P: Platform + Adaptive> Policy<P> for Few {
    const TIMES: Times = Times::of(&P::TUNING);

    /// Failed tries are not counted. (There may be some from when there were more CPUs: those are forgotten.)
    #[inline(always)]
    fn learns(lock: usize, note: Note) {
        if !matches!(note, Note::Tried(Try::Taken | Try::Skipped | Try::Late)) {
            P::notes(lock, note);
        }
    }

    #[inline]
    fn wants_time(lock: usize, queued: bool) -> Option<Timing> {
        P::wants_time(lock, queued)
    }

    #[inline(always)]
    fn first_try(_: usize, asks: FirstTry) -> bool {
        match asks {
            FirstTry::Reads => P::reads_first(),
            FirstTry::HasFailed => false, // failures are not counted
            // On one CPU no thread spins while another runs.
            FirstTry::LetsSpinnerPass => P::cpus() == 2,
            FirstTry::JoinsSpinners | FirstTry::JoinsTheseSpinners | FirstTry::IsNoted => false,
        }
    }

    #[inline]
    fn before_queueing(lock: usize, arrival: Arrival) -> BeforeQueueing {
        if backs_off::<P>(lock, arrival.writes) {
            BeforeQueueing::BacksOff
        } else if P::can_spin(Spin::Lock) {
            BeforeQueueing::Polls
        } else {
            BeforeQueueing::Queues
        }
    }

    /// Not for less time where the lock is promised: a thread that spins until the promise is taken finds the
    /// lock free sooner than one that is woken.
    #[inline]
    fn spins(_: usize, spinner: Spinner) -> Option<Polling> {
        match spinner {
            Spinner::Watches(kind) => watches::<P>(kind),
            Spinner::Woken { .. } if !P::can_spin(Spin::Woken) => None,
            Spinner::Woken { .. } | Spinner::Alone { .. } | Spinner::AtHead => Some(Polling::by(&P::TUNING)),
        }
    }

    /// A starved waiter need not request the lock at once: only the one other CPU runs threads that could pass it, and the
    /// lock is mostly free in a moment.
    #[inline]
    fn when_woken(lock: usize, writes: bool) -> WhenWoken {
        WhenWoken { backs_off: backs_off::<P>(lock, writes), requests_at_once: false, wakes_others: None }
    }

    #[inline]
    fn sleeps(asks: Asleep) -> bool {
        match asks {
            // Where it may be left asleep, its timer must be fine enough to end that.
            Asleep::HeadKeepsTime => P::cpus() != 2 || P::has_fine_timers(),
            Asleep::MayBeLeft => P::cpus() == 2,
            // A stopped thread may only be waiting for this very CPU.
            Asleep::ProbesLate => true,
        }
    }

    #[inline]
    fn on_release(lock: usize, asks: OnRelease) -> bool {
        match asks {
            // With two. A woken waiter takes turns with its waker, line by line, and nothing else runs.
            OnRelease::LeavesHead => P::cpus() == 2 && P::returns_soon(lock),
            // With one. No waiter runs before the thread that has the CPU leaves it.
            OnRelease::DefersWakes => P::cpus() == 1,
            _ => as_learned::<P>(lock, asks),
        }
    }

    #[inline]
    fn reads(_: u32) -> Option<Reads> {
        Some(Reads { weight: 1, enough: P::reads_before_slots() })
    }
}

/// Whether a waiter leaves the lock to its owner for a while instead of taking turns with it, because that gets
/// more work done. With two CPUs: the waiter's is wanted by other threads, and a sleep costs the owner nothing.
/// But the timer must end that sleep in time.
#[inline]
fn backs_off<P: Platform + Adaptive>(lock: usize, writes: bool) -> bool {
    writes && P::cpus() == 2 && P::spinning(lock) == Spinning::BackOff && P::has_fine_timers()
}
