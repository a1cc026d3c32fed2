//! Workloads: what simulated threads do with a lock. Those that `spinpark-lab bench` and `spinpark-lab documents`
//! also have, have the same names here. A [`Setting`] is run, and gives a [`Report`].

mod address_space;
mod meter;
mod plan;
mod replay;
mod sections;
mod system_calls;

use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};
use spinpark_measure::text::nearest::did_you_mean;

pub use self::meter::{Condvar, Gap, Histogram, InTime, Mutex, Place, RwLock};
use self::plan::Ran;
pub use self::plan::{KernelTuning, Mode, Plan, Worker};
use self::replay::REPLAY;
pub use self::replay::{Inner, Lengths, Part, Replay, Replayed, Use};
use self::sections::{of_numbers, wrong_numbers};
use self::system_calls::{of_number, wrong_number};
use crate::engine::is_stopped;
use crate::locks;
use crate::locks::{is_lock, locks, wrong_delays};
use crate::machine::Machine;
use crate::outcome::SimulationResult;
use crate::world::Record;
use crate::world::chaos::Chaos;

/// A workload.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Its name.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// Where its locks live.
    pub mode: Mode,
    /// Sets up its locks and threads.
    pub build: Build,
}

/// Sets up a workload's locks and threads.
type Build = fn(&mut Plan<'_>) -> Result<(), SettingError>;

impl Workload {
    /// One whose locks are in user space.
    const fn user(name: &'static str, about: &'static str, build: Build) -> Self {
        Self { name, about, mode: Mode::User, build }
    }

    /// One whose locks are the kernel's.
    const fn kernel(name: &'static str, about: &'static str, build: Build) -> Self {
        Self { name, about, mode: Mode::Kernel, build }
    }

    /// The kind of lock that it needs, if the chosen one decides at all.
    #[must_use]
    pub fn needs(&self) -> Option<&'static str> {
        /// A lock that is nothing but a condition variable.
        const CONDVAR_ONLY: &str = "classic-condvar-orig";
        // Two threads are enough for every workload, and not too many for any.
        let setting = Setting::new(Machine::plain(2), CONDVAR_ONLY, self.name, 2);
        match (self.build)(&mut Plan::new(&setting, self.mode)) {
            Ok(()) => Some(locks::CONDVAR),
            Err(SettingError::WrongKind { kind, .. }) => Some(kind),
            Err(_) => None,
        }
    }
}

/// All workloads, in the order in which they are shown.
#[must_use]
pub fn workloads() -> &'static [Workload] {
    static ALL: LazyLock<Vec<Workload>> = LazyLock::new(|| {
        [
            sections::SHAPES,
            &sections::planes(),
            sections::OTHER_SHAPES,
            system_calls::WORKLOADS,
            address_space::WORKLOADS,
            sections::ALTERNATIONS,
        ]
        .concat()
    });
    &ALL
}

/// The most threads of a run: each has a stack, and the kernel limits the mappings of a process.
pub const MOST_THREADS: u32 = 8192;

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
    /// There is no workload, lock or table of that name.
    #[error("there is no {kind} `{name}`{hint}\n`spinpark-lab sim list` shows them all")]
    Unknown {
        /// What it would have to be.
        kind: &'static str,
        /// The name.
        name: String,
        /// What may have been meant.
        hint: String,
    },
    /// See the message.
    #[error(
        "{lock} is no {kind}, which the workload {workload} needs\n`spinpark-lab sim list` shows which locks are one"
    )]
    WrongKind {
        /// The lock.
        lock: String,
        /// What it would have to be.
        kind: &'static str,
        /// The workload.
        workload: String,
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
    pub outcome: SimulationResult,
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

impl Setting {
    /// Runs it.
    ///
    /// # Errors
    ///
    /// There is no such workload or lock, the lock does not fit the workload, or there is no memory.
    pub fn run(&self) -> Result<Report, SettingError> {
        self.run_as(self.known_workload()?)
    }

    /// Finds out whether it could be run, at little cost.
    ///
    /// # Errors
    ///
    /// As in [`Setting::run`].
    pub fn check(&self) -> Result<(), SettingError> {
        self.plan(self.known_workload()?).map(drop)
    }

    fn known_workload(&self) -> Result<&'static Workload, SettingError> {
        if self.replay.is_some() {
            return Ok(&REPLAY);
        }
        let unknown = || SettingError::Unknown {
            kind: "workload",
            name: self.workload.clone(),
            hint: other_kind(&self.workload)
                .or_else(|| wrong_numbers(&self.workload))
                .or_else(|| wrong_number(&self.workload))
                .unwrap_or_else(|| {
                    did_you_mean(&self.workload, workloads().iter().map(|workload| workload.name))
                }),
        };
        let listed = workloads().iter().find(|workload| workload.name == self.workload);
        listed
            .or_else(|| of_numbers(&self.workload))
            .or_else(|| of_number(&self.workload))
            .ok_or_else(unknown)
    }

    fn plan(&self, workload: &Workload) -> Result<Plan<'_>, SettingError> {
        if !is_lock(&self.lock) {
            let other = elsewhere(&self.lock).map(str::to_owned).or_else(|| other_kind(&self.lock));
            let other = other.or_else(|| wrong_delays(&self.lock));
            let names = locks().iter().map(|lock| lock.name);
            let hint = other.unwrap_or_else(|| did_you_mean(&self.lock, names));
            return Err(SettingError::Unknown { kind: "lock", name: self.lock.clone(), hint });
        }
        if self.threads == 0 {
            return Err(SettingError::Unfit(String::from("a run needs at least one thread")));
        }
        if self.threads > MOST_THREADS {
            let what = "threads are more than a simulated machine can have";
            return Err(SettingError::Unfit(format!("{} {what}: {MOST_THREADS} at most", self.threads)));
        }
        let mut plan = Plan::new(self, workload.mode);
        (workload.build)(&mut plan)?;
        Ok(plan)
    }

    /// Runs it with this workload.
    ///
    /// # Errors
    ///
    /// As in [`Setting::run`].
    pub fn run_as(&self, workload: &Workload) -> Result<Report, SettingError> {
        if is_stopped() {
            return Err(SettingError::Stopped);
        }
        let Ran { outcome, places, done, in_time, spans } = self.plan(workload)?.run()?;
        if is_stopped() {
            return Err(SettingError::Stopped);
        }
        Ok(Report {
            machine: self.machine.name.clone(),
            lock: self.lock.clone(),
            workload: self.workload.clone(),
            threads: self.threads,
            seed: self.seed,
            for_ns: self.for_ns,
            operations: done,
            in_time,
            spans,
            places,
            outcome,
        })
    }
}

/// What to say if the name of one thing is given for another.
fn other_kind(name: &str) -> Option<String> {
    let is_lock = || locks().iter().any(|lock| lock.name == name);
    let is_workload = || workloads().iter().any(|workload| workload.name == name);
    let (kind, option) = if is_lock() {
        ("lock", "--locks")
    } else if is_workload() {
        ("workload", "--workload")
    } else {
        Machine::choose(name).ok()?;
        ("machine", "--machine")
    };
    Some(format!(": that is a {kind}: {option} {name}"))
}

/// What to say if a lock is asked for that is not written over the platform traits, so that the simulator
/// cannot run it.
fn elsewhere(lock: &str) -> Option<&'static str> {
    /// How names of such locks begin.
    const OTHERS: [&str; 8] =
        ["glibc", "pthread", "nptl", "musl", "libc", "std", "parking_lot", "parking-lot"];
    let lock = lock.to_ascii_lowercase();
    OTHERS.iter().any(|other| lock.starts_with(other)).then_some(
        ": the simulator runs ours and the classics only\n`classic-mutex-2003` works as glibc's normal mutex does; `spinpark-lab bench locks` measures all others",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_workloads_need() {
        let needs = |name: &str| workloads().iter().find(|known| known.name == name).unwrap().needs();
        assert_eq!(needs("saturated"), Some(locks::MUTEX));
        assert_eq!(needs("mixed-10"), Some(locks::RWLOCK));
        assert_eq!(needs("condvar-ping-pong"), Some(locks::CONDVAR));
    }

    #[test]
    fn names_of_other_things_are_told() {
        let said = |lock: &str, workload: &str| {
            Setting::new(Machine::plain(2), lock, workload, 2).check().unwrap_err().to_string()
        };
        assert!(said("plain-8", "long").contains("that is a machine: --machine plain-8"));
        assert!(said("mixed-10", "long").contains("that is a workload: --workload mixed-10"));
        assert!(said("spinpark", "classic-tas").contains("that is a lock: --locks classic-tas"));
        assert!(said("sinpark", "long").contains("did you mean `spinpark`?"));
    }
}
