//! Setting up a run.

use crate::access::finish;
use crate::check::Checks;
use crate::engine::run;
use crate::machine::Machine;
use crate::outcome::SimulationResult;
use crate::platform::set_faults;
use crate::time::PS_PER_NS;
use crate::world::chaos::Chaos;
use crate::world::{Body, Record, World};

/// A run that is being set up: a machine, threads, and what is to be recorded.
pub struct Simulation {
    world: World,
    threads: Vec<(Body, Option<(u32, u32)>)>,
}

impl Simulation {
    /// A run on `machine`, without an end.
    #[must_use]
    pub fn new(machine: &Machine) -> Self {
        Self { world: World::new(machine), threads: Vec::new() }
    }

    /// Where its random numbers come from. 0 unless told.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.world.rng = fastrand::Rng::with_seed(seed);
        self
    }

    /// When [`here::is_over`](crate::here::is_over) becomes true, ns.
    #[must_use]
    pub fn until(mut self, end_ns: u64) -> Self {
        self.world.end = end_ns.saturating_mul(PS_PER_NS);
        self
    }

    /// What goes wrong.
    #[must_use]
    pub fn chaos(mut self, chaos: Chaos) -> Self {
        self.world.chaos = chaos;
        self
    }

    /// What is recorded.
    #[must_use]
    pub fn record(mut self, record: Record) -> Self {
        self.world.trace.record = record;
        self
    }

    /// A run that takes more steps than this has failed.
    #[must_use]
    pub fn most_steps(mut self, steps: u64) -> Self {
        self.world.most_steps = steps;
        self
    }

    /// The kernel has no restartable sequences: a release is a compare-exchange.
    #[must_use]
    pub fn without_steps(mut self) -> Self {
        self.world.shared.without_steps = true;
        self
    }

    /// The run checks a lock.
    #[must_use]
    pub fn checks(mut self, checks: Checks) -> Self {
        self.world.checks = Some(Box::new(checks));
        self
    }

    /// Adds a thread.
    pub fn thread(&mut self, body: impl FnOnce() + 'static) {
        self.threads.push((Box::new(body), None));
    }

    /// Adds a thread that may use these CPUs only.
    ///
    /// # Panics
    ///
    /// If there are none in the range.
    pub fn thread_on(&mut self, cpus: std::ops::Range<u32>, body: impl FnOnce() + 'static) {
        assert!(!cpus.is_empty(), "a thread needs a CPU");
        self.threads.push((Box::new(body), Some((cpus.start, cpus.end))));
    }

    /// Runs until every thread has ended, or something is wrong: then [`SimulationResult::failure`] says what.
    ///
    /// # Errors
    ///
    /// No memory for the threads' stacks.
    pub fn run(self) -> std::io::Result<SimulationResult> {
        set_faults(&self.world);
        run(self.world, self.threads, finish)
    }
}
