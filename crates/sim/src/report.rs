//! What a run has counted.

use serde::{Deserialize, Serialize};
use spinpark_platform::Event;

/// How many kinds of [`Event`] there are room for.
pub(crate) const KINDS: usize = 16;

/// Counts of a whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// What the simulator did: things that happened in its queue.
    pub events: u64,
    /// Steps of simulated threads: memory accesses, calls, computations.
    pub steps: u64,
    /// Lines moved within a core's last-level cache's reach.
    pub moves_near: u64,
    /// Lines moved between last-level caches of a socket.
    pub moves_socket: u64,
    /// Lines moved between sockets.
    pub moves_far: u64,
    /// Switches from one thread to another, or to nothing.
    pub switches: u64,
    /// Threads that were preempted.
    pub preemptions: u64,
    /// Threads that were woken.
    pub wakes: u64,
    /// Threads that went on on another core.
    pub migrations: u64,
    /// Futex calls.
    pub futex_calls: u64,
    /// What the locks did: see [`Counts::of`].
    pub(crate) locks: [u64; KINDS],
}

impl Counts {
    /// How often locks reported `event`.
    #[must_use]
    pub fn of(&self, event: Event) -> u64 {
        self.locks[index(event)]
    }

    /// Cache lines that moved from core to core.
    #[must_use]
    pub fn moves(&self) -> u64 {
        self.moves_near + self.moves_socket + self.moves_far
    }
}

pub(crate) fn index(event: Event) -> usize {
    match event {
        Event::SpinAcquired => 0,
        Event::SpinLeftOwnerChanged => 1,
        Event::SpinLeftOffCpu => 2,
        Event::SpinLeftBudget => 3,
        Event::Parked => 4,
        Event::WokeHead => 5,
        Event::GrantedReaders => 6,
        Event::HandedOff => 7,
        Event::DemandedHandoff => 8,
        Event::MovedWaiter => 9,
        Event::TimedOut => 10,
        Event::OpenedSlots => 11,
        Event::ClosedSlots => 12,
        _ => KINDS - 1,
    }
}

/// Where a thread's time went, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadTimes {
    /// On a CPU, whatever it did there.
    pub on_cpu_ns: u64,
    /// Of that, polling.
    pub spinning_ns: u64,
    /// Waiting for a CPU.
    pub runnable_ns: u64,
    /// Asleep.
    pub asleep_ns: u64,
}

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// How the run failed, if it did.
    pub failure: Option<crate::Failure>,
    /// When the last thread ended, ns of virtual time.
    pub elapsed_ns: u64,
    /// Counts.
    pub counts: Counts,
    /// By thread, in order of creation.
    pub threads: Vec<ThreadTimes>,
    /// How long each CPU had something to do, ns.
    pub busy_ns: Vec<u64>,
    /// What happened last, if it was recorded: a line each.
    pub interleaving: Vec<String>,
    /// Who ran when and where, if it was recorded.
    #[serde(skip)]
    pub slices: Vec<crate::trace::Slice>,
}

impl Outcome {
    /// Which part of the CPUs' time they had something to do.
    #[must_use]
    pub fn utilisation(&self) -> f64 {
        let all = self.elapsed_ns as f64 * self.busy_ns.len() as f64;
        if all == 0.0 { 0.0 } else { self.busy_ns.iter().sum::<u64>() as f64 / all }
    }
}
