//! The lines of reader slots, and what a thread knows of those that it is in.

use loom::sync::atomic::AtomicUsize;

use super::steps::MOST_THREADS;

/// Slots in a line.
pub(super) const SLOTS: usize = 2;
pub(super) const FREE: usize = 0;

/// Each thread's line, by token.
pub(super) type Slots = [[AtomicUsize; SLOTS]; MOST_THREADS];

pub(super) fn slots() -> Slots {
    std::array::from_fn(|_| std::array::from_fn(|_| AtomicUsize::new(FREE)))
}

/// A read lock that a thread holds.
#[derive(Clone, Copy)]
pub(super) struct Held {
    pub(super) lock: usize,
    /// Where it says so: in which line, and where there.
    pub(super) slot: Option<(usize, usize)>,
}
