//! The state of a simulation, which all other parts read and change.
//!
//! Beside the data, here are the methods that all parts need: to plan that a thread goes on, to fail, to draw
//! by lot. How the state changes is in the parts above: `memory`, `kernel`, `trace` and `engine` are methods
//! of [`World`]. They call each other's methods, and name only what is here.

pub(crate) mod ahead;
mod costs;
mod disturb;
mod event;
mod failing;
mod ids;
mod kernel;
pub(crate) mod memory;
mod places;
pub(crate) mod platform;
mod recent;
mod record;
mod spread;
mod thread;

use crate::chaos::{Chaos, Order};
use crate::check::{Checks, Fault};
use crate::failure::Failure;
use crate::machine::Machine;
use crate::report::Counts;
use crate::time::Ps;
use costs::Costs;
use event::Events;
pub(crate) use event::What;
pub use ids::ThreadId;
pub(crate) use ids::{Cache, Core, CpuId, LineId};
use kernel::{Cpu, Futexes, Quota, SpinLocks};
use memory::{Buffers, Lines};
use places::Places;
pub(crate) use recent::Delay;
pub use record::Record;
pub(crate) use record::{Did, Trace};
use thread::Threads;
pub(crate) use thread::{Handler, State, Thread};

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
    pub(crate) buckets: SpinLocks,
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
    pub(crate) shared: platform::Shared,
    /// What is watched, and what is wrong with the machine, in a run that checks a lock.
    pub(crate) checks: Option<Box<Checks>>,
    /// How often the process has forked.
    pub(crate) generation: u32,
    /// Whether any thread has a handler.
    pub(crate) has_handlers: bool,
    /// Order by rank: how often a thread has fallen behind all others.
    last_rank: i64,
}

impl World {
    pub(crate) fn new(
        machine: &Machine,
        seed: u64,
        end: Ps,
        chaos: Chaos,
        trace: Trace,
        most_steps: u64,
    ) -> Self {
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
            buckets: SpinLocks::new(machine.kernel.futex_buckets),
            rng: fastrand::Rng::with_seed(seed),
            chaos,
            counts: Counts::default(),
            trace,
            failure: None,
            born: Vec::new(),
            alive: 0,
            end,
            is_smt: shape.threads > 1,
            most_steps,
            shared: platform::Shared::default(),
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

    /// Whether the machine has a fault for which this holds.
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

    /// The order in which threads run.
    pub(crate) fn order(&self) -> Order {
        self.chaos.order
    }
}
