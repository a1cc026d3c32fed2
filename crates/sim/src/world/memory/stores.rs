//! Store buffers: what they hold. `crate::memory::stores` has their invariants.

use std::collections::VecDeque;

use super::write::Write;
use crate::world::ids::{Core, LineId, ThreadId};

/// A store that waits.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) write: Write,
    pub(crate) line: LineId,
    /// Its core has asked for the line for it.
    pub(crate) is_asked: bool,
    /// In a run with [`Chaos`](crate::Chaos): it stays, whatever its core has.
    pub(crate) is_held: bool,
    /// Its thread has ended the object itself: the memory is its own for whatever comes next, so the store is
    /// no late one.
    pub(crate) is_over: bool,
}

/// A thread's stores, oldest first.
#[derive(Debug, Default)]
pub(crate) struct StoreBuffer {
    pub(crate) stores: VecDeque<Store>,
    /// The core that made them.
    pub(crate) core: Core,
    /// How many there were until now, and how many of them have drained.
    pub(crate) made: u64,
    pub(crate) drained: u64,
    /// A barrier waits until so many have drained.
    pub(crate) fenced: u64,
    /// Its thread goes on when at most so many are left.
    pub(crate) wanted: Option<usize>,
    /// Its thread has left the CPU, and these wait for the rest.
    pub(crate) is_left: bool,
    pub(crate) followers: Vec<ThreadId>,
}

impl StoreBuffer {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.stores.is_empty()
    }
}

/// What the buffers of all threads have in common.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    /// How many stores are in them.
    pub(crate) stores: usize,
    /// How many threads have left a CPU with stores that have not drained.
    pub(crate) left: usize,
    /// Threads that wait for a barrier.
    pub(crate) fences: Vec<ThreadId>,
}
