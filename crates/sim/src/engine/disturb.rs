//! When the faults of [`chaos`](crate::chaos) happen, and what they do to threads.

use super::world::World;
use crate::chaos::{POLLING, STOPPED};
use crate::time::{Ps, ps};

impl World {
    /// Whether a fault of this probability happens now.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.rng.f64() < probability
    }

    /// At a step of the running thread: what holds it up.
    pub(crate) fn disturb(&mut self) -> Ps {
        if self.chaos.is_by_rank() {
            let between = self.chaos.steps_between_changes.max(1);
            if self.rng.u32(0..between) == 0 {
                self.threads[self.running].rank = self.rng.i64(STOPPED..POLLING);
            }
        }
        if self.chance(self.chaos.delay) { self.long_time() } else { 0 }
    }

    /// At a step of the running thread: whether it loses its CPU.
    pub(crate) fn is_preempted(&mut self) -> bool {
        let is_preempted = self.chance(self.chaos.preempt);
        if is_preempted {
            self.yield_to_all();
        }
        is_preempted
    }

    /// Order by rank: the running thread goes behind all others. A thread that polls has to, or no other would run.
    pub(crate) fn fall_behind(&mut self) {
        if self.chaos.is_by_rank() {
            self.shared.last_rank += 1;
            self.threads[self.running].rank = POLLING + self.shared.last_rank;
        }
    }

    /// Order by rank: that of a store that is held. It comes before threads that poll, or they might wait for it for ever.
    pub(crate) fn draining_rank(&mut self) -> i64 {
        self.rng.i64(0..POLLING)
    }

    /// How late a woken thread starts.
    pub(crate) fn lateness(&mut self) -> Ps {
        if self.chance(self.chaos.late) { self.long_time() } else { 0 }
    }

    /// From far below to far above the average.
    pub(crate) fn long_time(&mut self) -> Ps {
        let exponential = -(1.0 - self.rng.f64()).ln();
        ps(self.chaos.delay_ns * exponential * exponential / 2.0)
    }
}
