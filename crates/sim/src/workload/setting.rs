//! What is to be simulated, and the result.

use serde::{Deserialize, Serialize};

use super::meter::Place;
use super::{Workload, workloads};
use crate::chaos::Chaos;
use crate::machine::Machine;
use crate::report::Outcome;
use crate::trace::Record;

/// A run: everything that its result depends on.
#[derive(Clone, Debug)]
pub struct Setting {
    /// On which machine.
    pub machine: Machine,
    /// Which lock: a name of [`locks`](crate::locks::locks).
    pub lock: String,
    /// Which workload: a name of [`workloads`].
    pub workload: String,
    /// How many threads.
    pub threads: u32,
    /// Where random numbers come from.
    pub seed: u64,
    /// For how long, ns of virtual time.
    pub for_ns: u64,
    /// What goes wrong.
    pub chaos: Chaos,
    /// What is recorded.
    pub record: Record,
    /// More steps than this are a failure.
    pub most_steps: u64,
}

impl Setting {
    /// A run of 20 ms with seed 0, without faults, of which nothing is recorded.
    #[must_use]
    pub fn new(machine: Machine, lock: &str, workload: &str, threads: u32) -> Self {
        Self {
            machine,
            lock: lock.to_owned(),
            workload: workload.to_owned(),
            threads,
            seed: 0,
            for_ns: 20_000_000,
            chaos: Chaos::default(),
            record: Record::default(),
            most_steps: u64::MAX,
        }
    }

    /// Runs it.
    ///
    /// # Errors
    ///
    /// There is no such workload or lock, the lock does not fit the workload, or there is no memory.
    pub fn run(&self) -> Result<Report, SettingError> {
        let unknown = || SettingError::UnknownWorkload { workload: self.workload.clone() };
        let workload =
            workloads().iter().find(|workload| workload.name == self.workload).ok_or_else(unknown)?;
        self.run_as(workload)
    }

    /// Runs it with this workload.
    ///
    /// # Errors
    ///
    /// As in [`Setting::run`].
    pub fn run_as(&self, workload: &Workload) -> Result<Report, SettingError> {
        if !crate::locks::locks().iter().any(|lock| lock.name == self.lock) {
            return Err(SettingError::UnknownLock { lock: self.lock.clone() });
        }
        if self.threads == 0 {
            return Err(SettingError::NoThreads);
        }
        let mut plan = super::Plan::new(self, workload.mode);
        (workload.build)(&mut plan)?;
        let (outcome, places, done) = plan.run()?;
        Ok(Report {
            machine: self.machine.name.clone(),
            lock: self.lock.clone(),
            workload: self.workload.clone(),
            threads: self.threads,
            seed: self.seed,
            operations: done,
            places,
            outcome,
        })
    }
}

/// Why nothing was simulated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingError {
    /// See the message.
    #[error("there is no workload \"{workload}\": `spinpark sim list` shows them")]
    UnknownWorkload {
        /// Its name.
        workload: String,
    },
    /// See the message.
    #[error("there is no lock \"{lock}\": `spinpark sim list` shows them")]
    UnknownLock {
        /// Its name.
        lock: String,
    },
    /// See the message.
    #[error(
        "{lock} is no {kind}, which the workload {workload} needs: `spinpark sim list` shows which locks are one"
    )]
    WrongKind {
        /// The lock.
        lock: String,
        /// What it would have to be.
        kind: &'static str,
        /// The workload.
        workload: String,
    },
    /// See the message.
    #[error("a run needs at least one thread")]
    NoThreads,
    /// See the message.
    #[error("{0}")]
    Unfit(String),
    /// See the message.
    #[error("no memory for the stacks of the simulated threads: {0}")]
    Memory(#[from] std::io::Error),
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The machine.
    pub machine: String,
    /// The lock.
    pub lock: String,
    /// The workload.
    pub workload: String,
    /// The threads.
    pub threads: u32,
    /// The seed.
    pub seed: u64,
    /// Operations of each worker.
    pub operations: Vec<u64>,
    /// What happened at each lock.
    pub places: Vec<Place>,
    /// What the machine counted.
    pub outcome: Outcome,
}

impl Report {
    /// Operations of all workers.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.operations.iter().sum()
    }

    /// Operations per second of virtual time.
    #[must_use]
    pub fn throughput(&self) -> f64 {
        self.total() as f64 / (self.outcome.elapsed_ns.max(1) as f64 / 1e9)
    }

    /// Acquisitions at all places.
    #[must_use]
    pub fn acquisitions(&self) -> u64 {
        self.places.iter().map(|place| place.acquisitions).sum()
    }

    /// Cache lines moved for each acquisition.
    #[must_use]
    pub fn moves_per_acquisition(&self) -> f64 {
        self.outcome.counts.moves() as f64 / self.acquisitions().max(1) as f64
    }
}
