//! A policy chosen lock by lock: as [`Usual`], but where a lock's choice answers otherwise. The drop-in's, for
//! programs whose user names locks (`spinpark run --policy`).
//!
//! | choice | an arriving thread | a woken waiter | the release |
//! |---|---|---|---|
//! | [`Usual`](Choice::Usual) | as learned | as learned | as learned |
//! | [`Eager`](Choice::Eager) | spins, whether spins have paid or not | the same | never leaves the head asleep |
//! | [`BackOff`](Choice::BackOff) | leaves the lock to its owner for a while: asleep on two CPUs, with more by polling seldom | the same | as learned |
//! | [`Park`](Choice::Park) | queues at once | tries once, and queues again | wakes the head |
//! | [`InOrder`](Choice::InOrder) | queues at once | polls, while the lock is kept for it | keeps the lock for a waiter that was woken |
//!
//! What needs a check in an uncontended acquisition or release is answered as [`Usual`] does, so that both have the
//! same instructions whatever is chosen: whether the first try reads, and for how much a read counts. So are the
//! questions about no lock in particular, and those whose lock may be gone ([`Policy::learns`]).

use core::marker::PhantomData;

use spinpark_platform::{Platform, Tuning};

use super::many_cpus::turn;
use super::{
    watches, Adaptive, Arrival, Asleep, Awake, BeforeQueueing, FirstTry, Note, OnRelease, Policy, Polling,
    Reads, Spinner, Times, Timing, Usual, WhenWoken,
};

/// How threads share one lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// As threads learn.
    #[default]
    Usual,
    /// Threads spin for the lock, whether it has paid lately or not.
    Eager,
    /// Waiters leave the lock to its owner for a while.
    BackOff,
    /// No thread spins.
    Park,
    /// Waiters get the lock in the order in which they came: a running thread passes a waiter that was woken at most
    /// once.
    InOrder,
}

impl Choice {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Usual, Self::Eager, Self::BackOff, Self::Park, Self::InOrder];
}

/// Where choices are noted.
pub trait Choices: Send + Sync + 'static {
    /// That of the lock at `lock`, which the calling thread holds or is about to wait for; 0: of none. It may change
    /// from call to call.
    fn of(lock: usize) -> Choice;
}

/// The same for all locks: an index of [`Choice::ALL`].
#[derive(Debug, Clone, Copy)]
pub enum Only<const CHOICE: usize> {}

impl<const CHOICE: usize> Choices for Only<CHOICE> {
    #[inline(always)]
    fn of(_: usize) -> Choice {
        const { Choice::ALL[CHOICE] }
    }
}

/// The policy that `C` chooses.
#[derive(Debug, Clone, Copy)]
pub struct Chosen<C>(PhantomData<C>);

/// An eager spin lasts for as long: a sleep and a wake-up take 50 µs where the waiter's CPU has gone idle, and the
/// ski-rental rule (spin for as long as a sleep costs) is then at most twice as bad as the better of both. It is the
/// tuning's [`primary_spin_ns`](Tuning::primary_spin_ns), for the same reason.
const fn eager_ns(tuning: &Tuning) -> u64 {
    tuning.primary_spin_ns
}

impl<P: Platform + Adaptive, C: Choices> Policy<P> for Chosen<C> {
    const TIMES: Times = Times::of(&P::TUNING);

    /// What threads learn is about themselves; the lock may be gone.
    #[inline(always)]
    fn learns(lock: usize, note: Note) {
        <Usual as Policy<P>>::learns(lock, note);
    }

    /// Times are for [`Usual`]'s guesses; to take one may set `CONTENDED`.
    #[inline]
    fn wants_time(lock: usize, queued: bool) -> Option<Timing> {
        match C::of(lock) {
            Choice::Usual => <Usual as Policy<P>>::wants_time(lock, queued),
            Choice::Eager | Choice::BackOff | Choice::Park | Choice::InOrder => None,
        }
    }

    #[inline(always)]
    fn first_try(lock: usize, asks: FirstTry) -> bool {
        let usual = <Usual as Policy<P>>::first_try(lock, asks);
        match asks {
            FirstTry::Reads | FirstTry::HasFailed => usual,
            FirstTry::JoinsSpinners => usual && !matches!(C::of(lock), Choice::Park | Choice::InOrder),
            FirstTry::JoinsTheseSpinners => match C::of(lock) {
                Choice::Usual => usual,
                Choice::Eager => true,
                // The owner is left alone.
                Choice::BackOff | Choice::Park | Choice::InOrder => false,
            },
            FirstTry::IsNoted | FirstTry::LetsSpinnerPass => usual,
        }
    }

    #[inline]
    fn before_queueing(lock: usize, arrival: Arrival) -> BeforeQueueing {
        let usual = || <Usual as Policy<P>>::before_queueing(lock, arrival);
        match C::of(lock) {
            Choice::Usual => usual(),
            Choice::Park | Choice::InOrder => BeforeQueueing::Queues,
            // On one CPU no thread spins while another runs.
            Choice::Eager | Choice::BackOff if P::cpus() == 1 => BeforeQueueing::Queues,
            Choice::BackOff if arrival.writes && can_back_off_asleep::<P>() => BeforeQueueing::BacksOff,
            Choice::Eager | Choice::BackOff if P::cpus() == 2 => BeforeQueueing::Polls,
            Choice::Eager | Choice::BackOff => {
                if arrival.writes && arrival.may_take_turns && P::priority() == 0 {
                    BeforeQueueing::InTurn(turn::<P>(Awake::All, true))
                } else {
                    BeforeQueueing::Polls
                }
            }
        }
    }

    #[inline]
    fn spins(lock: usize, spinner: Spinner) -> Option<Polling> {
        if let Spinner::Watches(kind) = spinner {
            // Of a lock that the next release hands over, and of signals: the choice is about the lock's waiters.
            return match C::of(lock) {
                Choice::Park => None,
                _ => watches::<P>(kind),
            };
        }
        let choice = C::of(lock);
        match choice {
            Choice::Usual => <Usual as Policy<P>>::spins(lock, spinner),
            Choice::Park => None,
            _ if P::cpus() == 1 => None,
            Choice::Eager => Some(eager::<P>(spinner)),
            Choice::BackOff => Some(seldom::<P>(spinner)),
            // Only while the lock may be kept for it.
            Choice::InOrder => matches!(spinner, Spinner::Woken { .. }).then(|| Polling::by(&P::TUNING)),
        }
    }

    #[inline]
    fn when_woken(lock: usize, writes: bool) -> WhenWoken {
        let usual = || <Usual as Policy<P>>::when_woken(lock, writes);
        match C::of(lock) {
            Choice::Usual => usual(),
            Choice::Eager => WhenWoken { backs_off: false, ..usual() },
            Choice::BackOff => WhenWoken { backs_off: writes && can_back_off_asleep::<P>(), ..usual() },
            Choice::Park | Choice::InOrder => {
                WhenWoken { backs_off: false, requests_at_once: true, wakes_others: None }
            }
        }
    }

    /// Which waiters have timers is asked of no lock in particular.
    #[inline]
    fn sleeps(asks: Asleep) -> bool {
        <Usual as Policy<P>>::sleeps(asks)
    }

    #[inline]
    fn on_release(lock: usize, asks: OnRelease) -> bool {
        let choice = C::of(lock);
        match (choice, asks) {
            (Choice::Eager | Choice::Park | Choice::InOrder, OnRelease::LeavesHead) => false,
            (Choice::InOrder, OnRelease::Promises) => true,
            _ => <Usual as Policy<P>>::on_release(lock, asks),
        }
    }

    #[inline]
    fn reads(readers: u32) -> Option<Reads> {
        <Usual as Policy<P>>::reads(readers)
    }
}

/// Whether a waiter that backs off sleeps: see [`Few`](super::Few). Where the timer is not fine enough to end that
/// sleep in time, it polls seldom.
#[inline]
fn can_back_off_asleep<P: Platform + Adaptive>() -> bool {
    P::cpus() == 2 && P::has_fine_timers()
}

/// Polls closely.
#[inline]
fn eager<P: Platform>(spinner: Spinner) -> Polling {
    let tuning = &P::TUNING;
    let span_ns = if spinner == Spinner::AtHead { tuning.queue_spin_ns } else { eager_ns(tuning) };
    let most_clock_reads = Polling::lasting(span_ns).most_clock_reads;
    Polling { span_ns, secondary_ns: 0, most_clock_reads, ..Polling::by(tuning) }
}

/// Polls as seldom as a thread that backs off.
#[inline]
fn seldom<P: Platform>(spinner: Spinner) -> Polling {
    let gap_ns = P::TUNING.back_off_gap_ns;
    Polling { gap_ns, widest_gap_ns: gap_ns, ..eager::<P>(spinner) }
}
