//! The engine: virtual time, what happens in it, and the threads, which are coroutines.
//!
//! Everything of a run happens on one OS thread: the world is in a thread-local cell, which is never borrowed
//! while another coroutine runs. Several OS threads can each run a simulation of their own.
//!
//! In this order: the loop that resumes coroutines, and how their code reaches the world; a step of the
//! running thread; what is planned happens, until a thread is to run; the beginning and the end of a thread;
//! a fork; signals; the end of all runs.
//!
//! After a fork the process goes on as its child, in which there is no thread but the forking one. What the
//! others had on their stacks, and what they have written, stays as it is, as in the memory of a child. When
//! a signal comes, between two accesses, a thread runs its handler on its own stack, and then goes on.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use corosensei::stack::{DefaultStack, Stack};
use corosensei::{Coroutine, CoroutineResult, Yielder};

use crate::failure::Failure;
use crate::outcome::{SimulationResult, ThreadTimes};
use crate::time::{PS_PER_NS, Ps};
use crate::world::chaos::{POLLING, STOPPED};
use crate::world::memory::Changed;
use crate::world::{Body, CpuId, Did, Handler, State, Thread, ThreadId, What, World};

/// Stack of a simulated thread, bytes. Pages that are not touched take no memory.
const STACK_BYTES: usize = 128 << 10;

type Fiber = Coroutine<(), (), (), DefaultStack>;

thread_local! {
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
    /// How the running coroutine suspends itself; null outside of one.
    static YIELDER: Cell<*const Yielder<(), ()>> = const { Cell::new(std::ptr::null()) };
    /// Stacks of coroutines that have ended.
    static STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

/// Whether simulated code runs on this OS thread right now.
///
/// A thread that panics is not inside any more: what its destructors do to locks happens at once.
#[inline]
pub(crate) fn is_inside() -> bool {
    !YIELDER.get().is_null() && !std::thread::panicking()
}

/// The world of the run on this OS thread. `act` must not suspend.
#[inline]
pub(crate) fn world<R>(act: impl FnOnce(&mut World) -> R) -> R {
    WORLD.with_borrow_mut(|world| act(world.as_mut().expect("this is called from simulated code")))
}

/// Does `act` in the world of the run; outside of simulated code, nothing.
#[inline]
pub(crate) fn in_run<R: Default>(act: impl FnOnce(&mut World) -> R) -> R {
    if is_inside() { world(act) } else { R::default() }
}

/// Suspends the running coroutine.
#[inline]
pub(crate) fn suspend() {
    let yielder = YIELDER.get();
    // SAFETY: not null, because simulated code runs; it is the running coroutine's own, set when that was
    // resumed, and lives as long as the coroutine's body.
    let yielder = unsafe { &*yielder };
    yielder.suspend(());
    YIELDER.set(yielder);
}

/// A coroutine for a thread that runs `body` and then `finish`; its stack is at `place`.
fn fiber(body: Body, finish: impl Fn() + 'static, place: &mut Range<usize>) -> std::io::Result<Fiber> {
    let stack = match STACKS.with_borrow_mut(Vec::pop) {
        Some(stack) => stack,
        None => DefaultStack::new(STACK_BYTES)?,
    };
    *place = stack.limit().get()..stack.base().get();
    Ok(Coroutine::with_stack(stack, move |yielder: &Yielder<(), ()>, ()| {
        YIELDER.set(yielder);
        body();
        finish();
    }))
}

/// Runs until every thread has ended, or something is wrong. Each thread calls `finish` after its body.
///
/// # Errors
///
/// No memory for a thread's stack.
pub(crate) fn run(
    mut start: World,
    first: Vec<(Body, Option<(u32, u32)>)>,
    finish: impl Fn() + Copy + 'static,
) -> std::io::Result<SimulationResult> {
    for (body, allowed) in first {
        start.spawn(body, allowed);
    }
    assert!(!is_inside(), "a simulation runs within another one on the same OS thread");
    WORLD.set(Some(start));
    let result = resume_all(finish);
    let world = WORLD.take();
    result.map(|()| outcome(world.expect("it was put there above")))
}

/// The coroutines, by number of their thread.
///
/// A run that failed, or was stopped, or in which simulated code panicked, leaves threads in the middle of
/// something: what is on their stacks is given up. The stacks themselves are not: a process can only have so
/// many mappings, and each takes two.
#[derive(Default)]
struct Fibers {
    all: Vec<Option<Fiber>>,
    /// Stacks of threads that a fork has left behind. Queues lead to them until the end of the run.
    left_behind: Vec<DefaultStack>,
}

impl Drop for Fibers {
    fn drop(&mut self) {
        YIELDER.set(std::ptr::null());
        for mut fiber in self.all.drain(..).flatten() {
            // SAFETY: what is on the stack is not dropped, but leaked; whatever it refers to stays alive with
            // it. What refers to it are words of locks whose owners are on such stacks too, and the world's,
            // which does not follow them.
            unsafe { fiber.force_reset() };
            keep(fiber);
        }
        STACKS.with_borrow_mut(|stacks| stacks.append(&mut self.left_behind));
    }
}

/// Keeps the stack of a coroutine that is over, for another one.
fn keep(ended: Fiber) {
    STACKS.with_borrow_mut(|stacks| stacks.push(ended.into_stack()));
}

/// What a panic says.
fn words_of(panic: &(dyn Any + Send)) -> String {
    let words = panic.downcast_ref::<&str>().map(|words| (*words).to_owned());
    words.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

fn resume_all(finish: impl Fn() + Copy + 'static) -> std::io::Result<()> {
    let mut fibers = Fibers::default();
    while let Some(ThreadId(next)) = world(|world| {
        for (id, body) in world.born.drain(..) {
            debug_assert_eq!(id.0 as usize, fibers.all.len());
            let stack = &mut world.threads[id].stack;
            fibers.all.push(Some(fiber(body, finish, stack)?));
            world.memory.add_stack(stack.clone());
        }
        Ok::<_, std::io::Error>(world.next())
    })? {
        let slot = &mut fibers.all[next as usize];
        if world(|world| world.threads[ThreadId(next)].is_gone) {
            if let Some(mut gone) = slot.take() {
                // SAFETY: as in `Fibers::drop`; its stack stays as it is until the end of the run.
                unsafe { gone.force_reset() };
                fibers.left_behind.push(gone.into_stack());
            }
            world(World::ended);
            continue;
        }
        let Some(fiber) = slot else { continue };
        let result = catch_unwind(AssertUnwindSafe(|| fiber.resume(())));
        YIELDER.set(std::ptr::null());
        let is_over = match result {
            Ok(result) => matches!(result, CoroutineResult::Return(())),
            // What a check finds in a lock is told; an error of the simulation itself is not caught.
            Err(panic) if world(|world| world.checks.is_some()) => {
                let message = words_of(panic.as_ref());
                world(|world| world.fail(Failure::Panic { thread: next, message }));
                true
            }
            Err(panic) => resume_unwind(panic),
        };
        if is_over {
            if let Some(ended) = slot.take() {
                keep(ended);
            }
            world(World::ended);
        }
    }
    Ok(())
}

fn outcome(mut world: World) -> SimulationResult {
    let ns = |ps: u64| ps / PS_PER_NS;
    let threads = world.threads.0.iter().map(|thread| ThreadTimes {
        on_cpu_ns: ns(thread.times.on_cpu),
        spinning_ns: ns(thread.times.spinning),
        runnable_ns: ns(thread.times.runnable),
        asleep_ns: ns(thread.times.asleep),
    });
    SimulationResult {
        elapsed_ns: ns(world.now),
        measured_ns: ns(world.now.min(world.end)),
        threads: threads.collect(),
        busy_ns: world.cpus.iter().map(|cpu| ns(cpu.busy)).collect(),
        interleaving: world.interleaving(),
        slices: std::mem::take(&mut world.trace.slices),
        slices_cut: world.trace.cut,
        failure: world.failure.take(),
        counts: world.counts,
    }
}

/// Lets all that happens before the running thread's own time happen.
#[inline]
pub(crate) fn settle() {
    if world(World::settle) {
        suspend();
    }
}

/// Adds to what the running thread has used.
#[inline]
pub(crate) fn spend(cost: impl FnOnce(&mut World) -> Ps) {
    world(|world| {
        let cost = cost(world);
        world.threads[world.running].debt += cost;
    });
}

/// Records a step.
#[inline]
pub(crate) fn note(did: impl FnOnce() -> Did) {
    if is_inside() {
        world(|world| world.note(did()));
    }
}

impl World {
    /// Puts the time that the running thread has used on the clock. Returns whether others come first: then
    /// it is suspended.
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

    /// At a step of the running thread: what holds it up.
    fn disturb(&mut self) -> Ps {
        if self.chaos.is_by_rank() {
            let between = self.chaos.steps_between_changes.max(1);
            if self.rng.u32(0..between) == 0 {
                self.threads[self.running].rank = self.rng.i64(STOPPED..POLLING);
            }
        }
        if self.chance(self.chaos.delay) { self.long_time() } else { 0 }
    }

    /// At a step of the running thread: whether it loses its CPU.
    fn is_preempted(&mut self) -> bool {
        let is_preempted = self.chance(self.chaos.preempt);
        if is_preempted {
            self.yield_to_all();
        }
        is_preempted
    }
}

/// Later than anything that is waited for: half of what the clock can show.
const LAST: Ps = Ps::MAX / 2;

impl World {
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
            What::Timer { thread, epoch } => self.end_sleep(thread, epoch, true),
            What::Signal { thread, epoch } => self.end_sleep(thread, epoch, false),
            What::Slice { cpu, epoch } => self.end_slice(cpu, epoch),
            What::Share { cpu, epoch } => self.end_share(cpu, epoch),
            What::Quota { is_new } => self.give_out(is_new),
            What::Tick { cpu } => self.tick(cpu),
            What::Balance => self.balance(),
        }
        None
    }
}

impl World {
    /// A new thread, runnable at once. The first ones are spread over the CPUs.
    pub(crate) fn spawn(&mut self, body: Body, allowed: Option<(u32, u32)>) -> ThreadId {
        let id = ThreadId(self.threads.0.len() as u32);
        let allowed = allowed.unwrap_or((0, self.cpus.len() as u32));
        let cpu = CpuId(allowed.0 + id.0 % (allowed.1 - allowed.0));
        let rank = self.chaos.first_rank(&mut self.rng);
        let (on_since, since) = (self.now, self.now);
        self.threads.0.push(Thread { cpu, allowed, rank, on_since, since, ..Thread::default() });
        self.alive += 1;
        self.born.push((id, body));
        self.wake(id);
        self.counts.wakes -= 1; // it starts, it has not slept
        id
    }

    /// The running thread's code ends. layout.J2: the words on its stack have ended before.
    pub(crate) fn ends(&mut self) {
        if !self.memory.is_clear(self.running) {
            self.fail(Failure::Check(format!(
                "thread {} ends, and a word on its stack has a cache line without being there: it was moved, forgotten, or \
                 used after its end, so that the compiler decides what else is on that line",
                self.running.0
            )));
        }
    }

    /// The running thread ends where it is: nothing on its stack is dropped, and the stack is gone.
    pub(crate) fn exit(&mut self) {
        let running = self.running;
        let thread = &mut self.threads[running];
        thread.is_gone = true;
        if let Some(checks) = &mut self.checks {
            checks.bury(thread.stack.clone());
        }
        self.resume_at(running, self.now, State::Executing); // to nothing: see `run`
    }

    /// Whether the running thread is to end in the sleep of a lock that it comes to, or comes from.
    pub(crate) fn exits_in_sleep(&mut self) -> bool {
        const OF: u32 = 8; // calls, or a little more: so most threads have some that return
        self.threads[self.running].local.exits && self.rng.u32(0..OF) == 0
    }

    /// Whether the thread named `token` has ended where it was.
    pub(crate) fn has_exited(&self, token: u32) -> bool {
        let thread = token.checked_sub(1).and_then(|number| self.threads.0.get(number as usize));
        thread.is_some_and(|thread| thread.is_gone && thread.state == State::Ended)
    }

    /// The running thread has come to its end.
    pub(crate) fn ended(&mut self) {
        self.alive -= 1;
        let thread = self.running;
        for joiner in std::mem::take(&mut self.threads[thread].joiners) {
            self.wake(joiner);
        }
        self.is_running = false;
        self.take_off(thread, State::Ended);
    }
}

impl World {
    /// The running thread is the only one from here on, in a process of the next generation.
    ///
    /// Not now, if another thread is in the kernel, whose locks are no part of the process, or has stores
    /// that are still on their way: a child has all of them, or none.
    pub(crate) fn fork(&mut self) -> bool {
        let forking = self.running;
        let others = (0..self.threads.0.len() as u32).map(ThreadId).filter(|&thread| thread != forking);
        let others: Vec<ThreadId> =
            others.filter(|&thread| self.threads[thread].state != State::Ended).collect();
        let is_busy = |&thread: &ThreadId| {
            let thread = &self.threads[thread];
            thread.unpreemptible > 0 || thread.state == State::Queueing || !thread.stores.is_empty()
        };
        if others.iter().any(is_busy) {
            return false;
        }
        for other in others {
            self.threads[other].is_gone = true;
            if self.threads[other].state == State::Asleep {
                self.forget_sleeper(other);
                self.threads[other].state = State::Ended;
                self.alive -= 1;
            }
        }
        self.generation += 1;
        true
    }
}

impl World {
    /// The number of accesses between two signals, in the mean: a slow path has about as many, so most have a
    /// signal in them.
    const ACCESSES: u64 = 40;

    /// The running thread has a handler from here on.
    pub(crate) fn handle_signals(&mut self, handler: Rc<dyn Fn()>) {
        self.has_handlers = true;
        self.threads[self.running].handler = Some(Handler(handler));
    }

    /// A signal, if one comes now: not in the kernel, where it waits for the way out, and none during a
    /// handler.
    fn signal(&mut self) -> Option<Interrupted> {
        let thread = &self.threads[self.running];
        if thread.unpreemptible > 0 || thread.in_kernel || thread.handler.is_none() {
            return None;
        }
        if self.rng.u64(0..Self::ACCESSES) != 0 {
            return None;
        }
        let thread = &mut self.threads[self.running];
        Some(Interrupted {
            handler: thread.handler.take()?,
            in_step: thread.step.take().is_some(),
            changed: std::mem::take(&mut thread.changed),
        })
    }

    /// The handler has ended. A restartable step in which the signal came does not commit.
    fn signal_ends(&mut self, interrupted: Interrupted) {
        let thread = &mut self.threads[self.running];
        thread.handler = Some(interrupted.handler);
        thread.changed = interrupted.changed;
        thread.step = interrupted.in_step.then_some(true);
    }
}

/// What a signal came upon.
struct Interrupted {
    handler: Handler,
    in_step: bool,
    /// What the thread had changed lately: a wake-up may be next, however much the handler changes.
    changed: Changed,
}

/// Lets a signal come, perhaps, in a run with handlers.
#[cold]
pub(crate) fn receive_signal() {
    if let Some(interrupted) = world(World::signal) {
        (interrupted.handler.0)();
        world(|world| world.signal_ends(interrupted));
    }
}

/// Whether all runs are to end.
static IS_STOPPED: AtomicBool = AtomicBool::new(false);

/// Ends every run of this process soon, those that are going on and those to come: for Ctrl-C.
pub fn stop() {
    IS_STOPPED.store(true, Relaxed); // a flag by itself: a run that sees it reads nothing that was written before it
}

#[inline]
pub(crate) fn is_stopped() -> bool {
    IS_STOPPED.load(Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::workload::Setting;

    /// A run that does not come to its end gives its stacks back.
    #[test]
    fn stacks_are_kept() {
        let kept = || STACKS.with_borrow(Vec::len);
        let mut setting = Setting::new(Machine::plain(4), "classic-mutex-2003", "hot-lock", 30);
        for steps in [500, u64::MAX, 700] {
            setting.most_steps = steps;
            setting.for_ns = 100_000;
            let has_failed = setting.run().unwrap().outcome.failure.is_some();
            assert_eq!((has_failed, kept()), (steps < u64::MAX, 30));
        }
    }
}
