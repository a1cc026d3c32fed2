//! Setting up a run.

use crate::access::finish;
use crate::check::Checks;
use crate::engine::run;
use crate::machine::Machine;
use crate::outcome::Outcome;
use crate::platform::set_faults;
use crate::time::PS_PER_NS;
use crate::world::chaos::Chaos;
use crate::world::{Body, Record, Trace, World};

/// A run that is being set up: a machine, threads, and what is to be recorded.
pub struct Simulation {
    machine: Machine,
    seed: u64,
    end_ns: u64,
    chaos: Chaos,
    record: Record,
    most_steps: u64,
    without_steps: bool,
    checks: Option<Box<Checks>>,
    threads: Vec<(Body, Option<(u32, u32)>)>,
}

impl Simulation {
    /// A run on `machine`.
    #[must_use]
    pub fn new(machine: &Machine) -> Self {
        Self {
            machine: machine.clone(),
            seed: 0,
            end_ns: u64::MAX / PS_PER_NS,
            chaos: Chaos::default(),
            record: Record::default(),
            most_steps: u64::MAX,
            without_steps: false,
            checks: None,
            threads: Vec::new(),
        }
    }

    /// Where its random numbers come from. 0 unless told.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// When [`here::is_over`](crate::here::is_over) becomes true, ns.
    #[must_use]
    pub fn until(mut self, end_ns: u64) -> Self {
        self.end_ns = end_ns;
        self
    }

    /// What goes wrong.
    #[must_use]
    pub fn chaos(mut self, chaos: Chaos) -> Self {
        self.chaos = chaos;
        self
    }

    /// What is recorded.
    #[must_use]
    pub fn record(mut self, record: Record) -> Self {
        self.record = record;
        self
    }

    /// A run that takes more steps than this has failed.
    #[must_use]
    pub fn most_steps(mut self, steps: u64) -> Self {
        self.most_steps = steps;
        self
    }

    /// The kernel has no restartable sequences: a release is a compare-exchange.
    #[must_use]
    pub fn without_steps(mut self) -> Self {
        self.without_steps = true;
        self
    }

    /// The run checks a lock.
    #[must_use]
    pub fn checks(mut self, checks: Checks) -> Self {
        self.checks = Some(Box::new(checks));
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

    /// Runs until every thread has ended, or something is wrong: then [`Outcome::failure`] says what.
    ///
    /// # Errors
    ///
    /// No memory for the threads' stacks.
    pub fn run(self) -> std::io::Result<Outcome> {
        let end = self.end_ns.saturating_mul(PS_PER_NS);
        let trace = Trace::new(self.record);
        let mut world = World::new(&self.machine, self.seed, end, self.chaos, trace, self.most_steps);
        world.shared.without_steps = self.without_steps;
        world.checks = self.checks;
        set_faults(&world);
        run(world, self.threads, finish)
    }
}
