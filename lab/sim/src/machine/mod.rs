//! The machine that is simulated: how many CPUs it has, how far apart they are, and what everything costs.
//!
//! A machine is data: a TOML file, in which each figure stands with its source. Costs are in nanoseconds; the
//! engine counts in picoseconds.
//!
//! | question | where |
//! |---|---|
//! | which machines are there, and how does one get one? | [`machines`], [`Machine::load`] |
//! | what may stand in a file? | [`keys`], [`sheet`], [`figure`] |
//! | where does a figure come from? | [`Machine::describe`] |
//! | where is a CPU, and how far is it from another? | [`topology`] |

mod assemble;
mod catalogue;
pub mod describe;
mod error;
pub mod figure;
pub mod keys;
pub mod sheet;
pub mod topology;

use serde::{Deserialize, Serialize};

pub use self::catalogue::machines;
pub use self::describe::Description;
pub use self::error::MachineError;
pub use self::keys::{Cpu, DeepIdle, Kernel, Memory, Scheduler};
pub use self::topology::{Distance, Place};

/// A machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The name by which it is chosen.
    pub name: String,
    /// One line about it.
    pub about: String,
    /// Clock rate, GHz: for figures that are given in cycles.
    pub ghz: f64,
    /// How many CPUs there are, and how they lie.
    pub shape: Shape,
    /// What memory costs.
    pub memory: Memory,
    /// What the CPU's own steps cost.
    pub cpu: Cpu,
    /// What the kernel costs.
    pub kernel: Kernel,
    /// How the kernel gives out the CPUs.
    pub scheduler: Scheduler,
}

/// How many CPUs there are. They are numbered as follows: hardware thread 0 of each core, socket by socket,
/// then hardware thread 1 of each core, and so on (as Linux mostly does).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// Sockets.
    pub sockets: u32,
    /// Last-level caches in a socket (AMD: one for each CCX).
    pub caches: u32,
    /// Cores that share a last-level cache.
    pub cores: u32,
    /// Hardware threads of a core.
    pub threads: u32,
    /// For each pair of sockets, how many links lie between them; 0 on the diagonal.
    pub hops: Vec<Vec<u32>>,
    /// How many of the CPUs may be used, from the first on. All, unless [`Machine::limited_to`] said
    /// otherwise.
    pub usable: u32,
    /// How many CPUs the quota of the process comes to (`cpu.max`, with a period of 100 ms); none: there is
    /// no quota.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<f64>,
}
