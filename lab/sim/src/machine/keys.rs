//! Every figure of a machine: its name here and its key in a file, what may stand there, and what it means.
//!
//! What is outside of a figure's range is a slip of the file's author, and would be simulated without a word.
//! The ranges hold every machine of the catalogue, and what a calibration finds on a loaded one.

use serde::{Deserialize, Serialize};
pub(super) use spinpark_measure::text::nearest::nearest;

use super::error::MachineError;

/// What may stand at a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A time: `ns`, `us`, `ms` or `cycles`.
    Time,
    /// A time, or `never = true`.
    TimeOrNever,
    /// A list of times, which may be empty.
    Times,
    /// A number.
    Positive,
    /// How many times as much.
    Factor,
    /// A part of something.
    Share,
    /// A power of two.
    PowerOfTwo,
    /// A whole number.
    Count,
    /// `true` or `false`.
    Flag,
}

impl Kind {
    /// How it is written, as an example for a message.
    pub(super) fn example(self) -> &'static str {
        match self {
            Self::Time => "{ ns = 25, source = \"…\" } (or us, ms, cycles)",
            Self::TimeOrNever => "{ ms = 4, source = \"…\" } or { never = true, source = \"…\" }",
            Self::Times => "{ ns = [130, 190], source = \"…\" } (or us, ms, cycles)",
            Self::Positive => "{ value = 2.27, source = \"…\" }",
            Self::Factor => "{ value = 1.5, source = \"…\" }",
            Self::Share => "{ value = 0.5, source = \"…\" }",
            Self::PowerOfTwo => "{ value = 256, source = \"…\" }, a power of two",
            Self::Count => "{ value = 56, source = \"…\" }, a whole number",
            Self::Flag => "{ value = true, source = \"…\" } (or false)",
        }
    }
}

/// A figure of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// The table in which it stands.
    pub table: &'static str,
    /// Its name there.
    pub name: &'static str,
    /// What may stand there.
    pub kind: Kind,
    /// What it means, as a part of a sentence.
    pub meaning: &'static str,
}

impl Key {
    /// `memory.hit`.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{}.{}", self.table, self.name)
    }
}

/// What figures of a file make up: each is its numbers, times in ns; a time that never comes is none.
trait Field<const N: usize> {
    fn of(figures: [Vec<f64>; N]) -> Self;
}

impl Field<1> for Vec<f64> {
    fn of([figure]: [Vec<f64>; 1]) -> Self {
        figure
    }
}

impl Field<1> for Option<f64> {
    fn of([figure]: [Vec<f64>; 1]) -> Self {
        figure.first().copied()
    }
}

impl Field<1> for f64 {
    fn of(figure: [Vec<f64>; 1]) -> Self {
        Option::of(figure).unwrap_or_default()
    }
}

impl Field<1> for u32 {
    fn of(figure: [Vec<f64>; 1]) -> Self {
        f64::of(figure) as Self
    }
}

impl Field<1> for bool {
    fn of(figure: [Vec<f64>; 1]) -> Self {
        f64::of(figure) != 0.0
    }
}

impl Field<2> for [f64; 2] {
    fn of(figures: [Vec<f64>; 2]) -> Self {
        figures.map(|figure| f64::of([figure]))
    }
}

impl Field<2> for Option<DeepIdle> {
    fn of(figures: [Vec<f64>; 2]) -> Self {
        let [after, exit] = figures.map(|figure| Option::of([figure]));
        Some(DeepIdle { after_ns: after?, exit_ns: exit? })
    }
}

/// Declares structs of figures: each field once, with the keys in a file that it is read from.
macro_rules! figures {
    ($(
        $(#[$of_all:meta])*
        $all:ident = $table:literal {
            $(
                $(#[$more:meta])*
                $field:ident: $type:ty = $($key:ident $kind:ident $meaning:literal),+;
            )*
        }
    )*) => {
        $(
        $(#[$of_all])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        pub struct $all {
            $(
                $(#[doc = $meaning] #[doc = ""])+
                $(#[$more])*
                pub $field: $type,
            )*
        }

        impl $all {
            /// Made of what `figure` finds at its keys.
            pub(super) fn read(
                figure: impl Fn(&str) -> Result<Vec<f64>, MachineError>,
            ) -> Result<Self, MachineError> {
                Ok(Self { $($field: Field::of([$(figure(concat!($table, ".", stringify!($key)))?),+])),* })
            }
        }
        )*

        /// All figures, in the order in which they are listed. The counts of CPUs stand apart, in the table
        /// `shape`.
        pub const KEYS: &[Key] = &[
            Key {
                table: "clock",
                name: "ghz",
                kind: Kind::Positive,
                meaning: "clock rate, GHz: what a cycle is",
            },
            $($($(
                Key { table: $table, name: stringify!($key), kind: Kind::$kind, meaning: $meaning },
            )+)*)*
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

/// The keys of the table `shape`, beside `source`.
pub(super) const SHAPE: &[(&str, &str)] = &[
    ("sockets", "sockets"),
    ("caches", "last-level caches in a socket"),
    ("cores", "cores that share a last-level cache"),
    ("threads", "hardware threads of a core"),
    ("topology", "how the sockets are linked, by name or as a matrix of links"),
];

/// The figure at `path`: `memory.hit`.
#[must_use]
pub fn find(path: &str) -> Option<&'static Key> {
    let at = path.split_once('.')?;
    KEYS.iter().find(|key| (key.table, key.name) == at)
}

/// The least and the most that a figure can be; of a time, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

const fn range(least: f64, most: f64) -> Range {
    Range { least, most }
}

impl Key {
    /// What its figure can be.
    #[must_use]
    pub fn range(&self) -> Range {
        match (self.kind, self.table, self.name) {
            // The clock, GHz.
            (Kind::Positive, ..) => range(0.01, 20.0),
            (Kind::Factor, ..) => range(1.0, 1_000.0),
            // A hardware thread does not stand still.
            (Kind::Share, _, "smt") => range(0.01, 1.0),
            (Kind::Share, ..) => range(0.0, 1.0),
            // Linux makes 256 for each CPU.
            (Kind::PowerOfTwo, ..) => range(1.0, 1_048_576.0),
            (Kind::Count, ..) => range(0.0, 1_024.0),
            (Kind::Flag, ..) => range(f64::NEG_INFINITY, f64::INFINITY),
            // What loops are made of: some time has to pass in them.
            (_, "memory" | "cpu", "hit" | "pause" | "work") => range(0.01, MS),
            (_, "memory" | "cpu", _) => range(0.0, MS),
            (_, "scheduler", "latency" | "min_slice" | "balance") => range(US, 100.0 * S),
            // As long as slices, or nothing.
            (_, _, "wakeup" | "deep_idle_after") => range(0.0, 100.0 * S),
            (Kind::Time | Kind::TimeOrNever | Kind::Times, ..) => range(0.0, S),
        }
    }
}

const US: f64 = 1e3;
const MS: f64 = 1e6;
const S: f64 = 1e9;

impl Range {
    pub(super) fn holds(self, value: f64) -> bool {
        (self.least..=self.most).contains(&value)
    }

    /// `0.01 ns to 1 ms`, `0 to 1`.
    #[must_use]
    pub fn in_words(self, kind: Kind) -> String {
        match kind {
            Kind::Time | Kind::TimeOrNever | Kind::Times => {
                format!("{} to {}", time(self.least), time(self.most))
            }
            _ => format!("{} to {}", self.least, self.most),
        }
    }
}

/// A round time.
fn time(ns: f64) -> String {
    match ns {
        ns if ns >= S => format!("{} s", ns / S),
        ns if ns >= MS => format!("{} ms", ns / MS),
        ns if ns >= US => format!("{} us", ns / US),
        ns => format!("{ns} ns"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_in_words() {
        for (path, range) in [
            ("clock.ghz", "0.01 to 20"),
            ("memory.hit", "0.01 ns to 1 ms"),
            ("memory.hop", "0 ns to 1 ms"),
            ("cpu.smt", "0.01 to 1"),
            ("kernel.deep_idle_exit", "0 ns to 1 s"),
            ("scheduler.min_slice", "1 us to 100 s"),
            ("scheduler.wakeup", "0 ns to 100 s"),
        ] {
            let key = find(path).unwrap();
            assert_eq!(key.range().in_words(key.kind), range, "{path}");
        }
    }
}
