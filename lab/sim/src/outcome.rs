//! What a run has counted.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use spinpark_platform::Event;

/// How many kinds of [`Event`] there are room for.
pub(crate) const KINDS: usize = 20;

/// Adds each of these fields of one value to that of another one.
macro_rules! add {
    ($to:ident += $from:expr => $($field:ident),*) => { $($to.$field += $from.$field;)* };
}
pub(crate) use add;

/// Counts of a whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// What the simulator did: things that happened in its queue.
    pub events: u64,
    /// Steps of simulated threads: memory accesses, calls, computations.
    pub steps: u64,
    /// Compare-exchanges of words that found another value: failed attempts, most of them.
    #[serde(default)]
    pub failed_exchanges: u64,
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
    #[serde(with = "by_name")]
    pub(crate) locks: [u64; KINDS],
}

/// What locks report, with the names that they have in JSON.
pub const EVENTS: [(Event, &str); 19] = [
    (Event::SpinAcquired, "spin_acquired"),
    (Event::SpinLeftOwnerChanged, "spin_left_owner_changed"),
    (Event::SpinLeftOffCpu, "spin_left_off_cpu"),
    (Event::SpinLeftBudget, "spin_left_budget"),
    (Event::Parked, "parked"),
    (Event::WokeHead, "woke_head"),
    (Event::GrantedReaders, "granted_readers"),
    (Event::HandedOff, "handed_off"),
    (Event::RequestedHandoff, "requested_handoff"),
    (Event::WithdrewRequest, "withdrew_request"),
    (Event::MovedWaiter, "moved_waiter"),
    (Event::TimedOut, "timed_out"),
    (Event::EnabledBias, "opened_slots"),
    (Event::RevokedBias, "closed_slots"),
    (Event::DeferredWake, "deferred_wake"),
    (Event::WokeUnmarked, "woke_unmarked"),
    (Event::EarlyWake, "early_wake"),
    (Event::Appointed, "appointed"),
    (Event::Probed, "probed"),
];

/// The counts of locks' events, by name.
mod by_name {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serializer};

    use super::{EVENTS, KINDS, index};

    pub(super) fn serialize<S: Serializer>(locks: &[u64; KINDS], to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(EVENTS.map(|(event, name)| (name, locks[index(event)])))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<[u64; KINDS], D::Error> {
        let named = BTreeMap::<String, u64>::deserialize(from)?;
        let mut locks = [0; KINDS];
        for (event, name) in EVENTS {
            locks[index(event)] = named.get(name).copied().unwrap_or_default();
        }
        Ok(locks)
    }
}

impl Counts {
    /// How often locks reported `event`.
    #[must_use]
    pub fn of(&self, event: Event) -> u64 {
        self.locks[index(event)]
    }

    /// Adds what another run counted.
    pub fn merge(&mut self, other: &Self) {
        add!(self += other => events, steps, failed_exchanges, moves_near, moves_socket, moves_far);
        add!(self += other => switches, preemptions, wakes, migrations, futex_calls);
        self.locks.iter_mut().zip(other.locks).for_each(|(mine, theirs)| *mine += theirs);
    }

    /// Cache lines that moved from core to core.
    #[must_use]
    pub fn moves(&self) -> u64 {
        self.moves_near + self.moves_socket + self.moves_far
    }
}

/// Where the count of `event` is; all that have no name share the last place.
pub(crate) fn index(event: Event) -> usize {
    EVENTS.iter().position(|(named, _)| *named == event).unwrap_or(KINDS - 1)
}

/// Where a thread's time went, ns, until the run's time was over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadTimes {
    /// On a CPU, whatever it did there.
    pub on_cpu_ns: u64,
    /// Of that, polling.
    pub spinning_ns: u64,
    /// Waiting for a CPU, or for one to be out of idle.
    pub runnable_ns: u64,
    /// Asleep.
    pub asleep_ns: u64,
}

/// A thread ran on a CPU, or a thing that a thread marked: see [`here::mark`](crate::here::mark).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The CPU; none for a mark.
    pub cpu: Option<u32>,
    /// The thread.
    pub thread: u32,
    /// What; none for running.
    pub name: Option<Arc<str>>,
    /// From when, ns.
    pub from_ns: u64,
    /// Until when, ns.
    pub to_ns: u64,
}

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SimulationResult {
    /// How the run failed, if it did.
    pub failure: Option<crate::Failure>,
    /// When the last thread ended, ns of virtual time.
    pub elapsed_ns: u64,
    /// Until when threads' and CPUs' times are counted, ns: the end of the run's time, or of the last thread,
    /// if that was earlier.
    pub measured_ns: u64,
    /// Counts.
    pub counts: Counts,
    /// By thread, in order of creation.
    pub threads: Vec<ThreadTimes>,
    /// How long each CPU had something to do until then, ns, and was out of idle.
    pub busy_ns: Vec<u64>,
    /// What happened last, if it was recorded: a line each.
    pub interleaving: Vec<String>,
    /// Which threads ran when and where, if it was recorded.
    #[serde(skip)]
    pub slices: Vec<Slice>,
    /// How many of those there was no room for.
    #[serde(skip)]
    pub slices_cut: u64,
}

impl SimulationResult {
    /// Which part of the CPUs' time they had something to do.
    #[must_use]
    pub fn utilisation(&self) -> f64 {
        let all = self.measured_ns as f64 * self.busy_ns.len() as f64;
        if all == 0.0 { 0.0 } else { self.busy_ns.iter().sum::<u64>() as f64 / all }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_named_and_add_up() {
        let mut counts = Counts { moves_far: 3, ..Counts::default() };
        counts.locks[index(Event::HandedOff)] = 2;
        let other = counts.clone();
        counts.merge(&other);
        assert_eq!((counts.moves(), counts.of(Event::HandedOff)), (6, 4));
        let json = serde_json::to_value(&counts).unwrap();
        assert_eq!(json["locks"]["handed_off"], 4);
        assert_eq!(serde_json::from_value::<Counts>(json).unwrap(), counts);
    }

    #[test]
    fn every_event_has_a_place_of_its_own() {
        assert!(EVENTS.iter().map(|(event, _)| index(*event)).eq(0..KINDS - 1));
    }
}
