//! Running a setting: its names are looked up, its workload is set up.

use spinpark_measure::nearest::did_you_mean;

use super::plan::{Plan, Ran};
use super::replay::REPLAY;
use super::setting::{MOST_THREADS, Report, Setting, SettingError};
use super::shapes::{of_numbers, wrong_numbers};
use super::{Workload, workloads};
use crate::engine::stop::is_stopped;
use crate::locks::locks;
use crate::machine::Machine;

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
        let unknown = || SettingError::UnknownWorkload {
            workload: self.workload.clone(),
            hint: other_kind(&self.workload).or_else(|| wrong_numbers(&self.workload)).unwrap_or_else(|| {
                did_you_mean(&self.workload, workloads().iter().map(|workload| workload.name))
            }),
        };
        let listed = workloads().iter().find(|workload| workload.name == self.workload);
        listed.or_else(|| of_numbers(&self.workload)).ok_or_else(unknown)
    }

    fn plan(&self, workload: &Workload) -> Result<Plan<'_>, SettingError> {
        let names = || locks().iter().map(|lock| lock.name);
        if !names().any(|name| name == self.lock) {
            let other = elsewhere(&self.lock).map(str::to_owned).or_else(|| other_kind(&self.lock));
            let hint = other.unwrap_or_else(|| did_you_mean(&self.lock, names()));
            return Err(SettingError::UnknownLock { lock: self.lock.clone(), hint });
        }
        if self.threads == 0 {
            return Err(SettingError::NoThreads);
        }
        if self.threads > MOST_THREADS {
            return Err(SettingError::TooManyThreads { threads: self.threads });
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
        ": the simulator runs ours and the classics only\n`classic-mutex-2003` works as glibc's normal mutex does; `spinpark bench locks` measures all others",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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
