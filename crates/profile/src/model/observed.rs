//! What the command saw of a program in `/proc` while it ran: what its threads did, and which processes were
//! not recorded.

use serde::{Deserialize, Serialize};

/// Time of threads by what they did, ns. The parts are all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ThreadTime {
    /// On a CPU.
    pub running: u64,
    /// Ready to run, without a CPU.
    pub runnable: u64,
    /// Waiting for recorded locks, with returns from condition variables.
    pub locks: u64,
    /// Waiting for recorded signals: of condition variables, channels, barriers.
    pub signals: u64,
    /// Waiting for what may be a lock or a signal, as recorded.
    pub unclear: u64,
    /// In other futexes: locks that are not recorded.
    pub futexes: u64,
    /// In System V semaphores and locks of files.
    pub semaphores: u64,
    /// In other system calls: files, sockets, `poll`; and in page faults.
    pub io: u64,
    /// In timers: `nanosleep`.
    pub sleep: u64,
    /// Waiting for threads or processes to end.
    pub ends: u64,
    /// Stopped, by a signal or a debugger.
    pub stopped: u64,
    /// Blocked, and `/proc` does not tell in what.
    pub unknown: u64,
}

impl ThreadTime {
    /// All of it.
    #[must_use]
    pub fn total(&self) -> u64 {
        let mut all = *self;
        all.parts().map(|part| *part).iter().sum()
    }

    /// Adds another one.
    pub fn add(&mut self, other: &Self) {
        let mut other = *other;
        for (part, more) in self.parts().into_iter().zip(other.parts()) {
            *part += *more;
        }
    }

    /// Takes another one away, as far as there is something.
    pub fn subtract(&mut self, other: &Self) {
        let mut other = *other;
        for (part, less) in self.parts().into_iter().zip(other.parts()) {
            *part = part.saturating_sub(*less);
        }
    }

    pub(crate) fn parts(&mut self) -> [&mut u64; 12] {
        let Self {
            running,
            runnable,
            locks,
            signals,
            unclear,
            futexes,
            semaphores,
            io,
            sleep,
            ends,
            stopped,
            unknown,
        } = self;
        [running, runnable, locks, signals, unclear, futexes, semaphores, io, sleep, ends, stopped, unknown]
    }
}

/// Threads of a process as they were seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Threads {
    /// How many.
    pub number: u32,
    /// How many of them were idle: without CPU time, asleep in one wait or rarely woken.
    pub idle: u32,
    /// The time of those that were not idle.
    pub time: ThreadTime,
    /// The time of the idle ones.
    pub idle_time: ThreadTime,
    /// How often a thread was sampled.
    pub samples: u64,
    /// Which threads were idle, as far as they are known one by one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub idle_ids: Vec<u32>,
}

/// Whether a process had the recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recorder {
    /// It had.
    Loaded,
    /// It ended before that could be seen.
    Unknown,
    /// It started without `LD_PRELOAD` in its environment.
    NoPreload,
    /// It is statically linked.
    Static,
    /// The kernel told its loader to ignore `LD_PRELOAD`: setuid, setgid, file capabilities.
    Privileged,
    /// Its loader is that of another C library.
    OtherLibc,
    /// It is a 32-bit program.
    Bits32,
    /// `LD_PRELOAD` names the recorder, and the loader did not load it.
    NotLoaded,
    /// It had no recorder, and the reason cannot be seen.
    Missing,
}

impl Recorder {
    /// Whether the process certainly ran without it.
    #[must_use]
    pub fn is_missing(self) -> bool {
        !matches!(self, Self::Loaded | Self::Unknown)
    }
}

/// Another program of the run: of another process, or of the same one before or after an `exec`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherProgram {
    /// Its process.
    pub pid: u32,
    /// Its path.
    pub program: String,
    /// When it was first seen, ns after the start of the run.
    pub from: u64,
    /// When it was last seen, ns after the start of the run.
    pub until: u64,
    /// It still ran when the program that the command had started had ended.
    pub is_left: bool,
    /// Whether it had the recorder.
    pub recorder: Recorder,
    /// Its threads.
    pub threads: Threads,
}

/// What was seen during the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    /// How long the run was observed, ns.
    pub duration: u64,
    /// The mean time between two samples, ns.
    pub interval: u64,
    /// CPU time of the observer, ns.
    pub cost: u64,
    /// CPU time of all processes of the run that have ended, as the kernel counted it, ns.
    pub cpu: u64,
    /// CPU time of threads that were seen, ns.
    pub cpu_seen: u64,
    /// CPU time of programs that are not the run's, on the CPUs that the command could use, ns; none if that
    /// is not known.
    #[serde(default)]
    pub cpu_of_others: Option<u64>,
    /// How long this process was seen, ns; 0 if it never was.
    pub seen: u64,
    /// It still ran when the command ended: what was seen is only its beginning.
    pub is_left: bool,
    /// Its threads.
    pub threads: Threads,
    /// The other programs of the run that had the most time, or were left running.
    pub others: Vec<OtherProgram>,
    /// The programs that are not in `others`.
    pub rest: Rest,
}

/// Programs that are not listed one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rest {
    /// Those that had the recorder, or may have had it.
    pub recorded: u32,
    /// The time of their threads that were not idle, ns.
    pub recorded_time: u64,
    /// Those without it.
    pub unrecorded: u32,
    /// The time of their threads that were not idle, ns.
    pub unrecorded_time: u64,
    /// CPU time of all of them, ns.
    pub cpu: u64,
}
