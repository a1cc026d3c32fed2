//! Rounds over cells: every configuration of every cell once, in shuffled order, and the baseline twice.
//!
//! A round visits all cells in shuffled order and runs one block in each: what disturbs for a minute then
//! disturbs one round of every cell, rather than every round of one cell.

use crate::rounds::blocks::{Place, each_run};
use crate::rounds::failure::{End, RunError};

/// Which run it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The round, from 0.
    pub round: usize,
    /// The place in the block, from 0.
    pub order: usize,
    /// The configuration's name; of `bench`, an implementation's.
    pub configuration: String,
    /// Whether it is the baseline once more (A/A).
    pub again: bool,
    /// Bytes of environment that mean nothing.
    pub padding: usize,
}

/// Configurations that are measured under the same conditions, and the runs that were made of them.
pub trait Cell {
    /// What a run says.
    type Report;

    /// The names of the configurations; the first one is the baseline.
    fn configurations(&self) -> Vec<String>;

    /// Keeps a run.
    fn add(&mut self, plan: Plan, report: Self::Report);

    /// Runs per round: every configuration, and the baseline again.
    fn runs_per_round(&self) -> usize {
        let configurations = self.configurations().len();
        configurations + usize::from(configurations > 0)
    }
}

/// Makes one run of a cell.
pub type MakeRun<'a, C> = &'a mut dyn FnMut(&C, &Plan) -> Result<<C as Cell>::Report, RunError>;

/// Makes `rounds` rounds over `cells`; `run` makes one run.
pub fn measure<C: Cell>(mut cells: Vec<C>, rounds: usize, seed: u64, run: MakeRun<'_, C>) -> (Vec<C>, End) {
    let end = each_run(&mut cells, rounds, seed, configurations_and_baseline, |cell, place| {
        let Place { round, order, configuration: (configuration, again), padding } = place;
        let plan = Plan { round, order, configuration, again, padding };
        let report = run(cell, &plan)?;
        cell.add(plan, report);
        Ok(())
    });
    (cells, end)
}

/// The configurations of a cell, and the baseline again.
fn configurations_and_baseline<C: Cell>(cell: &C) -> Vec<(String, bool)> {
    let configurations = cell.configurations();
    let again = configurations.first().map(|baseline| (baseline.clone(), true));
    configurations.iter().map(|configuration| (configuration.clone(), false)).chain(again).collect()
}
