//! Every figure of a machine: its key in a file, what may stand there, and what it means.
//!
//! What is outside of a figure's range is a slip of the file's author, and would be simulated without a word.
//! The ranges hold every machine of the catalogue, and what a calibration finds on a loaded one.

use Kind::{Count, Factor, Flag, Positive, PowerOfTwo, Share, Time, TimeOrNever, Times};
pub(super) use spinpark_measure::nearest::nearest;

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

const fn key(table: &'static str, name: &'static str, kind: Kind, meaning: &'static str) -> Key {
    Key { table, name, kind, meaning }
}

/// All figures, in the order in which they are listed. The counts of CPUs stand apart, in the table `shape`.
pub const KEYS: &[Key] = &[
    key("clock", "ghz", Positive, "clock rate, GHz: what a cycle is"),
    key("memory", "hit", Time, "a load that hits the core's own cache"),
    key("memory", "rmw", Time, "an atomic read-modify-write of a line that the core owns"),
    key("memory", "shared", Time, "a load of an unchanged line from the last-level cache"),
    key("memory", "shared_busy", Time, "for how long such a load holds up the next one of the same line"),
    key("memory", "near", Time, "a line changed by another core behind the same last-level cache"),
    key("memory", "socket", Time, "a line changed behind another last-level cache of the socket"),
    key("memory", "hop", Times, "a line changed in a socket one, two, … links away"),
    key("memory", "dram", Time, "a line that no cache holds"),
    key("memory", "invalidate", Time, "what a write adds for each further last-level cache with a copy"),
    key("memory", "serial", Share, "the part of a transfer during which the line is busy for others"),
    key("memory", "nearness", Factor, "how much likelier a request is served before one a level farther"),
    key("memory", "spread", Share, "transfers take up to this part more or less than they say"),
    key("cpu", "pause", Time, "PAUSE, or what stands for it"),
    key("cpu", "step", Time, "the few instructions between two memory accesses of a lock"),
    key("cpu", "window", Time, "how much work the core does ahead while it waits for memory"),
    key("cpu", "work", Time, "a step of workloads' work: a chain of six instructions (xorshift)"),
    key("cpu", "fence", Time, "a full fence"),
    key("cpu", "stores", Count, "how many stores wait for their lines while the core goes on"),
    key("cpu", "smt", Share, "speed of a hardware thread while its sibling computes too"),
    key("kernel", "syscall", Time, "entering and leaving the kernel"),
    key("kernel", "futex", Time, "a futex call's own work, without its bucket's lock"),
    key("kernel", "futex_buckets", PowerOfTwo, "hash buckets for futexes"),
    key("kernel", "wake", Time, "what it takes a waker to make a thread runnable"),
    key("kernel", "kick", Time, "what it adds if the thread is to run on another, idle CPU"),
    key("kernel", "kick_socket", Time, "what it adds to that if that CPU is on another socket"),
    key("kernel", "idle_exit", Time, "until an idle CPU that was kicked runs the thread"),
    key("kernel", "deep_idle_after", TimeOrNever, "for how long a CPU is idle before it sleeps more deeply"),
    key("kernel", "deep_idle_exit", TimeOrNever, "until a CPU that sleeps more deeply runs the thread"),
    key("kernel", "switch", Time, "a switch to another thread"),
    key("kernel", "clock", Time, "reading the clock"),
    key("kernel", "cpu_clock", Time, "asking for another thread's CPU time"),
    key("kernel", "membarrier", Time, "membarrier, without the interrupts"),
    key("kernel", "interrupt", Time, "what an interrupt takes the CPU that is interrupted"),
    key("kernel", "timer_slack", Time, "how late a timer fires"),
    key("kernel", "migrate_core", Time, "what a thread that moved to another core pays for its caches"),
    key("kernel", "migrate_socket", Time, "what a thread that moved to another socket pays for its caches"),
    key("kernel", "spread", Share, "calls, wake-ups and interrupts take up to this part more or less"),
    key("scheduler", "latency", Time, "within this time each thread of a CPU runs once, unless too many"),
    key("scheduler", "min_slice", Time, "the shortest slice"),
    key("scheduler", "wakeup", TimeOrNever, "how far behind a woken thread has to be to preempt at once"),
    key("scheduler", "sleeper_credit", Share, "the part of `latency` that a sleeper is put behind at most"),
    key("scheduler", "tick", Time, "distance of timer ticks: a slice ends at one"),
    key("scheduler", "balance", Time, "how often CPUs look for threads to take from others"),
    key("scheduler", "preempts_kernel", Flag, "whether kernel code is preempted"),
];

/// The keys of the table `shape`, beside `source`.
pub(super) const SHAPE: &[(&str, &str)] = &[
    ("sockets", "sockets"),
    ("caches", "last-level caches in a socket"),
    ("cores", "cores that share a last-level cache"),
    ("threads", "hardware threads of a core"),
    ("topology", "how the sockets are linked, by name or as a matrix of links"),
];

/// The figure at `table.name`.
#[must_use]
pub fn find(table: &str, name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.table == table && key.name == name)
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
        let words = |table: &str, name: &str| {
            let key = find(table, name).unwrap();
            key.range().in_words(key.kind)
        };
        assert_eq!(words("clock", "ghz"), "0.01 to 20");
        assert_eq!(words("memory", "hit"), "0.01 ns to 1 ms");
        assert_eq!(words("memory", "hop"), "0 ns to 1 ms");
        assert_eq!(words("cpu", "smt"), "0.01 to 1");
        assert_eq!(words("kernel", "deep_idle_exit"), "0 ns to 1 s");
        assert_eq!(words("scheduler", "min_slice"), "1 us to 100 s");
        assert_eq!(words("scheduler", "wakeup"), "0 ns to 100 s");
    }
}
