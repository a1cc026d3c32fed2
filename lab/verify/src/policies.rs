//! Policies for the protocol's checks: each question is answered by a coin, and so is each part of an answer.
//! What the protocol promises holds whatever it answers.

use std::cell::Cell;
use std::marker::PhantomData;

use spinpark_locks::{
    Adaptive, Arrival, Asleep, BeforeQueueing, Choice, Choices, EarlyWakes, FirstTry, Note, OnRelease,
    Policy, Polling, Reads, Spin, Spinner, Times, Timing, Turn, WhenWoken,
};
use spinpark_platform::Platform;
use spinpark_sim::here;

/// What answers.
pub trait Coin: Send + Sync + 'static {
    /// The answer to a question, by its number: below 32.
    fn toss(question: u32) -> bool;
}

/// Random in each call, from the simulator's seed.
#[derive(Debug)]
pub enum Simulated {}

impl Coin for Simulated {
    fn toss(_: u32) -> bool {
        here::random(2) == 0
    }
}

/// The same answer in each call: a bit for each question.
#[derive(Debug)]
pub enum Bits<const ANSWERS: u32> {}

impl<const ANSWERS: u32> Coin for Bits<ANSWERS> {
    fn toss(question: u32) -> bool {
        ANSWERS >> question & 1 != 0
    }
}

/// A policy that answers by the coin `C`. Where a machine says that it cannot (a thread that must not spin, as
/// there is no other CPU), it does not.
#[derive(Debug)]
pub struct By<C>(PhantomData<C>);

impl<C: Coin> By<C> {
    /// A duration that the coin may leave out.
    fn or_0(question: u32, ns: u64) -> u64 {
        if C::toss(question) { ns } else { 0 }
    }
}

impl<P: Platform + Adaptive, C: Coin> Policy<P> for By<C> {
    // The timers of sleepers are what the models' clocks are for.
    const TIMES: Times = Times::of(&P::TUNING);

    fn learns(lock: usize, note: Note) {
        P::notes(lock, note);
    }

    fn wants_time(lock: usize, queued: bool) -> Option<Timing> {
        if C::toss(0) { P::wants_time(lock, queued) } else { None }
    }

    fn first_try(_: usize, asks: FirstTry) -> bool {
        match asks {
            FirstTry::Reads => C::toss(1),
            FirstTry::HasFailed => C::toss(3),
            FirstTry::JoinsSpinners => C::toss(2) && C::toss(3),
            FirstTry::JoinsTheseSpinners => !C::toss(5),
            FirstTry::IsNoted => C::toss(2),
            FirstTry::LetsSpinnerPass => C::toss(21),
        }
    }

    fn before_queueing(_: usize, arrival: Arrival) -> BeforeQueueing {
        let can_spin = || C::toss(4) && P::can_spin(Spin::Lock);
        if C::toss(7) && arrival.writes && arrival.may_take_turns {
            return BeforeQueueing::InTurn(Turn {
                most: match (can_spin(), C::toss(8)) {
                    (false, _) => 0,
                    (true, true) => 1,
                    (true, false) => u32::MAX,
                },
                wait_ns: Self::or_0(9, P::TUNING.queue_spin_ns),
                overstay_ns: Self::or_0(10, P::TUNING.spin_ns),
                probe_ns: P::TUNING.owner_probe_ns,
            });
        }
        if arrival.writes && C::toss(6) && C::toss(5) && P::has_fine_timers() {
            BeforeQueueing::BacksOff
        } else if can_spin() {
            BeforeQueueing::Polls
        } else {
            BeforeQueueing::Queues
        }
    }

    fn spins(_: usize, spinner: Spinner) -> Option<Polling> {
        let tuning = &P::TUNING;
        let kind = match spinner {
            // It was asked before.
            Spinner::Alone { .. } | Spinner::AtHead => None,
            Spinner::Woken { .. } => Some(Spin::Woken),
            Spinner::Watches(kind) => Some(kind),
        };
        if kind.is_some_and(|kind| !(C::toss(4) && P::can_spin(kind))) {
            return None;
        }
        let span_ns = match spinner {
            Spinner::Watches(Spin::Writer) => tuning.pass_ns,
            Spinner::AtHead => tuning.queue_spin_ns,
            _ => tuning.spin_ns,
        };
        let gap_ns = if C::toss(5) { tuning.back_off_gap_ns } else { tuning.eager_gap_ns };
        Some(Polling {
            primary_ns: Self::or_0(10, tuning.primary_spin_ns),
            secondary_ns: Self::or_0(26, tuning.secondary_spin_ns),
            promised_ns: Self::or_0(11, tuning.secondary_spin_ns),
            readers_ns: Self::or_0(27, tuning.primary_spin_ns),
            gap_ns,
            widest_gap_ns: gap_ns.max(Self::or_0(9, tuning.crowded_gap_ns)),
            probe_ns: tuning.owner_probe_ns,
            notes_unannounced: !C::toss(7),
            ..Polling::lasting(Self::or_0(28, span_ns))
        })
    }

    fn when_woken(_: usize, writes: bool) -> WhenWoken {
        WhenWoken {
            backs_off: writes && C::toss(6) && C::toss(5) && P::has_fine_timers(),
            requests_at_once: C::toss(14),
            wakes_others: C::toss(15).then(|| EarlyWakes {
                after_ns: Self::or_0(29, P::TUNING.longest_wait_ns / 2),
                late_ns: Self::or_0(30, P::TUNING.deep_sleep_ns),
                late: EarlyWakes::MOST,
                in_time: 2,
                among: 16,
            }),
        }
    }

    fn sleeps(asks: Asleep) -> bool {
        match asks {
            Asleep::HeadKeepsTime => C::toss(13),
            Asleep::MayBeLeft => C::toss(16),
            Asleep::ProbesLate => C::toss(12),
        }
    }

    fn on_release(_: usize, asks: OnRelease) -> bool {
        match asks {
            OnRelease::LeavesHead => C::toss(16) && C::toss(17),
            OnRelease::WakesUnmarked => C::toss(18),
            OnRelease::Promises => C::toss(19),
            OnRelease::EndsContended => C::toss(20),
            OnRelease::DefersWakes => C::toss(24),
            OnRelease::DefersThisWake => C::toss(25),
        }
    }

    fn reads(_: u32) -> Option<Reads> {
        let weight = if C::toss(23) { 4 } else { 1 };
        if C::toss(22) {
            Some(Reads { weight, enough: 0 })
        } else {
            C::toss(31).then(|| Reads { weight, enough: P::reads_before_slots() })
        }
    }
}

thread_local! {
    static DRAWN: Cell<usize> = const { Cell::new(0) };
}

/// What a lock's user has chosen, drawn for a simulated program: the threads of one run on one of this process. The last
/// kind is drawn anew for each question, as a lock's choice is found out while threads wait for it.
#[derive(Debug)]
pub enum Drawn {}

impl Drawn {
    /// One for each choice, and the last.
    pub const KINDS: usize = Choice::ALL.len() + 1;

    /// Decides for the program that this thread simulates next; the kind's name.
    #[must_use]
    pub fn draw(kind: usize) -> String {
        DRAWN.set(kind);
        Choice::ALL.get(kind).map_or_else(|| String::from("at random"), |choice| format!("{choice:?}"))
    }
}

impl Choices for Drawn {
    fn of(_: usize) -> Choice {
        let any = || Choice::ALL[here::random(Choice::ALL.len() as u64) as usize];
        Choice::ALL.get(DRAWN.get()).copied().unwrap_or_else(any)
    }
}
