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

/// What it costs to get at a cache line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// A load that hits the core's own cache, ns.
    pub hit_ns: f64,
    /// An atomic read-modify-write on a line that the core owns, ns.
    pub rmw_ns: f64,
    /// A load of a line that the last-level cache holds, and no core has changed, ns.
    pub shared_ns: f64,
    /// For how long such a load keeps the last-level cache from serving the next one of the same line, ns.
    pub shared_busy_ns: f64,
    /// A line that another core behind the same last-level cache has changed, ns.
    pub near_ns: f64,
    /// The same behind another last-level cache of the same socket, ns.
    pub socket_ns: f64,
    /// The same one, two, … links away, ns. A distance beyond the last entry costs as much as that.
    pub hop_ns: Vec<f64>,
    /// A line that no cache holds, ns.
    pub dram_ns: f64,
    /// What a write adds for each further last-level cache that has to give up its copy, ns.
    pub invalidate_ns: f64,
    /// Which part of a transfer's time the line is busy for others (0 to 1): transfers of one line come one
    /// after another.
    pub serial: f64,
    /// How much likelier a waiting request is to be served next than one that is one level of distance
    /// farther from where the line is (1: all the same). Requests for one line are not served first come,
    /// first served.
    pub nearness: f64,
    /// Each transfer takes between 1 − `spread` and 1 + `spread` of its time, all equally likely. What is
    /// always the same lets threads fall into a rhythm in which they never meet.
    pub spread: f64,
}

/// What the CPU's own steps cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// `PAUSE`, or what stands for it, ns.
    pub pause_ns: f64,
    /// The few instructions between two memory accesses of a lock, ns.
    pub step_ns: f64,
    /// How much of the work that follows the core does, at most, while an atomic operation or a load waits
    /// for memory, ns: what its reorder buffer holds. 0: it works in order.
    pub window_ns: f64,
    /// A step of the workloads' work, ns: a chain of six instructions, as a step of a xorshift generator is.
    pub work_ns: f64,
    /// A full fence, ns.
    pub fence_ns: f64,
    /// How many stores a core has under way at most while it goes on: the entries of its store buffer. 0: a
    /// thread waits for each store.
    pub stores: u32,
    /// How fast a hardware thread is while its sibling computes too, as a part of its full speed.
    pub smt: f64,
}

/// What the kernel costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kernel {
    /// Entering and leaving the kernel, ns.
    pub syscall_ns: f64,
    /// A futex call's own work, without its bucket's lock, ns.
    pub futex_ns: f64,
    /// Hash buckets for futexes (a power of two).
    pub futex_buckets: u32,
    /// What it takes a waker to make one thread runnable, ns.
    pub wake_ns: f64,
    /// What it adds if that thread is to run on another CPU that is idle: the interrupt is sent, ns.
    pub kick_ns: f64,
    /// What it adds to that if that CPU is on another socket, ns; 0 in files that do not name it.
    #[serde(default)]
    pub kick_socket_ns: f64,
    /// Until an idle CPU that was kicked runs the thread, ns.
    pub idle_exit_ns: f64,
    /// For how long a CPU has to be idle to fall into a deeper sleep, and what leaving that takes, ns.
    pub deep_idle: Option<DeepIdle>,
    /// A switch to another thread, ns.
    pub switch_ns: f64,
    /// Reading the clock, ns.
    pub clock_ns: f64,
    /// Asking for another thread's CPU time, ns.
    pub cpu_clock_ns: f64,
    /// `membarrier`, without the interrupts, ns; and for each CPU that is interrupted, ns.
    pub membarrier_ns: f64,
    /// What an interrupt of another CPU takes that CPU, ns.
    pub interrupt_ns: f64,
    /// How late a timer fires, ns.
    pub timer_slack_ns: f64,
    /// What a thread that moved to another core pays for its caches, ns; and to another socket, ns.
    pub migrate_ns: [f64; 2],
    /// The same for system calls, wake-ups, switches and interrupts.
    pub spread: f64,
}

/// A deeper sleep of an idle CPU.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeepIdle {
    /// After so long, ns.
    pub after_ns: f64,
    /// Leaving it takes so long, ns.
    pub exit_ns: f64,
}

/// How the kernel gives out the CPUs: weighted fair queueing with a virtual run time per thread, as CFS and
/// EEVDF do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scheduler {
    /// Within this time each thread of a CPU runs once, unless they are too many, ns.
    pub latency_ns: f64,
    /// A slice is not shorter, ns.
    pub min_slice_ns: f64,
    /// A woken thread preempts the running one if it is so far behind it, ns. `None`: only at the end of the
    /// slice.
    pub wakeup_ns: Option<f64>,
    /// How much of `latency_ns` a thread that slept is put behind at most (CFS: a half).
    pub sleeper_credit: f64,
    /// Distance of timer ticks: a slice ends at one, ns. 0: at once.
    pub tick_ns: f64,
    /// How often a CPU that has nothing to do, and one that has, look for threads to take from others, ns.
    pub balance_ns: f64,
    /// Whether kernel code is preempted (`CONFIG_PREEMPT`).
    pub preempts_kernel: bool,
}
