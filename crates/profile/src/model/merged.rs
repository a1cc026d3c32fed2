//! What a profile that adds several up knows of them one by one.

use serde::{Deserialize, Serialize};

/// How a profile came about that adds several up: of processes that ran one build of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Merged {
    /// How many they are.
    pub processes: u64,
    /// The build id of the program that all of them ran, if it is known.
    pub build_id: Option<String>,
    /// Where they ran: hosts, or the directories of recordings that do not name theirs. Those with the longest total
    /// wait first.
    pub places: Vec<Place>,
    /// Lock by lock.
    pub spread: Vec<Spread>,
    /// How many of them had a deadlock when their recordings ended.
    pub deadlocks: u64,
    /// One of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadlock: Option<String>,
}

impl Merged {
    /// The part of the build id that people read: its first eight digits.
    #[must_use]
    pub fn build(&self) -> Option<&str> {
        self.build_id.as_deref().map(|build_id| build_id.get(..8).unwrap_or(build_id))
    }
}

/// The processes of a host, or of a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Its name.
    pub name: String,
    /// How many there are.
    pub processes: u64,
    /// Time waited for locks, ns.
    pub waited: u64,
    /// Time of the threads that were not idle, ns.
    pub thread_time: u64,
}

/// How waiting for a lock is spread over processes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    /// [`Lock::id`](super::Lock::id).
    pub lock: u32,
    /// The number of processes in which threads waited for it.
    pub processes: u64,
    /// The longest time that the threads of one process waited for it, ns.
    pub most: u64,
    /// That process: `process 4711 of web-3`.
    pub most_in: String,
    /// The longest wait, ns; 0 if it is not known.
    pub longest: u64,
    /// The process of that one.
    pub longest_in: String,
}
