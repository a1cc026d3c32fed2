//! `spinpark bench`: every shape at every thread count, in rounds.
//!
//! A round visits all cells in shuffled order and runs one block of arms in each: what disturbs for a minute then
//! disturbs one round of every cell, rather than every round of one cell.

use serde::Serialize;

use crate::arm::Arm;
use crate::blocks::{Plan, Scheduler};
use crate::compare::{Comparison, Summary};
use crate::failure::RunError;
use crate::measure::{End, Executor, Observer, Run, measure_block};
use crate::sample::{Metric, Sample};
use crate::shapes::Shape;
use crate::stats::median;

/// A shape at a number of threads.
#[derive(Clone, Copy)]
pub struct Cell {
    /// The shape.
    pub shape: &'static dyn Shape,
    /// The number of threads.
    pub threads: usize,
}

impl std::fmt::Debug for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}×{}", self.shape.name(), self.threads)
    }
}

/// All cells of some shapes.
#[must_use]
pub fn cells(shapes: &[&'static dyn Shape]) -> Vec<Cell> {
    let of = |shape: &&'static dyn Shape| {
        let shape = *shape;
        shape.threads().iter().map(move |&threads| Cell { shape, threads })
    };
    shapes.iter().flat_map(of).collect()
}

/// Makes one run of one cell.
pub trait CellExecutor {
    /// Makes the run of `plan` in `cell`.
    ///
    /// # Errors
    ///
    /// As [`Executor::execute`].
    fn execute(&mut self, cell: &Cell, plan: &Plan) -> Result<Sample, RunError>;
}

/// A cell with its runs.
#[derive(Debug)]
pub struct Measured {
    /// Which.
    pub cell: Cell,
    /// The runs, in order.
    pub runs: Vec<Run>,
}

/// Lets one cell of a [`CellExecutor`] be an [`Executor`].
struct OneCell<'a> {
    cell: Cell,
    executor: &'a mut dyn CellExecutor,
}

impl Executor for OneCell<'_> {
    fn execute(&mut self, plan: &Plan) -> Result<Sample, RunError> {
        self.executor.execute(&self.cell, plan)
    }
}

/// Runs `rounds` rounds over `cells`.
pub fn measure(
    cells: &[Cell],
    rounds: usize,
    seed: u64,
    executor: &mut dyn CellExecutor,
    observer: &mut dyn Observer,
) -> (Vec<Measured>, End) {
    let mut scheduler = Scheduler::new(seed);
    let mut measured: Vec<_> = cells.iter().map(|&cell| Measured { cell, runs: Vec::new() }).collect();
    let mut order: Vec<usize> = (0..cells.len()).collect();
    for _ in 0..rounds {
        scheduler.shuffle(&mut order);
        for &index in &order {
            let Measured { cell, runs } = &mut measured[index];
            let mut executor = OneCell { cell: *cell, executor: &mut *executor };
            if let Err(error) = measure_block(&mut scheduler, &mut executor, observer, runs) {
                return (measured, End::from_error(error));
            }
        }
    }
    (measured, End::Complete)
}

/// A cell's result.
#[derive(Debug, Clone, Serialize)]
pub struct CellResult {
    /// The shape's name.
    pub shape: &'static str,
    /// The number of threads.
    pub threads: usize,
    /// Complete blocks.
    pub blocks: usize,
    /// Time per operation, in nanoseconds, compared.
    pub time: Summary,
    /// How evenly threads were served, for the shapes that say so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fairness: Option<Fairness>,
}

/// Medians over runs, glibc and spinpark.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Fairness {
    /// The longest time that a thread went without the lock, in seconds.
    pub longest_gap_s: [f64; 2],
    /// Jain's index.
    pub jain: [f64; 2],
}

impl CellResult {
    /// Compares the runs of a cell.
    #[must_use]
    pub fn new(measured: &Measured, seed: u64) -> Option<Self> {
        let comparison = Comparison::new(&measured.runs, &[Metric::Printed], seed);
        Some(Self {
            shape: measured.cell.shape.name(),
            threads: measured.cell.threads,
            blocks: comparison.blocks,
            time: comparison.metrics.into_iter().next()?,
            fairness: fairness(&measured.runs),
        })
    }
}

fn fairness(runs: &[Run]) -> Option<Fairness> {
    let of = |arm, name: &str| {
        let values =
            runs.iter().filter(|run| run.plan.arm == arm).filter_map(|run| run.sample.more.get(name));
        median(&values.copied().collect::<Vec<_>>())
    };
    let both = |name| Some([of(Arm::Glibc, name)?, of(Arm::Spinpark, name)?]);
    Some(Fairness { longest_gap_s: both("longest_gap_s")?, jain: both("jain")? })
}
