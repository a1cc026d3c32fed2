//! How often the faults of a machine were applied in a run.
//!
//! A mutant's fault may match no operation any more, because the lock has changed: then it breaks nothing. Whether a
//! run of it fails says something about the mutant only if the fault was applied in that run.

use std::cell::Cell;
use std::fmt;

use super::{Fault, Faults, MOST_FAULTS};

thread_local! {
    /// Of the run on this OS thread.
    static RUN: Cell<Applied> = const { Cell::new(Applied { faults: Faults::NONE, times: [0; MOST_FAULTS] }) };
}

/// The faults of a machine, and how often each was applied: an operation that it changes was made.
#[derive(Clone, Copy, Debug, Default)]
pub struct Applied {
    faults: Faults,
    times: [u64; MOST_FAULTS],
}

impl Applied {
    /// A run begins on this OS thread, on a machine with `faults`.
    pub fn begin(faults: Faults) {
        RUN.set(Self { faults, ..Self::default() });
    }

    /// What has been applied in the run on this OS thread, or in the last one.
    #[must_use]
    pub fn in_run() -> Self {
        RUN.get()
    }

    /// The fault at `place` is applied.
    pub(super) fn note(place: usize) {
        let mut run = RUN.get();
        run.times[place] += 1;
        RUN.set(run);
    }

    /// Each fault, with its number.
    fn each(&self) -> impl Iterator<Item = (Fault, u64)> {
        self.faults.0.into_iter().zip(self.times).filter(|(fault, _)| !matches!(fault, Fault::None))
    }

    /// Whether each fault was applied; so it is if there is none.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.each().all(|(_, times)| times > 0)
    }

    /// Whether the machine has any fault.
    #[must_use]
    pub fn has_faults(&self) -> bool {
        self.faults.are_there()
    }

    /// Whether it has faults, and none was applied: the run was one of a machine without them.
    #[must_use]
    pub fn is_of_no_mutant(&self) -> bool {
        self.has_faults() && self.times == [0; MOST_FAULTS]
    }

    /// Those of this run and of `other`, on a machine with the same faults.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let times = std::array::from_fn(|place| self.times[place] + other.times[place]);
        Self { faults: other.faults, times }
    }
}

impl fmt::Display for Applied {
    /// As `NoWrite applied 3 times, NoLook applied 0 times`; nothing on a machine without faults.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (fault, times)) in self.each().enumerate() {
            let separator = if place == 0 { "" } else { ", " };
            let fault = format!("{fault:?}");
            let name = fault.split('(').next().unwrap_or_default();
            write!(f, "{separator}{name} applied {times} times")?;
        }
        Ok(())
    }
}
