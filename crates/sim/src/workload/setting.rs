//! What is to be simulated, and the result.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::meter::Place;
use super::recorded::Replay;
use crate::chaos::Chaos;
use crate::machine::Machine;
use crate::report::Outcome;
use crate::world::Record;

/// So many threads a run has at most: each has a stack, and the kernel gives a process only so many mappings.
pub const MOST_THREADS: u32 = 8192;

/// A run: everything that its result depends on.
#[derive(Clone, Debug)]
pub struct Setting {
    /// On which machine.
    pub machine: Machine,
    /// Which lock: a name of [`locks`](crate::locks::locks).
    pub lock: String,
    /// Which workload: a name of [`workloads`](super::workloads).
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
    /// What the workload `replay` does.
    pub replay: Option<Arc<Replay>>,
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
            replay: None,
        }
    }
}

/// Why nothing was simulated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingError {
    /// See the message.
    #[error("there is no workload `{workload}`{hint}\n`spinpark sim list` shows them all")]
    UnknownWorkload {
        /// Its name.
        workload: String,
        /// What may have been meant.
        hint: String,
    },
    /// See the message.
    #[error("there is no table `{table}`{hint}\n`spinpark sim list` shows them all")]
    UnknownTable {
        /// Its name.
        table: String,
        /// What may have been meant.
        hint: String,
    },
    /// See the message.
    #[error("there is no lock `{lock}`{hint}\n`spinpark sim list` shows them all")]
    UnknownLock {
        /// Its name.
        lock: String,
        /// What may have been meant.
        hint: String,
    },
    /// See the message.
    #[error(
        "{lock} is no {kind}, which the workload {workload} needs\n`spinpark sim list` shows which locks are one"
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
    #[error("{threads} threads are more than a simulated machine can have: {MOST_THREADS} at most")]
    TooManyThreads {
        /// How many were asked for.
        threads: u32,
    },
    /// See [`stop`](crate::stop).
    #[error("stopped before its end")]
    Stopped,
    /// See the message.
    #[error("{0}")]
    Unfit(String),
    /// See the message.
    #[error(
        "no memory for the stacks of the simulated threads: {0}\nThe kernel's limits are vm.max_map_count (each stack takes two \
         mappings) and `ulimit -v`; fewer threads fit"
    )]
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
    /// The run's time, ns: workers that work in rounds begin none after it.
    pub for_ns: u64,
    /// Operations of each worker.
    pub operations: Vec<u64>,
    /// Those of all workers that ended within the run's time.
    pub in_time: u64,
    /// Those that ended in each span of the run's time; empty unless [`Record::span_ns`] asks for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spans: Vec<u64>,
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

    /// Operations per second of virtual time, as long as all threads work: what comes after the run's time,
    /// while one thread after the other ends, does not count.
    #[must_use]
    pub fn throughput(&self) -> f64 {
        let time = self.outcome.elapsed_ns.min(self.for_ns).max(1);
        self.in_time as f64 / (time as f64 / 1e9)
    }

    /// CPU time of all threads, polling and all, within the run's time, ns: what its operations in time cost.
    #[must_use]
    pub fn on_cpu_ns(&self) -> u64 {
        self.outcome.threads.iter().map(|thread| thread.on_cpu_ns).sum()
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
