//! The state of a simulation, which all other parts read and change.
//!
//! Beside the data, here are the methods that all parts need: to plan that a thread goes on, to fail, to draw
//! by lot. How the state changes is in `memory`, `kernel`, `record` and `crate::engine`: methods of
//! [`World`]. They call each other's methods, and name only what is here.

mod ahead;
pub(crate) mod chaos;
mod costs;
mod kernel;
pub(crate) mod locals;
pub(crate) mod memory;
mod recent;
mod record;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::{Index, IndexMut};
use std::rc::Rc;

use spinpark_platform::{Event, Wait};

use self::ahead::Ahead;
use self::chaos::Chaos;
use self::costs::{Costs, Places};
use self::kernel::{Cpu, Futexes, Quota, SpinLock};
use self::locals::{Local, Shared};
use self::memory::{Access, Buffers, Changed, Lines, Place, StoreBuffer, Watch, Write};
pub(crate) use self::recent::Delay;
use self::recent::Recent;
pub use self::record::Record;
pub(crate) use self::record::Trace;
use crate::check::{Checks, Fault};
use crate::failure::Failure;
use crate::machine::Machine;
use crate::outcome::Counts;
use crate::time::{PS_PER_NS, Ps};

/// What a step did.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Did {
    /// It accessed memory whose contents say nothing to a reader.
    Accessed(Access, usize),
    /// A load of a word, and what it held.
    Loaded(usize, u32),
    /// A word changed from … to.
    Wrote(usize, u32, u32),
    /// A compare-exchange found something else than it expected.
    Failed(usize, u32, u32),
    /// A pointer was loaded, or stored to; the latter from … to, if that is known.
    Pointer(usize, Option<usize>, usize),
    /// A store waits in its core's buffer.
    Buffered(Write),
    Slept(usize),
    Woke(usize, u32),
    Returned(Wait),
    Lock(Event),
    Said(&'static str),
}

/// What runs when a thread is created.
pub(crate) type Body = Box<dyn FnOnce()>;

/// Everything.
pub(crate) struct World {
    pub(crate) now: Ps,
    pub(crate) costs: Costs,
    pub(crate) places: Places,
    pub(crate) events: Events,
    pub(crate) threads: Threads,
    /// The thread whose code runs, or ran last.
    pub(crate) running: ThreadId,
    /// Whether it runs now.
    pub(crate) is_running: bool,
    pub(crate) cpus: Vec<Cpu>,
    /// How many a program counts: no more than its quota comes to.
    pub(crate) counted_cpus: u32,
    /// How many threads wait for CPUs.
    pub(crate) queued: usize,
    pub(crate) balance_planned: bool,
    pub(crate) quota: Option<Quota>,
    pub(crate) memory: Lines,
    pub(crate) buffers: Buffers,
    pub(crate) futexes: Futexes,
    /// Those of the hash buckets of futexes.
    pub(crate) buckets: Vec<SpinLock>,
    pub(crate) rng: fastrand::Rng,
    pub(crate) chaos: Chaos,
    pub(crate) counts: Counts,
    pub(crate) trace: Trace,
    pub(crate) failure: Option<Failure>,
    /// Threads that were created, and have not been started yet.
    pub(crate) born: Vec<(ThreadId, Body)>,
    pub(crate) alive: usize,
    /// When the work is to end.
    pub(crate) end: Ps,
    pub(crate) is_smt: bool,
    /// More steps than this are taken for a run without an end.
    pub(crate) most_steps: u64,
    /// What the platform keeps for all threads.
    pub(crate) shared: Shared,
    /// What is watched, and which faults the machine has, in a run that checks a lock.
    pub(crate) checks: Option<Box<Checks>>,
    /// How often the process has forked.
    pub(crate) generation: u32,
    /// Whether any thread has a handler.
    pub(crate) has_handlers: bool,
    /// Order by rank: how often a thread has fallen behind all others.
    last_rank: i64,
}

impl World {
    /// Without threads, at the beginning.
    pub(crate) fn new(machine: &Machine) -> Self {
        let shape = &machine.shape;
        let cpus = shape.usable;
        Self {
            now: 0,
            costs: Costs::new(machine),
            places: Places::new(machine),
            events: Events::default(),
            threads: Threads::default(),
            running: ThreadId(0),
            is_running: false,
            cpus: (0..cpus).map(|_| Cpu::default()).collect(),
            counted_cpus: machine.counted_cpus(),
            queued: 0,
            balance_planned: false,
            quota: shape.quota.map(|cpus| Quota::new(Self::quota_of(cpus))),
            memory: Lines::default(),
            buffers: Buffers::default(),
            futexes: Futexes::default(),
            buckets: (0..machine.kernel.futex_buckets).map(|_| SpinLock::default()).collect(),
            rng: fastrand::Rng::with_seed(0),
            chaos: Chaos::default(),
            counts: Counts::default(),
            trace: Trace::default(),
            failure: None,
            born: Vec::new(),
            alive: 0,
            end: u64::MAX / PS_PER_NS * PS_PER_NS,
            is_smt: shape.threads > 1,
            most_steps: u64::MAX,
            shared: Shared::default(),
            checks: None,
            generation: 0,
            has_handlers: false,
            last_rank: 0,
        }
    }

    /// How much of the time from `from` to `to` is the run's. What comes after that is in no share.
    #[inline]
    pub(crate) fn in_time(&self, from: Ps, to: Ps) -> Ps {
        to.min(self.end).saturating_sub(from)
    }

    /// Plans that the thread goes on at `at`, whatever was planned for it before.
    pub(crate) fn resume_at(&mut self, thread: ThreadId, at: Ps, state: State) {
        let resumed = &mut self.threads[thread];
        resumed.epoch += 1;
        resumed.until = at;
        resumed.state = state;
        let (epoch, rank) = (resumed.epoch, resumed.rank);
        let what = What::Resume { thread, epoch };
        if self.chaos.is_by_rank() {
            self.events.plan_by_rank(rank, what);
        } else {
            self.events.plan(at, what);
        }
    }

    pub(crate) fn cpu(&mut self, cpu: CpuId) -> &mut Cpu {
        &mut self.cpus[cpu.0 as usize]
    }

    /// Whether the machine has a fault for which this holds: it is applied.
    pub(crate) fn has_fault(&self, is: impl Fn(&Fault) -> bool) -> bool {
        self.checks.as_ref().is_some_and(|checks| checks.faults.any(is))
    }

    pub(crate) fn core_of(&self, thread: ThreadId) -> Core {
        self.places.core_of(self.threads[thread].cpu)
    }

    #[inline]
    pub(crate) fn core_of_running(&self) -> Core {
        self.core_of(self.running)
    }
}

/// The number of a thread, in order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(pub(crate) u32);

impl ThreadId {
    /// The number: 0 for the first thread.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }
}

/// A hardware thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CpuId(pub(crate) u32);

/// A core: its hardware threads share their cache.
pub(crate) type Core = u32;

/// A last-level cache.
pub(crate) type Cache = u32;

/// The number of a line, in order of first use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LineId(pub(crate) u32);

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

/// What a thread is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    #[default]
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

#[derive(Default)]
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
    /// Whether its last sleep on one ended by its deadline.
    pub(crate) has_timed_out: bool,
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
    /// Whether it has a CPU.
    pub(crate) fn is_on_cpu(&self) -> bool {
        matches!(self.state, State::Executing | State::Fetching | State::Watching | State::Queueing)
    }
}

/// All threads.
#[derive(Default)]
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

impl World {
    /// The CPUs that are used.
    pub(crate) fn all_cpus(&self) -> impl Iterator<Item = CpuId> + use<> {
        (0..self.cpus.len() as u32).map(CpuId)
    }

    /// Notes the first failure: the run ends.
    pub(crate) fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    fn not_ended(&self) -> Vec<u32> {
        let all = (0..self.threads.0.len() as u32).map(ThreadId);
        all.filter(|&thread| self.threads[thread].state != State::Ended).map(ThreadId::number).collect()
    }

    pub(crate) fn note_deadlock(&mut self) {
        let threads = self.not_ended();
        if !threads.is_empty() {
            self.fail(Failure::Deadlock { threads });
        }
    }

    pub(crate) fn note_endless(&mut self) {
        self.fail(Failure::Endless { steps: self.counts.steps, threads: self.not_ended() });
    }

    /// What a transfer that takes `cost` takes this time.
    pub(crate) fn spread_transfer(&mut self, cost: Ps) -> Ps {
        self.spread(cost, self.costs.spread_of_transfers)
    }

    /// What something in the kernel that takes `cost` takes this time.
    pub(crate) fn spread_call(&mut self, cost: Ps) -> Ps {
        self.spread(cost, self.costs.spread_of_calls)
    }

    fn spread(&mut self, cost: Ps, part: f64) -> Ps {
        if part == 0.0 || self.chaos.is_by_rank() {
            return cost;
        }
        (cost as f64 * (1.0 - part + 2.0 * part * self.rng.f64())) as Ps
    }
}
