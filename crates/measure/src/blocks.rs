//! The order of runs: blocks that hold every arm once, shuffled.
//!
//! A slow drift of the machine (heat, a neighbour) then meets every arm alike, and no arm is always the first or always
//! follows the same other arm.

use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::arm::Arm;

/// The longest meaningless environment, in bytes: one page, since the stack moves by as much.
const MAX_PADDING: usize = 4096;

/// One run to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The block, from 0.
    pub block: usize,
    /// The place in the block, from 0.
    pub order: usize,
    /// Which arm.
    pub arm: Arm,
    /// Bytes of environment that mean nothing.
    pub padding: usize,
}

/// Makes blocks, always the same ones for the same seed.
#[derive(Debug, Clone)]
pub struct Scheduler {
    rng: Xoshiro256PlusPlus,
    next: usize,
}

impl Scheduler {
    /// A scheduler for `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { rng: Xoshiro256PlusPlus::seed_from_u64(seed), next: 0 }
    }

    /// The next block.
    pub fn block(&mut self) -> [Plan; 3] {
        let mut arms = Arm::ALL;
        arms.shuffle(&mut self.rng);
        let block = self.next;
        self.next += 1;
        let mut order = 0;
        arms.map(|arm| {
            let plan = Plan { block, order, arm, padding: self.rng.random_range(0..MAX_PADDING) };
            order += 1;
            plan
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_block_has_every_arm_once() {
        let mut scheduler = Scheduler::new(1);
        for number in 0..50 {
            let block = scheduler.block();
            assert_eq!(block.iter().map(|plan| plan.arm).collect::<HashSet<_>>().len(), 3);
            assert!(
                block.iter().enumerate().all(|(place, plan)| plan.order == place && plan.block == number)
            );
        }
    }

    #[test]
    fn the_seed_decides() {
        let plans = |seed| {
            let mut scheduler = Scheduler::new(seed);
            (0..20).flat_map(|_| scheduler.block()).collect::<Vec<_>>()
        };
        assert_eq!(plans(5), plans(5));
        assert_ne!(plans(5), plans(6));
    }

    #[test]
    fn every_order_occurs() {
        let mut scheduler = Scheduler::new(9);
        let orders: HashSet<_> = (0..200).map(|_| scheduler.block().map(|plan| plan.arm)).collect();
        assert_eq!(orders.len(), 6);
    }
}
