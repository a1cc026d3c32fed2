//! Exponential back-off between two looks at a lock.
//!
//! Origin: document 004's patch, of which only the effect is told (17 %); its parameters are those that
//! FreeBSD has settled on since (r313386, r332285): the first delay is one spin-wait instruction, each is
//! twice the one before, and the longest grows with the number of CPUs.
//!
//! Steps of up to [`COUNTED`] hints are counted, as there: a reading of the clock takes as long as some
//! hints, so timed steps would all be equal at first. Longer ones are timed, so that a model or a simulation
//! does not have to run hundreds of hints. What a hint takes on this CPU (5 to 45 ns) is measured in the last
//! step that is counted, so the next one is twice as long here, too.

use core::cmp::Ordering::{Equal, Greater, Less};

use spinpark_platform::{Clock, Platform};

use crate::wait::MOST_POLL_NS;

/// The longest step that is counted, in hints.
const COUNTED: u32 = 16;

/// What a hint takes where the clock cannot tell, ns.
pub(crate) const HINT_NS: u64 = 16;

/// The longest delay whatever the number of CPUs, in hints.
const LONGEST: u32 = 32_678;

/// A delay that doubles.
#[derive(Debug)]
pub(crate) struct Delay {
    hints: u32,
    longest: u32,
    hint_ns: u64,
}

impl Delay {
    /// Before the first delay, on a machine of `cpus` CPUs: at most 256 hints for each, rounded up to a power
    /// of two.
    pub(crate) fn new(cpus: u32) -> Self {
        let longest = cpus.next_power_of_two().saturating_mul(256).min(LONGEST);
        Self { hints: 1, longest, hint_ns: HINT_NS }
    }

    /// Stays away from memory for a while, and for twice as long the next time. Returns for how many hints.
    pub(crate) fn pause<P: Platform>(&mut self) -> u32 {
        let hints = self.hints;
        match hints.cmp(&COUNTED) {
            Less => count::<P>(hints),
            Equal => {
                let before = P::now(Clock::Monotonic);
                count::<P>(hints);
                self.measured(P::now(Clock::Monotonic).saturating_sub(before));
            }
            Greater => P::spin_for(u64::from(hints) * self.hint_ns),
        }
        self.hints = (hints * 2).min(self.longest);
        hints
    }

    /// [`COUNTED`] hints took `ns`. A clock that stands says nothing, nor does a thread that was preempted
    /// meanwhile.
    fn measured(&mut self, ns: u64) {
        let hint_ns = ns / u64::from(COUNTED);
        if (1..=MOST_POLL_NS).contains(&hint_ns) {
            self.hint_ns = hint_ns;
        }
    }
}

fn count<P: Platform>(hints: u32) {
    let mut done = 0;
    while done < hints {
        done += P::spin_hint();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_measured_where_that_makes_sense() {
        let measured = |ns| {
            let mut delay = Delay::new(2);
            delay.measured(ns);
            delay.hint_ns
        };
        assert_eq!([16 * 40, 0, 4_000_000].map(measured), [40, HINT_NS, HINT_NS]);
    }

    #[test]
    fn the_longest_delay_grows_with_the_cpus() {
        assert_eq!(
            [1, 2, 3, 12, 64, 4096].map(|cpus| Delay::new(cpus).longest),
            [256, 512, 1024, 4096, 16384, LONGEST]
        );
    }
}
