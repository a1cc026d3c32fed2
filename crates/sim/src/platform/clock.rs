//! The clocks of the simulated machine.

use spinpark_platform::{Clock, Clocks, Deadline};

use super::{Sim, Tuned};
use crate::here;
use crate::time::PS_PER_NS;

/// The realtime clock is ahead of the monotonic one by so much, ns.
const REALTIME_AHEAD: u64 = 1_700_000_000_000_000_000;
/// The time at which a simulation starts, ns: no clock of a running machine shows 0.
const EPOCH: u64 = 1_000_000;

/// What clock `clock` shows at a virtual time, ns.
pub(super) fn shown(clock: Clock, at: u64) -> u64 {
    let monotonic = at / PS_PER_NS + EPOCH;
    match clock {
        Clock::Monotonic => monotonic,
        Clock::Realtime => monotonic + REALTIME_AHEAD,
    }
}

/// The virtual time of a deadline.
pub(super) fn at(deadline: Deadline) -> u64 {
    let monotonic = match deadline.clock {
        Clock::Monotonic => deadline.at,
        Clock::Realtime => deadline.at.saturating_sub(REALTIME_AHEAD),
    };
    monotonic.saturating_sub(EPOCH).saturating_mul(PS_PER_NS)
}

impl<T: Tuned> Clocks for Sim<T> {
    fn now(clock: Clock) -> u64 {
        here::read_clock(|at| shown(clock, at))
    }
}
