//! A simulated thread: what it is doing, and what it has used.

use std::fmt;
use std::ops::{Index, IndexMut};
use std::rc::Rc;

use spinpark_platform::Wait;

use super::ahead::Ahead;
use super::ids::{CpuId, LineId, ThreadId};
use super::memory::{Changed, Place, StoreBuffer, Watch};
use super::platform::Local;
use super::recent::Recent;
use crate::time::Ps;

/// What a thread is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It is on a CPU and computes, or runs right now.
    Executing,
    /// It is on a CPU and waits for a cache line. Short: it is not preempted before that is there.
    Fetching,
    /// It is on a CPU and polls what does not change.
    Watching,
    /// It is on a CPU and waits, in the kernel, for a lock of the kernel. Not preempted.
    Queueing,
    /// It waits for a CPU.
    Runnable,
    /// It sleeps.
    Asleep,
    /// It has ended.
    Ended,
}

/// Where the time of a thread has gone, until the run's time was over.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    /// On a CPU, whatever it did there.
    pub(crate) on_cpu: Ps,
    /// Of that: polling.
    pub(crate) spinning: Ps,
    /// Runnable, without a CPU.
    pub(crate) runnable: Ps,
    /// Asleep.
    pub(crate) asleep: Ps,
}

/// What a thread does when a signal comes.
pub(crate) struct Handler(pub(crate) Rc<dyn Fn()>);

impl fmt::Debug for Handler {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Handler")
    }
}

#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) state: State,
    /// Which planned resumption is the valid one.
    pub(crate) epoch: u32,
    /// When that is.
    pub(crate) until: Ps,
    /// The CPU on which it is, or was last.
    pub(crate) cpu: CpuId,
    /// The only CPUs that it may use: from … to.
    pub(crate) allowed: (u32, u32),
    /// Time that it has used, and that is not on the clock yet.
    pub(crate) debt: Ps,
    /// What its core has done already while it waited for memory.
    pub(crate) ahead: Ahead,
    /// What is left of a computation in which it was preempted.
    pub(crate) left: Ps,
    /// The scheduler's measure of what it has had.
    pub(crate) vruntime: Ps,
    /// Since when it has its CPU.
    pub(crate) on_since: Ps,
    /// Since when it is in its state, or was last accounted for.
    pub(crate) since: Ps,
    pub(crate) times: Times,
    /// What kept it of late.
    pub(crate) recent: Recent,
    /// How much CPU time it has used, also after the run's time.
    pub(crate) used: Ps,
    /// In how many sections that are not preempted it is.
    pub(crate) unpreemptible: u32,
    /// It is to leave its CPU as soon as it may.
    pub(crate) to_leave: bool,
    /// What it does when a signal comes; none comes while it does it.
    pub(crate) handler: Option<Handler>,
    /// It is not in the child that has been forked since: it never runs again.
    pub(crate) is_gone: bool,
    /// It runs kernel code: what it does for itself costs no system call.
    pub(crate) in_kernel: bool,
    /// Of the lines that it polls.
    pub(crate) watch: Watch,
    /// The threads that poll whether it is on a CPU.
    pub(crate) asked_by: Vec<ThreadId>,
    /// What it has stored and others do not see yet.
    pub(crate) stores: StoreBuffer,
    /// The words that it has changed lately.
    pub(crate) changed: Changed,
    /// A load that the last-level cache serves, and the version of the line then.
    pub(crate) loading: Option<(LineId, u32)>,
    /// The futex on which it sleeps.
    pub(crate) futex: Option<Place>,
    pub(crate) outcome: Wait,
    /// Which planned timer is the valid one.
    pub(crate) timer: u32,
    /// It is within a restartable step; whether that has been aborted.
    pub(crate) step: Option<bool>,
    /// Its place in a random order, if the order is not that of time: lower goes first.
    pub(crate) rank: i64,
    /// Where its stack lies.
    pub(crate) stack: std::ops::Range<usize>,
    /// The word of its address space that a CPU counts itself in and out of, as it goes from the thread to
    /// nothing and back.
    pub(crate) space: Option<usize>,
    /// The threads that wait for its end.
    pub(crate) joiners: Vec<ThreadId>,
    /// What the platform keeps for it.
    pub(crate) local: Local,
}

impl Thread {
    pub(crate) fn new(cpu: CpuId, now: Ps, allowed: (u32, u32)) -> Self {
        Self {
            state: State::Asleep,
            epoch: 0,
            until: 0,
            cpu,
            allowed,
            debt: 0,
            ahead: Ahead::default(),
            left: 0,
            vruntime: 0,
            on_since: now,
            since: now,
            times: Times::default(),
            recent: Recent::default(),
            used: 0,
            unpreemptible: 0,
            handler: None,
            is_gone: false,
            to_leave: false,
            in_kernel: false,
            watch: Watch::default(),
            asked_by: Vec::new(),
            stores: StoreBuffer::default(),
            changed: Changed::default(),
            loading: None,
            futex: None,
            outcome: Wait::Woken,
            timer: 0,
            step: None,
            rank: 0,
            stack: 0..0,
            space: None,
            joiners: Vec::new(),
            local: Local::default(),
        }
    }

    /// Whether it has a CPU.
    pub(crate) fn is_on_cpu(&self) -> bool {
        matches!(self.state, State::Executing | State::Fetching | State::Watching | State::Queueing)
    }
}

/// All threads.
#[derive(Debug, Default)]
pub(crate) struct Threads(pub(crate) Vec<Thread>);

impl Index<ThreadId> for Threads {
    type Output = Thread;
    #[inline]
    fn index(&self, id: ThreadId) -> &Thread {
        &self.0[id.0 as usize]
    }
}

impl IndexMut<ThreadId> for Threads {
    #[inline]
    fn index_mut(&mut self, id: ThreadId) -> &mut Thread {
        &mut self.0[id.0 as usize]
    }
}
