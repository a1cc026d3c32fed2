//! The tables of the four documents that need a bigger machine: published beside simulated.

pub(crate) mod planes;
mod race;
pub(crate) mod readers;
pub(crate) mod runs;
pub(crate) mod scale;

use serde::{Deserialize, Serialize};

pub use spinpark_sim::table::{Bins, Bound, Figure, Table, Unit};
use spinpark_sim::workload::SettingError;

/// How much is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Effort {
    /// Seconds: for a first look, and for tests. Bounds may be missed by chance.
    Quick,
    /// Minutes.
    Full,
}

/// Progress: called with what is done, and with all that is to be done as far as that is known.
pub type Progress<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// A table that can be simulated.
#[derive(Clone, Copy)]
pub struct TableSpec {
    /// By which it is chosen: `001-v`, for example.
    pub name: &'static str,
    /// What it is about.
    pub about: &'static str,
    /// CPU time that it takes on the machine `this-2` with [`Effort::Full`], seconds: for estimates of the
    /// time left.
    pub seconds: u32,
    /// Simulates it.
    pub run: fn(Effort, Progress<'_>) -> Result<Table, SettingError>,
}
