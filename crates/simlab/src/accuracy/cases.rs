//! What is compared: shapes and locks that both sides have.

use serde::Serialize;
use spinpark_lockbench::locks::definitions::Definitions;
use spinpark_lockbench::locks::load::{Load, PingPong, Placement, Primitive};
use spinpark_measure::units::counted;

/// The shapes.
pub const SHAPES: [&str; 9] = [
    "pair-threaded",
    "saturated",
    "hot-lock",
    "five-lines",
    "medium",
    "long",
    "random-32",
    "mixed-10",
    "condvar-ping-pong",
];

/// Threads and CPUs.
const PLACES: [(usize, usize); 4] = [(1, 1), (2, 1), (2, 2), (4, 2)];

const MUTEXES: [&str; 4] = ["spinpark", "classic-mutex-2003", "classic-mutex-fixed", "classic-tas-backoff"];

const RW_LOCKS: [&str; 4] = ["spinpark", "classic-rwsem-3.12", "classic-rwsem-nospin", "classic-rwsem-full"];

const CONDVARS: [&str; 4] =
    ["spinpark", "classic-condvar-orig", "classic-condvar-requeue", "classic-condvar-wake-op"];

/// One lock under one load, in so many threads on so many CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Case {
    /// The name of the shape, on both sides.
    pub shape: String,
    /// The lock, which has one name on both sides.
    pub lock: String,
    /// The family that is the same lock here.
    pub family: String,
    /// How many threads.
    pub threads: usize,
    /// How many CPUs they share.
    pub cpus: usize,
    /// What they do.
    #[serde(skip)]
    pub load: Load,
}

impl Case {
    /// Whether the bounds are on it: one thread on one CPU, or two on two. Those with more threads than CPUs
    /// are shown besides; there the scheduler decides, too.
    #[must_use]
    pub fn is_bound(&self) -> bool {
        self.threads == self.cpus
    }

    /// `hot-lock, 2 threads on 1 CPU, spinpark`.
    #[must_use]
    pub fn words(&self) -> String {
        let Self { shape, lock, threads, cpus, .. } = self;
        format!("{shape}, {} on {}, {lock}", counted(*threads, "thread"), counted(*cpus, "CPU"))
    }
}

/// All that can be compared with so many CPUs.
///
/// # Errors
///
/// If the definitions lack a shape.
pub fn cases(definitions: &Definitions, cpus: usize) -> Result<Vec<Case>, String> {
    let mut cases = Vec::new();
    for name in SHAPES {
        let shape = definitions.workload(name)?;
        let locks = match shape.load.needs() {
            Primitive::RwLock => RW_LOCKS,
            Primitive::Condvar => CONDVARS,
            _ => MUTEXES,
        };
        for (threads, needed) in PLACES {
            if needed > cpus || !fits(&shape.load, threads) {
                continue;
            }
            cases.extend(locks.map(|lock| Case {
                shape: name.to_owned(),
                lock: lock.to_owned(),
                family: lock.to_owned(),
                threads,
                cpus: needed,
                load: placed(&shape.load),
            }));
        }
    }
    Ok(cases)
}

fn fits(load: &Load, threads: usize) -> bool {
    load.check(threads).is_ok()
}

/// The whole process is bound to its CPUs; within them, the kernel places the threads.
fn placed(load: &Load) -> Load {
    match load {
        Load::PingPong(PingPong { signal, .. }) => {
            Load::PingPong(PingPong { signal: *signal, cpus: Placement::Any })
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use spinpark_sim::machine::Machine;
    use spinpark_sim::workload::Setting;

    use super::*;
    use spinpark_lockbench::locks::adapters::{ADAPTERS, by_name};

    #[test]
    fn both_sides_have_every_case() {
        let cases = cases(&Definitions::built_in().unwrap(), 2).unwrap();
        assert_eq!(cases.len(), 4 * (1 + 6 * 4 + 4 + 2));
        for cpus in [1, 2] {
            // Eight shapes, four locks.
            let bound = cases.iter().filter(|case| case.is_bound() && case.cpus == cpus);
            assert_eq!(bound.count(), 8 * 4);
        }
        for case in cases {
            let family = by_name(&ADAPTERS, &case.family).unwrap();
            assert!(family.run(case.load.needs()).is_some(), "{}", case.words());
            let machine = Machine::plain(2).limited_to(case.cpus as u32);
            let setting = Setting::new(machine, &case.lock, &case.shape, case.threads as u32);
            setting.check().unwrap_or_else(|error| panic!("{}: {error}", case.words()));
        }
    }

    #[test]
    fn one_cpu_has_fewer_cases() {
        let cases = cases(&Definitions::built_in().unwrap(), 1).unwrap();
        assert!(cases.iter().all(|case| case.cpus == 1) && !cases.is_empty());
    }
}
