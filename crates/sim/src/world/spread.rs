//! What things cost this time: the machine's figures, spread at random.

use super::World;
use crate::time::Ps;

impl World {
    /// What a transfer that takes `cost` takes this time.
    pub(crate) fn spread_transfer(&mut self, cost: Ps) -> Ps {
        self.spread(cost, self.costs.spread.memory)
    }

    /// What something in the kernel that takes `cost` takes this time.
    pub(crate) fn spread_call(&mut self, cost: Ps) -> Ps {
        self.spread(cost, self.costs.spread.kernel)
    }

    fn spread(&mut self, cost: Ps, part: f64) -> Ps {
        if part == 0.0 || self.chaos.is_by_rank() {
            return cost;
        }
        (cost as f64 * (1.0 - part + 2.0 * part * self.rng.f64())) as Ps
    }
}
