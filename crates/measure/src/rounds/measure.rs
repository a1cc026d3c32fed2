//! The experiment: blocks of runs, until they are done, interrupted, or a run fails.
//!
//! What executes a run is behind [`Executor`]: processes in earnest, a table of numbers in tests.

use serde::{Deserialize, Serialize};

use crate::rounds::blocks::{Place, Plan, each_run};
use crate::rounds::configuration::Subject;
use crate::rounds::failure::RunError;
use crate::rounds::sample::Sample;

pub use crate::rounds::failure::End;

/// Makes one run and returns its cost.
pub trait Executor {
    /// Makes the run of `plan`.
    ///
    /// # Errors
    ///
    /// [`RunError::Interrupted`] if the user does not want to wait any longer; anything else if the run is
    /// worthless.
    fn execute(&mut self, plan: &Plan) -> Result<Sample, RunError>;
}

/// Hears what happens, between runs.
pub trait Observer {
    /// A run is about to start.
    fn starting(&mut self, _plan: &Plan) {}
    /// A run has ended.
    fn finished(&mut self, _run: &Run) {}
}

/// An observer that does not care.
#[derive(Debug)]
pub struct Silent;

impl Observer for Silent {}

/// A run that was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Where it stood in the experiment.
    #[serde(flatten)]
    pub plan: Plan,
    /// What it cost.
    #[serde(flatten)]
    pub sample: Sample,
}

/// Everything that was measured.
#[derive(Debug)]
pub struct Measurement {
    /// The runs, in the order in which they were made.
    pub runs: Vec<Run>,
    /// Why there are no more.
    pub end: End,
}

impl Measurement {
    /// Goes on with `more` blocks, which count on.
    pub fn add(&mut self, more: Self) {
        let before = self.runs.last().map_or(0, |run| run.plan.block + 1);
        self.runs.extend(more.runs.into_iter().map(|mut run| {
            run.plan.block += before;
            run
        }));
        self.end = more.end;
    }
}

/// Runs `rounds` blocks of what `subject` compares.
pub fn measure(
    subject: Subject,
    rounds: usize,
    seed: u64,
    executor: &mut dyn Executor,
    observer: &mut dyn Observer,
) -> Measurement {
    let configurations = subject.configurations();
    let mut cells = [Vec::with_capacity(rounds * configurations.len())];
    let end = each_run(
        &mut cells,
        rounds,
        seed,
        |_| configurations.to_vec(),
        |runs, place| {
            let Place { round: block, order, configuration, padding } = place;
            let plan = Plan { block, order, configuration, padding };
            observer.starting(&plan);
            let run = Run { plan, sample: executor.execute(&plan)? };
            observer.finished(&run);
            runs.push(run);
            Ok(())
        },
    );
    let [runs] = cells;
    Measurement { runs, end }
}
