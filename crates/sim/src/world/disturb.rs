//! Whether a fault of [`chaos`](crate::chaos) happens now, how long a delay is, and which rank a thread gets.

use super::World;
use crate::chaos::POLLING;
use crate::time::{Ps, ps};

impl World {
    /// Whether a fault of this probability happens now.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.rng.f64() < probability
    }

    /// Order by rank: the running thread goes behind all others. A thread that polls has to, or no other
    /// would run.
    pub(crate) fn fall_behind(&mut self) {
        if self.chaos.is_by_rank() {
            self.last_rank += 1;
            self.threads[self.running].rank = POLLING + self.last_rank;
        }
    }

    /// Order by rank: that of a store that is held. It comes before threads that poll, or they might wait for
    /// it for ever.
    pub(crate) fn draining_rank(&mut self) -> i64 {
        self.rng.i64(0..POLLING)
    }

    /// How late a woken thread starts.
    pub(crate) fn lateness(&mut self) -> Ps {
        if self.chance(self.chaos.late) { self.long_time() } else { 0 }
    }

    /// From far below to far above the average.
    pub(crate) fn long_time(&mut self) -> Ps {
        let exponential = -libm::log(1.0 - self.rng.f64());
        ps(self.chaos.delay_ns * exponential * exponential / 2.0)
    }
}
