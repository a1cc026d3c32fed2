//! The figures of a machine: what each is called here and in a file, what may stand there, and what it means.

use serde::{Deserialize, Serialize};

use super::assemble::Figures;
use super::error::MachineError;
use super::keys::{Key, Kind, key};

/// Declares structs of figures: each field once, with the keys in a file that it is read from.
macro_rules! figures {
    ($(
        $(#[$of_all:meta])*
        $all:ident = $table:literal {
            $(
                $(#[$more:meta])*
                $field:ident: $kind:ty = $($key:ident $may_be:ident $meaning:literal),+;
            )*
        }
    )*) => {
        $(
        $(#[$of_all])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        pub struct $all {
            $(
                $(#[doc = $meaning])+
                #[doc = ""]
                $(#[$more])*
                pub $field: $kind,
            )*
        }

        impl $all {
            pub(super) fn read(figures: &Figures<'_>) -> Result<Self, MachineError> {
                Ok(Self { $($field: figures.read($table, [$(stringify!($key)),+])?),* })
            }
        }
        )*

        /// All figures, in the order in which they are listed. The counts of CPUs stand apart, in the table
        /// `shape`.
        pub const KEYS: &[Key] = &[
            key("clock", "ghz", Kind::Positive, "clock rate, GHz: what a cycle is"),
            $($($(key($table, stringify!($key), Kind::$may_be, $meaning)),+),*),*
        ];
    };
}

figures! {
    /// What it costs to get at a cache line. Times are in ns.
    Memory = "memory" {
        hit_ns: f64 = hit Time "a load that hits the core's own cache";
        rmw_ns: f64 = rmw Time "an atomic read-modify-write of a line that the core owns";
        shared_ns: f64 = shared Time "a load of an unchanged line from the last-level cache";
        shared_busy_ns: f64 =
            shared_busy Time "for how long such a load holds up the next one of the same line";
        near_ns: f64 = near Time "a line changed by another core behind the same last-level cache";
        socket_ns: f64 = socket Time "a line changed behind another last-level cache of the socket";
        /// A distance beyond the last entry costs as much as that.
        hop_ns: Vec<f64> = hop Times "a line changed in a socket one, two, … links away";
        dram_ns: f64 = dram Time "a line that no cache holds";
        invalidate_ns: f64 =
            invalidate Time "what a write adds for each further last-level cache with a copy";
        /// Transfers of one line come one after another.
        serial: f64 = serial Share "the part of a transfer during which the line is busy for others";
        /// Of distance; 1: all the same. Requests for one line are not served first come, first served.
        nearness: f64 = nearness Factor "how much likelier a request is served before one a level farther";
        /// All equally likely. What is always the same lets threads fall into a rhythm in which they never
        /// meet.
        spread: f64 = spread Share "transfers take up to this part more or less than they say";
    }

    /// What the CPU's own steps cost. Times are in ns.
    Cpu = "cpu" {
        pause_ns: f64 = pause Time "PAUSE, or what stands for it";
        step_ns: f64 = step Time "the few instructions between two memory accesses of a lock";
        /// At most, in an atomic operation or a load: what its reorder buffer holds. 0: it works in order.
        window_ns: f64 = window Time "how much work the core does ahead while it waits for memory";
        work_ns: f64 = work Time "a step of workloads' work: a chain of six instructions (xorshift)";
        fence_ns: f64 = fence Time "a full fence";
        /// The entries of its store buffer. 0: a thread waits for each store.
        stores: u32 = stores Count "how many stores wait for their lines while the core goes on";
        /// As a part of its full speed.
        smt: f64 = smt Share "speed of a hardware thread while its sibling computes too";
    }

    /// What the kernel costs. Times are in ns.
    Kernel = "kernel" {
        syscall_ns: f64 = syscall Time "entering and leaving the kernel";
        futex_ns: f64 = futex Time "a futex call's own work, without its bucket's lock";
        futex_buckets: u32 = futex_buckets PowerOfTwo "hash buckets for futexes";
        wake_ns: f64 = wake Time "what it takes a waker to make a thread runnable";
        /// The interrupt is sent.
        kick_ns: f64 = kick Time "what it adds if the thread is to run on another, idle CPU";
        /// 0 in files that do not name it.
        #[serde(default)]
        kick_socket_ns: f64 = kick_socket Time "what it adds to that if that CPU is on another socket";
        idle_exit_ns: f64 = idle_exit Time "until an idle CPU that was kicked runs the thread";
        deep_idle: Option<DeepIdle> =
            deep_idle_after TimeOrNever "for how long a CPU is idle before it sleeps more deeply",
            deep_idle_exit TimeOrNever "until a CPU that sleeps more deeply runs the thread";
        switch_ns: f64 = switch Time "a switch to another thread";
        clock_ns: f64 = clock Time "reading the clock";
        cpu_clock_ns: f64 = cpu_clock Time "asking for another thread's CPU time";
        membarrier_ns: f64 = membarrier Time "membarrier, without the interrupts";
        interrupt_ns: f64 = interrupt Time "what an interrupt takes the CPU that is interrupted";
        timer_slack_ns: f64 = timer_slack Time "how late a timer fires";
        migrate_ns: [f64; 2] =
            migrate_core Time "what a thread that moved to another core pays for its caches",
            migrate_socket Time "what a thread that moved to another socket pays for its caches";
        spread: f64 = spread Share "calls, wake-ups and interrupts take up to this part more or less";
    }

    /// How the kernel gives out the CPUs: weighted fair queueing with a virtual run time per thread, as CFS
    /// and EEVDF do. Times are in ns.
    Scheduler = "scheduler" {
        latency_ns: f64 = latency Time "within this time each thread of a CPU runs once, unless too many";
        min_slice_ns: f64 = min_slice Time "the shortest slice";
        /// `None`: only at the end of the slice.
        wakeup_ns: Option<f64> =
            wakeup TimeOrNever "how far behind a woken thread has to be to preempt at once";
        /// CFS: a half.
        sleeper_credit: f64 =
            sleeper_credit Share "the part of `latency` that a sleeper is put behind at most";
        /// 0: at once.
        tick_ns: f64 = tick Time "distance of timer ticks: a slice ends at one";
        balance_ns: f64 = balance Time "how often CPUs look for threads to take from others";
        /// `CONFIG_PREEMPT`.
        preempts_kernel: bool = preempts_kernel Flag "whether kernel code is preempted";
    }
}

/// A deeper sleep of an idle CPU.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeepIdle {
    /// After so long, ns.
    pub after_ns: f64,
    /// Leaving it takes so long, ns.
    pub exit_ns: f64,
}
