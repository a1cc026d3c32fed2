//! Workloads: what simulated threads do with a lock. Those that `spinpark bench` and `spinpark documents`
//! also have, have the same names here.

mod condvar;
mod data;
mod gap;
mod histogram;
mod kernel;
mod meter;
mod mm;
mod plan;
mod recorded;
mod replay;
mod run;
mod setting;
mod shapes;

use std::sync::LazyLock;

use crate::locks;
use crate::machine::Machine;
pub use gap::Gap;
pub use histogram::Histogram;
pub use meter::{Condvar, InTime, Mutex, Place, RwLock};
pub use plan::{KernelTuning, Mode, Plan, Worker};
pub use recorded::{Inner, Lengths, Part, Replay, Replayed, Use};
pub use setting::{MOST_THREADS, Report, Setting, SettingError};

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
    pub build: fn(&mut Plan<'_>) -> Result<(), SettingError>,
}

impl Workload {
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
    static ALL: LazyLock<Vec<Workload>> =
        LazyLock::new(|| [shapes::SHAPES, kernel::WORKLOADS, mm::WORKLOADS, condvar::WORKLOADS].concat());
    &ALL
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
}
