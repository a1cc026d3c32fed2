//! What is to happen, in order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::ids::{CpuId, LineId, ThreadId};
use crate::time::Ps;

/// Something that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    /// A cache line arrives where it was sent.
    Arrival(LineId),
    /// A thread goes on, if it is still waiting for that: see `Thread::epoch`.
    Resume { thread: ThreadId, epoch: u32 },
    /// A deadline passes.
    Timer { thread: ThreadId, epoch: u32 },
    /// A signal ends a sleep.
    Signal { thread: ThreadId, epoch: u32 },
    /// The oldest store that is held in a thread's buffer may drain.
    Drain { thread: ThreadId },
    /// A time slice may be over.
    Slice { cpu: CpuId, epoch: u32 },
    /// A CPU may have used up its share of the quota.
    Share { cpu: CpuId, epoch: u32 },
    /// There is a new quota, or some of it was given back.
    Quota { is_new: bool },
    /// A CPU's timer ticks.
    Tick { cpu: CpuId },
    /// Threads that wait for a CPU are spread.
    Balance,
}

/// When, then in the order in which they were planned.
type Key = (Ps, u64);

/// What is planned.
#[derive(Debug, Default)]
pub(crate) struct Events {
    timed: BinaryHeap<Reverse<(Key, What)>>,
    /// Threads that can run, if they do so by rank and not by time: the lowest rank first.
    ready: BinaryHeap<Reverse<((i64, u64), What)>>,
    planned: u64,
}

impl Events {
    /// Plans `what`.
    #[inline]
    pub(crate) fn plan(&mut self, at: Ps, what: What) {
        self.planned += 1;
        self.timed.push(Reverse(((at, self.planned), what)));
    }

    /// Plans `what` for when nothing of a lower rank is to be done.
    pub(crate) fn plan_by_rank(&mut self, rank: i64, what: What) {
        self.planned += 1;
        self.ready.push(Reverse(((rank, self.planned), what)));
    }

    /// Whether something happens until `at`.
    #[inline]
    pub(crate) fn comes_before(&self, at: Ps) -> bool {
        self.timed.peek().is_some_and(|Reverse(((next, _), _))| *next <= at)
    }

    /// Whether something of at most this rank is ready.
    pub(crate) fn is_outranked(&self, rank: i64) -> bool {
        self.ready.peek().is_some_and(|Reverse(((next, _), _))| *next <= rank)
    }

    /// The next one, and when it happens; what is ready `now` happens now, unless the time of something else
    /// has come.
    pub(crate) fn take(&mut self, now: Ps) -> Option<(Ps, What)> {
        if !self.ready.is_empty() && !self.comes_before(now) {
            return self.ready.pop().map(|Reverse((_, what))| (now, what));
        }
        self.timed.pop().map(|Reverse(((at, _), what))| (at, what))
    }
}
