//! Rounds over cells: every arm of every cell once, in shuffled order, and the baseline twice.
//!
//! A round visits all cells in shuffled order and runs one block in each: what disturbs for a minute then disturbs one
//! round of every cell, rather than every round of one cell.

use rand::RngExt;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use crate::failure::RunError;
use crate::measure::End;

/// The longest meaningless environment, in bytes: one page, since the stack moves by as much.
const MAX_PADDING: usize = 4096;

/// Which run it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The round, from 0.
    pub round: usize,
    /// The place in the block, from 0.
    pub order: usize,
    /// The target's name; in workloads, the arm's.
    pub target: String,
    /// Whether it is the baseline once more (A/A).
    pub again: bool,
    /// Bytes of environment that mean nothing.
    pub padding: usize,
}

/// Arms that are measured under the same conditions, and the runs that were made of them.
pub trait Cell {
    /// What a run says.
    type Report;

    /// The names of the arms; the first one is the baseline.
    fn arms(&self) -> Vec<String>;

    /// Keeps a run.
    fn add(&mut self, plan: Plan, report: Self::Report);

    /// Runs per round: every arm, and the baseline again.
    fn runs_per_round(&self) -> usize {
        let arms = self.arms().len();
        arms + usize::from(arms > 0)
    }
}

/// Makes one run of a cell.
pub type MakeRun<'a, C> = &'a mut dyn FnMut(&C, &Plan) -> Result<<C as Cell>::Report, RunError>;

/// Makes `rounds` rounds over `cells`; `run` makes one run.
pub fn measure<C: Cell>(mut cells: Vec<C>, rounds: usize, seed: u64, run: MakeRun<'_, C>) -> (Vec<C>, End) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut order: Vec<usize> = (0..cells.len()).collect();
    for round in 0..rounds {
        order.shuffle(&mut rng);
        for &index in &order {
            for plan in block(&cells[index].arms(), round, &mut rng) {
                match run(&cells[index], &plan) {
                    Ok(report) => cells[index].add(plan, report),
                    Err(error) => return (cells, End::from_error(error)),
                }
            }
        }
    }
    (cells, End::Complete)
}

fn block(arms: &[String], round: usize, rng: &mut Xoshiro256PlusPlus) -> Vec<Plan> {
    let again = arms.first().map(|baseline| (baseline, true));
    let mut arms: Vec<_> = arms.iter().map(|arm| (arm, false)).chain(again).collect();
    arms.shuffle(rng);
    let plans = arms.into_iter().enumerate().map(|(order, (arm, again))| {
        let padding = rng.random_range(0..MAX_PADDING);
        Plan { round, order, target: arm.clone(), again, padding }
    });
    plans.collect()
}
