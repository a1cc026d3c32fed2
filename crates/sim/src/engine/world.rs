//! The state of a simulation.

use spinpark_platform::Wait;

use super::costs::Costs;
use super::event::{Events, What};
use super::places::Places;
use super::stop::is_stopped;
use super::thread::{State, Thread, ThreadId, Threads};
use crate::chaos::{Chaos, Order};
use crate::check::Checks;
use crate::failure::Failure;
use crate::kernel::{Cpu, CpuId, Futexes, SpinLocks};
use crate::machine::Machine;
use crate::memory::{Buffers, Core, Lines};
use crate::report::Counts;
use crate::time::Ps;
use crate::trace::Trace;

/// Later than anything that is waited for: half of what the clock can show.
const LAST: Ps = Ps::MAX / 2;

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
    /// How many threads wait for CPUs.
    pub(crate) queued: usize,
    pub(crate) balance_planned: bool,
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
    pub(crate) shared: crate::platform::Shared,
    /// What is watched, and what is wrong with the machine, in a run that checks a lock.
    pub(crate) checks: Option<Box<Checks>>,
    /// How often the process has forked.
    pub(crate) generation: u32,
    /// Whether any thread has a handler.
    pub(crate) has_handlers: bool,
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
            queued: 0,
            balance_planned: false,
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
            shared: crate::platform::Shared::default(),
            checks: None,
            generation: 0,
            has_handlers: false,
        }
    }

    /// A new thread, runnable at once. The first ones are spread over the CPUs.
    pub(crate) fn spawn(&mut self, body: Body, allowed: Option<(u32, u32)>) -> ThreadId {
        let id = ThreadId(self.threads.0.len() as u32);
        let allowed = allowed.unwrap_or((0, self.cpus.len() as u32));
        let cpu = CpuId(allowed.0 + id.0 % (allowed.1 - allowed.0));
        let mut thread = Thread::new(cpu, self.now, allowed);
        thread.rank = self.chaos.first_rank(&mut self.rng);
        self.threads.0.push(thread);
        self.alive += 1;
        self.born.push((id, body));
        self.wake(id);
        self.counts.wakes -= 1; // it starts, it has not slept
        id
    }

    /// How much of the time from `from` to `to` is the run's. What comes after that is in no share.
    #[inline]
    pub(crate) fn in_time(&self, from: Ps, to: Ps) -> Ps {
        to.min(self.end).saturating_sub(from)
    }

    /// The running thread has come to its end.
    pub(crate) fn ended(&mut self) {
        self.alive -= 1;
        let thread = self.running;
        for joiner in std::mem::take(&mut self.threads[thread].joiners) {
            self.wake(joiner);
        }
        self.is_running = false;
        self.leave_for_good(thread);
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

    /// Puts the time that the running thread has used on the clock. Returns whether others come first: then it is suspended.
    #[inline]
    pub(crate) fn settle(&mut self) -> bool {
        let id = self.running;
        self.counts.steps += 1;
        let mut cost = std::mem::take(&mut self.threads[id].debt);
        if self.is_smt {
            cost = self.slowed(cost);
        }
        if self.chaos.is_on() {
            cost += self.disturb();
        }
        let thread = &mut self.threads[id];
        let may_leave = thread.unpreemptible == 0;
        if may_leave && (thread.to_leave || self.is_preempted()) {
            self.put_back(id, cost);
            return true;
        }
        if self.counts.steps > self.most_steps {
            return true; // for ever: the run fails
        }
        let at = self.now + cost;
        if self.chaos.is_by_rank() {
            self.now = at;
            if !self.events.is_outranked(self.threads[id].rank) && !self.events.comes_before(at) {
                return false;
            }
        } else if !self.events.comes_before(at) {
            self.now = at;
            return false;
        }
        self.resume_at(id, at, State::Executing);
        true
    }

    /// With a busy sibling everything takes longer.
    fn slowed(&self, cost: Ps) -> Ps {
        let cpu = self.threads[self.running].cpu;
        let computes = |other: CpuId| {
            let current = self.cpus[other.0 as usize].current;
            current.is_some_and(|thread| self.threads[thread].state == State::Executing)
        };
        let is_shared = self.places.siblings(cpu, self.cpus.len() as u32).any(computes);
        if is_shared { (cost as f64 / self.costs.smt) as Ps } else { cost }
    }

    /// Lets time pass until a thread is to run; none: nothing is left to happen, or the run has failed.
    pub(crate) fn next(&mut self) -> Option<ThreadId> {
        self.is_running = false;
        loop {
            // What was planned besides, such as the end of a slice, does not belong to the run.
            if self.failure.is_some() || self.alive == 0 {
                return None;
            }
            if self.counts.steps > self.most_steps {
                self.note_endless();
                return None;
            }
            let Some((at, what)) = self.events.take(self.now) else {
                self.note_deadlock();
                return None;
            };
            if is_stopped() {
                self.fail(Failure::Stopped);
                return None;
            }
            if at > LAST {
                self.note_endless(); // a thread polls for what does not come
                return None;
            }
            self.counts.events += 1;
            self.now = self.now.max(at);
            if let Some(thread) = self.happen(what) {
                self.running = thread;
                self.is_running = true;
                return Some(thread);
            }
        }
    }

    fn happen(&mut self, what: What) -> Option<ThreadId> {
        match what {
            What::Arrival(line) => return self.arrive(line),
            What::Resume { thread, epoch } if self.threads[thread].epoch == epoch => {
                if self.is_blocked(thread) {
                    return None;
                }
                let resumed = &mut self.threads[thread];
                resumed.until = self.now; // by rank, it may go on before its time
                if resumed.state != State::Watching {
                    resumed.state = State::Executing;
                }
                return Some(thread);
            }
            What::Resume { .. } => {}
            What::Drain { thread } => self.end_hold(thread),
            What::Timer { thread, epoch } => self.end_sleep(thread, epoch, Wait::TimedOut),
            What::Signal { thread, epoch } => self.end_sleep(thread, epoch, Wait::Woken),
            What::Slice { cpu, epoch } => self.end_slice(cpu, epoch),
            What::Tick { cpu } => self.tick(cpu),
            What::Balance => self.balance(),
        }
        None
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
