//! The order of runs: rounds over cells, and in each cell a block that holds every configuration once, both
//! shuffled.
//!
//! A slow drift of the machine (heat, a neighbour) then meets every configuration alike, and no configuration
//! is always the first or always follows the same other configuration.

use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::rounds::configuration::Configuration;
use crate::rounds::failure::{End, RunError};

/// The longest meaningless environment, in bytes: one page, since the stack moves by as much.
const MAX_PADDING: usize = 4096;

/// One run to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The block, from 0.
    pub block: usize,
    /// The place in the block, from 0.
    pub order: usize,
    /// Which configuration.
    pub configuration: Configuration,
    /// Bytes of environment that mean nothing.
    pub padding: usize,
}

/// A run's place in the experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place<A> {
    /// The round, from 0.
    pub(crate) round: usize,
    /// The place in the block, from 0.
    pub(crate) order: usize,
    /// Which configuration.
    pub(crate) configuration: A,
    /// Bytes of environment that mean nothing.
    pub(crate) padding: usize,
}

/// Makes `rounds` rounds over `cells`, always in the same order for the same seed: in each round a block of
/// every cell, cells and blocks in shuffled order. `configurations` are those of a cell; `run` makes one run.
pub(crate) fn each_run<C, A>(
    cells: &mut [C],
    rounds: usize,
    seed: u64,
    configurations: impl Fn(&C) -> Vec<A>,
    mut run: impl FnMut(&mut C, Place<A>) -> Result<(), RunError>,
) -> End {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut cell_order: Vec<usize> = (0..cells.len()).collect();
    for round in 0..rounds {
        cell_order.shuffle(&mut rng);
        for &cell in &cell_order {
            let mut configurations = configurations(&cells[cell]);
            configurations.shuffle(&mut rng);
            let places = configurations.into_iter().enumerate().map(|(order, configuration)| {
                let padding = rng.random_range(0..MAX_PADDING);
                Place { round, order, configuration, padding }
            });
            for place in places.collect::<Vec<_>>() {
                if let Err(error) = run(&mut cells[cell], place) {
                    return End::from_error(error);
                }
            }
        }
    }
    End::Complete
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::rounds::configuration::Subject;

    /// The blocks of one cell.
    fn blocks(seed: u64, rounds: usize) -> Vec<Vec<Place<Configuration>>> {
        let mut cells = [Vec::new()];
        let end = each_run(
            &mut cells,
            rounds,
            seed,
            |_| Subject::Locks.configurations().to_vec(),
            |places, place| {
                places.push(place);
                Ok(())
            },
        );
        assert!(matches!(end, End::Complete));
        cells[0].chunks(Subject::Locks.configurations().len()).map(<[_]>::to_vec).collect()
    }

    #[test]
    fn every_block_has_every_configuration_once() {
        for (number, block) in blocks(1, 50).iter().enumerate() {
            assert_eq!(block.iter().map(|plan| plan.configuration).collect::<HashSet<_>>().len(), 3);
            assert!(
                block.iter().enumerate().all(|(place, plan)| plan.order == place && plan.round == number)
            );
        }
    }

    #[test]
    fn the_seed_decides() {
        assert_eq!(blocks(5, 20), blocks(5, 20));
        assert_ne!(blocks(5, 20), blocks(6, 20));
    }

    #[test]
    fn every_order_occurs() {
        let of = |block: &Vec<Place<Configuration>>| {
            block.iter().map(|plan| plan.configuration).collect::<Vec<_>>()
        };
        let orders: HashSet<_> = blocks(9, 200).iter().map(of).collect();
        assert_eq!(orders.len(), 6);
    }
}
