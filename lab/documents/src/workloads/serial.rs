//! One mutex around what tasks do, that shows whether it excludes.

use std::cell::UnsafeCell;
use std::fmt;

use serde::{Deserialize, Serialize};
use spinpark_lockbench::locks::definitions::Implementation;
use spinpark_lockbench::locks::primitives::{AnyMutex, MakeMutex};

use super::experiment::Configuration;
use super::job::{JobError, expect};

/// What a mutex is held for, in workloads that do something between two calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sections {
    None,
    /// One section from before the first call to after the second.
    Iteration,
    /// A section around each of the two calls.
    Calls,
}

impl Sections {
    /// The configurations for these sections with these locks; `make` makes one without a lock. `plain` has
    /// none, `mutex X` is one section, `calls X` is two.
    pub fn configurations(
        sections: &[Self],
        locks: &[Implementation],
        make: impl Fn(String, Self) -> Configuration,
    ) -> Vec<Configuration> {
        let mut configurations = Vec::new();
        for &section in sections {
            let word = match section {
                Self::None => {
                    configurations.push(make(String::from("plain"), section));
                    continue;
                }
                Self::Iteration => "mutex",
                Self::Calls => "calls",
            };
            let with_lock =
                |lock: &Implementation| make(format!("{word} {}", lock.name), section).with_lock(lock);
            configurations.extend(locks.iter().map(with_lock));
        }
        configurations
    }

    /// How many sections an iteration has.
    pub fn per_iteration(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Iteration => 1,
            Self::Calls => 2,
        }
    }
}

/// A mutex, or none: then sections run as they come.
pub struct Serial {
    mutex: Option<Box<dyn AnyMutex>>,
    /// Sections so far, counted without atomics: two at a time would lose some.
    sections: UnsafeCell<u64>,
}

// SAFETY: `sections` is touched under the mutex, and by `check`, which has the only reference.
unsafe impl Sync for Serial {}

impl fmt::Debug for Serial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serial").field("has_mutex", &self.mutex.is_some()).finish_non_exhaustive()
    }
}

impl Serial {
    /// With a mutex that `make` makes.
    pub fn new(make: Option<MakeMutex>) -> Self {
        Self { mutex: make.map(|make| make()), sections: UnsafeCell::new(0) }
    }

    /// Runs `section`, under the mutex if there is one.
    #[inline]
    pub fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        let Some(mutex) = &self.mutex else { return section() };
        let (mut section, mut result) = (Some(section), None);
        mutex.with(&mut || {
            // SAFETY: the mutex is held, so there is no other reference.
            unsafe { *self.sections.get() += 1 };
            result = section.take().map(|section| section());
        });
        // The mutex ran the section, or never came back.
        result.unwrap_or_else(|| std::process::abort())
    }

    /// Checks that as many sections ran as tasks say.
    pub fn check(&mut self, sections: u64) -> Result<(), JobError> {
        let found = *self.sections.get_mut();
        expect(self.mutex.is_none() || found == sections, || {
            format!("{sections} sections ran but {found} were counted: the lock under test does not exclude")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_counted() {
        let mut serial = Serial::new(spinpark_lockbench::locks::adapters::ADAPTERS[0].any_mutex);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|_| serial.with(|| ())));
            }
        });
        serial.check(4000).unwrap();
        assert!(serial.check(4001).unwrap_err().to_string().contains("does not exclude"));
    }

    #[test]
    fn without_a_mutex_nothing_is_counted() {
        let mut serial = Serial::new(None);
        assert_eq!(serial.with(|| 7), 7);
        serial.check(99).unwrap();
    }
}
