//! What a timeline consists of.

use std::sync::Arc;

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
