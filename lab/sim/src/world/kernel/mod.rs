//! The simulated kernel: which threads run where, futexes, interrupts.

mod futex;
mod interrupts;
mod schedule;

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::time::Ps;
use crate::world::memory::Place;
use crate::world::{Core, ThreadId};

/// What a CPU does.
#[derive(Debug, Default)]
pub(crate) struct Cpu {
    pub(crate) current: Option<ThreadId>,
    pub(crate) queue: Vec<ThreadId>,
    /// Every thread that is here has had at least so much.
    pub(crate) min_vruntime: Ps,
    /// Since when the current thread runs.
    pub(crate) slice_since: Ps,
    /// Which planned end of a slice is the valid one; whether there is one.
    pub(crate) slice_epoch: u32,
    pub(crate) slice_planned: bool,
    pub(crate) tick_planned: bool,
    /// The thread that has left it with stores that had not drained.
    pub(crate) left_by: Option<ThreadId>,
    /// Since when it has nothing to do.
    pub(crate) idle_since: Ps,
    /// How long it had something to do, and was out of idle, until the run's time was over.
    pub(crate) busy: Ps,
    /// What is left of its share of the quota, ps; below 0: what it has had too much.
    pub(crate) granted: i64,
    /// Nothing is left for it, until [`Quota`] is filled up.
    pub(crate) is_throttled: bool,
}

/// A quota of CPU time, ps.
#[derive(Debug)]
pub(crate) struct Quota {
    /// What each period has.
    pub(crate) each: i64,
    /// What no CPU has taken.
    pub(crate) left: i64,
    pub(crate) is_refill_planned: bool,
    pub(crate) is_slack_planned: bool,
}

impl Quota {
    pub(crate) fn new(each: i64) -> Self {
        Self { each, left: each, is_refill_planned: false, is_slack_planned: false }
    }
}

/// The sleepers of each futex, oldest first.
pub(crate) type Futexes = FxHashMap<Place, VecDeque<ThreadId>>;

/// A spin lock of the kernel.
#[derive(Debug, Default)]
pub(crate) struct SpinLock {
    pub(crate) is_held: bool,
    pub(crate) waiting: VecDeque<ThreadId>,
    /// The core that had it last.
    pub(crate) last: Option<Core>,
}
