//! Workloads: what simulated threads do with a lock. Those that `spinpark bench` has too have the same names here.

mod histogram;
mod meter;
mod plan;
mod setting;
mod shapes;

pub use histogram::Histogram;
pub use meter::{Condvar, Mutex, Place, RwLock};
pub use plan::{KernelTuning, Mode, Plan, Worker};
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

/// All workloads, in the order in which they are shown.
#[must_use]
pub fn workloads() -> &'static [Workload] {
    shapes::SHAPES
}
