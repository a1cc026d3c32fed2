//! Exponential back-off between two looks at a lock.
//!
//! Origin: document 004's patch, of which only the effect is told (17 %); its parameters are those that FreeBSD has
//! settled on since (r313386, r332285): the first delay is one unit, each is twice the one before, and the longest
//! grows with the number of CPUs.

use spinpark_platform::Platform;

/// One unit, ns: about one spin-wait instruction.
pub(crate) const UNIT_NS: u64 = 10;

/// The longest delay whatever the number of CPUs, in units.
const LONGEST: u32 = 32_678;

/// A delay that doubles.
#[derive(Debug)]
pub(crate) struct Delay {
    units: u32,
    longest: u32,
}

impl Delay {
    /// Before the first delay, on a machine of `cpus` CPUs: at most 256 units for each, rounded up to a power of two.
    pub(crate) fn new(cpus: u32) -> Self {
        Self { units: 1, longest: cpus.next_power_of_two().saturating_mul(256).min(LONGEST) }
    }

    /// Stays away from memory for a while, and for twice as long the next time. Returns for how many units.
    pub(crate) fn pause<P: Platform>(&mut self) -> u32 {
        let units = self.units;
        P::spin_for(u64::from(units) * UNIT_NS);
        self.units = (units * 2).min(self.longest);
        units
    }
}
