//! Policies for the protocol's checks: each question is answered by a coin. What the protocol promises holds
//! whatever it answers.

use std::marker::PhantomData;

use spinpark_locks::Policy;
use spinpark_platform::{Awake, Note, Platform, Spin, Spinning, Timing, Tries};
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

impl<P: Platform, C: Coin> Policy<P> for By<C> {
    fn learns(lock: usize, note: Note) {
        P::notes(lock, note);
    }

    fn wants_time(lock: usize, queued: bool) -> Option<Timing> {
        if C::toss(0) { P::wants_time(lock, queued) } else { None }
    }

    fn reads_first() -> bool {
        C::toss(1)
    }

    fn counts_tries() -> bool {
        C::toss(2)
    }

    fn tries() -> Tries {
        if C::toss(3) { Tries::FailOften } else { Tries::Succeed }
    }

    fn can_spin(kind: Spin) -> bool {
        C::toss(4) && P::can_spin(kind)
    }

    fn spinning(_: usize) -> Spinning {
        if C::toss(5) { Spinning::BackOff } else { Spinning::Eager }
    }

    fn backs_off_asleep() -> bool {
        C::toss(6)
    }

    fn queues_spinners() -> bool {
        C::toss(7)
    }

    fn awake(_: usize) -> Awake {
        if C::toss(8) { Awake::AtMost(1) } else { Awake::All }
    }

    fn polls_from_afar() -> bool {
        C::toss(9)
    }

    fn primary_waits_longer() -> bool {
        C::toss(10)
    }

    fn leaves_promised() -> bool {
        C::toss(11)
    }

    fn least_probe_ns() -> u64 {
        if C::toss(12) { P::TUNING.least_probe_ns } else { 0 }
    }

    fn head_keeps_time() -> bool {
        C::toss(13)
    }

    fn starved_requests_at_once() -> bool {
        C::toss(14)
    }

    fn wakes_early() -> bool {
        C::toss(15)
    }

    fn leaves_asleep() -> bool {
        C::toss(16)
    }

    fn returns_soon(_: usize) -> bool {
        C::toss(17)
    }

    fn wakes_unmarked() -> bool {
        C::toss(18)
    }

    fn has_passed_woken() -> bool {
        C::toss(19)
    }

    fn ends_contended(_: usize) -> bool {
        C::toss(20)
    }

    fn lets_spinner_pass() -> bool {
        C::toss(21)
    }

    fn reads_before_slots() -> u32 {
        if C::toss(22) { 0 } else { P::reads_before_slots() }
    }

    fn shares_lines() -> bool {
        C::toss(23)
    }

    fn defers_to_release() -> bool {
        C::toss(24)
    }

    fn waits_next(_: usize) -> bool {
        C::toss(25)
    }
}
