//! What simulated code can do besides using locks: it calls these.
//!
//! Outside of a simulation they do nothing.

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use spinpark_platform::{Event, HIGHEST_PRIORITY};

pub(crate) use crate::access::{access, touch};
use crate::access::{drain, enter_kernel};
use crate::check::Checks;
use crate::engine::{in_run, is_inside, is_stopped, note, settle, spend, suspend, world};
use crate::failure::Failure;
use crate::outcome::Slice;
use crate::time::{PS_PER_NS, Ps, ps};
use crate::world::{Delay, Did, State, ThreadId, World};

/// The word at `address` was exchanged, and what comes next depends on whether that succeeded.
pub(crate) fn branches(address: usize, succeeded: bool) {
    in_run(|world| world.branches(address, succeeded));
}

/// Polls: see [`spinpark_platform::SpinPolicy::spin_hint`].
pub(crate) fn poll() -> u32 {
    if !is_inside() {
        if std::thread::panicking() {
            // A destructor polls while a thread that panicked unwinds: no other can run to end that. The
            // reason is out.
            std::process::abort();
        }
        return 1;
    }
    settle();
    if !world(World::watch) {
        return 1;
    }
    suspend();
    world(World::watched)
}

/// Reads a clock that shows what `show` makes of the virtual time.
pub(crate) fn read_clock(show: impl FnOnce(Ps) -> u64) -> u64 {
    /// A thread that only reads the clock lets others go on now and then.
    const MOST_DEBT: Ps = 1_000 * PS_PER_NS;
    if !is_inside() {
        return show(0);
    }
    let owes = world(|world| {
        let thread = &mut world.threads[world.running];
        thread.debt += world.costs.clock;
        thread.debt > MOST_DEBT
    });
    if owes {
        settle();
    }
    world(|world| show(world.now + world.threads[world.running].debt))
}

/// Computes for `ns` nanoseconds of the CPU's full speed: what the core has not done already while it waited
/// for memory.
pub fn compute(ns: u64) {
    compute_f64(ns as f64);
}

/// Computes for `ns` nanoseconds; a fraction counts.
pub fn compute_f64(ns: f64) {
    if is_inside() {
        spend(|world| world.overlapped(ps(ns)));
        settle();
    }
}

/// Sleeps for `ns` nanoseconds, as `nanosleep` does.
pub fn sleep(ns: u64) {
    if is_inside() {
        enter_kernel(|world| world.costs.syscall);
        world(|world| {
            world.set_timer(Some(world.now + ns * PS_PER_NS));
            world.sleep();
        });
        suspend();
    }
}

/// Lets another thread of this CPU run, if one waits: `sched_yield`.
pub fn yield_now() {
    if !is_inside() {
        return;
    }
    enter_kernel(|world| world.costs.syscall);
    let steps_aside = world(|world| {
        let cpu = world.threads[world.running].cpu;
        let others = !world.cpu(cpu).queue.is_empty() || world.chaos.is_by_rank();
        world.fall_behind();
        if others {
            world.step_aside();
        }
        others
    });
    if steps_aside {
        suspend();
    }
}

/// The virtual time since the start, ns.
#[must_use]
pub fn now() -> f64 {
    in_run(|world| (world.now + world.threads[world.running].debt) as f64 / PS_PER_NS as f64)
}

/// Whether the run's time is over: a thread that works in rounds ends then.
#[must_use]
pub fn is_over() -> bool {
    let is_late = || world(|world| world.now + world.threads[world.running].debt >= world.end);
    is_inside() && (is_late() || is_stopped())
}

/// What kept a thread from its program between `from_ns` and `to_ns` (as [`now`] says), as far as it is
/// remembered.
pub(crate) fn kept_by(thread: ThreadId, from_ns: f64, to_ns: f64, mut each: impl FnMut(Delay, f64)) {
    in_run(|world| {
        let recent = &world.threads[thread].recent;
        if recent.is_over(ps(from_ns)) {
            return; // mostly, where a lock is free
        }
        let kept = recent.between(ps(from_ns), ps(to_ns));
        kept.for_each(|(delay, part)| each(delay, part as f64 / PS_PER_NS as f64));
    });
}

/// For how long the running thread has waited for CPUs, in the run's time, ns.
pub(crate) fn queued_ns() -> f64 {
    in_run(|world| world.threads[world.running].times.runnable as f64 / PS_PER_NS as f64)
}

/// When the run's time is over, ns.
pub(crate) fn end_ns() -> f64 {
    if is_inside() { world(|world| world.end as f64 / PS_PER_NS as f64) } else { f64::INFINITY }
}

/// The running thread.
///
/// # Panics
///
/// Outside of a simulation.
#[must_use]
pub fn thread() -> ThreadId {
    world(|world| world.running)
}

/// The running thread belongs to an address space in which the CPUs that idle after it count themselves, in
/// the word at `counter`: two atomic operations for each sleep. Nothing is done with the word itself.
pub(crate) fn in_address_space(counter: usize) {
    in_run(|world| world.threads[world.running].space = Some(counter));
}

/// The socket on which the running thread is.
#[must_use]
pub fn socket() -> u32 {
    world(|world| world.places.socket_of(world.core_of_running()))
}

/// Interrupts every other CPU that runs a thread, and waits until the last one has answered: what a kernel
/// does to make others forget translations.
pub fn interrupt_others() {
    if is_inside() {
        drain(); // interrupts are sent behind a barrier
        spend(World::interrupt_and_wait);
        settle();
    }
}

/// A random number below `bound`, from the run's seed.
#[must_use]
pub fn random(bound: u64) -> u64 {
    in_run(|world| world.rng.u64(0..bound.max(1)))
}

/// A real-time priority, or none (0) as often.
pub fn random_priority() -> u8 {
    [0, 0, 0, 1, 2, HIGHEST_PRIORITY][random(6) as usize]
}

/// Gives the calling thread a real-time priority; 0: none. Locks put their waiters in order by it; the
/// scheduler does not heed it.
pub fn set_priority(priority: u8) {
    world(|world| world.threads[world.running].local.priority = Some(priority));
}

/// The process goes on as its forked child: the other threads never run again, and the generation is the next
/// one.
///
/// Waits for a moment at which no other thread is in the kernel; returns false if there was none, and nothing
/// has happened.
#[must_use]
pub fn fork() -> bool {
    const TRIES: u32 = 200;
    (0..TRIES).any(|_| {
        drain();
        settle();
        let has_forked = world(World::fork);
        if !has_forked {
            compute(20 + random(200));
        }
        has_forked
    })
}

/// The calling thread runs `handler` between any two of its accesses now and then, as when signals come.
pub fn on_signals(handler: impl Fn() + 'static) {
    world(|world| world.handle_signals(Rc::new(handler)));
}

/// The calling thread begins a call of a lock that it may leave by ending, as by `pthread_exit` in a signal
/// handler: in a sleep, or by [`exit`].
pub fn begin_call_to_leave() {
    world(|world| {
        let local = &mut world.threads[world.running].local;
        (local.exits, local.has_queued) = (true, false);
    });
}

/// The call has returned.
pub fn end_call_to_leave() {
    world(|world| world.threads[world.running].local.exits = false);
}

/// Whether the calling thread may [`exit`] in the call that it has begun: that has not queued yet, or has
/// said how to leave it ([`Futex::or_leave`](spinpark_platform::Futex::or_leave)).
pub fn may_exit() -> bool {
    world(|world| {
        let local = &world.threads[world.running].local;
        local.exits && (!local.has_queued || local.leave.is_some())
    })
}

/// Whether the call has said how to leave it just now.
pub fn has_way_out() -> bool {
    world(|world| {
        let local = &world.threads[world.running].local;
        local.exits && local.leave.is_some()
    })
}

/// The calling thread ends here, after what its call has said is to be done first: nothing on its stack is
/// dropped, and from now on an access to that fails a checked run.
pub fn exit() -> ! {
    let leave = world(|world| {
        let local = &mut world.threads[world.running].local;
        local.exits = false;
        local.leave.take()
    });
    if let Some(leave) = leave {
        // SAFETY: the call is still in `or_leave`, which has put it there.
        unsafe { (*leave.0)() };
    }
    settle();
    drain();
    world(World::exit);
    loop {
        suspend();
    }
}

/// Starts a thread.
pub fn spawn(body: impl FnOnce() + 'static) -> ThreadId {
    enter_kernel(|_| 0);
    world(|world| world.spawn(Box::new(body), None))
}

/// Waits for the end of a thread.
pub fn join(thread: ThreadId) {
    enter_kernel(|_| 0);
    let waits = world(|world| {
        let joiner = world.running;
        let waits = world.threads[thread].state != State::Ended;
        if waits {
            world.threads[thread].joiners.push(joiner);
            world.sleep();
        }
        waits
    });
    if waits {
        suspend();
    }
}

/// Runs kernel code: it costs no system calls, asks for CPUs at no cost, and is not preempted, unless the
/// machine's kernel is.
pub fn in_kernel<R>(act: impl FnOnce() -> R) -> R {
    in_run(|world| {
        let thread = &mut world.threads[world.running];
        (thread.in_kernel, thread.unpreemptible) = (true, thread.unpreemptible + 1);
    });
    let result = act();
    in_run(|world| {
        let thread = &mut world.threads[world.running];
        (thread.in_kernel, thread.unpreemptible) = (false, thread.unpreemptible - 1);
    });
    if is_inside() {
        settle(); // and leaves the CPU, if that was asked for
    }
    result
}

/// Within [`in_kernel`]: leaves the CPU if that was asked for, as `cond_resched` does.
pub fn cond_resched() {
    if is_inside() {
        let set =
            |depth| world(|world| std::mem::replace(&mut world.threads[world.running].unpreemptible, depth));
        let depth = set(0);
        settle();
        set(depth);
    }
}

/// A check of the workload failed: the run ends here.
pub fn fail(what: impl Into<String>) {
    end_with(Failure::Check(what.into()));
}

/// Ends the run.
pub fn end_with(failure: Failure) {
    if is_inside() {
        world(|world| world.fail(failure));
        suspend(); // for ever
    }
}

/// Records that the running thread did `name` since `from_ns` (as [`now`] says), for a timeline.
pub fn mark(name: &Arc<str>, from_ns: f64) {
    in_run(|world| {
        if world.trace.has_slices() {
            let to_ns = (world.now + world.threads[world.running].debt) / PS_PER_NS;
            let (thread, name) = (world.running.0, Some(Arc::clone(name)));
            world.trace.keep(Slice { cpu: None, thread, name, from_ns: from_ns as u64, to_ns });
        }
    });
}

/// Records words in the interleaving.
pub fn say(words: &'static str) {
    note(|| Did::Said(words));
}

/// Does `act` to what a run that checks a lock keeps, with the number of the running thread; in another run,
/// nothing.
fn checks<R: Default>(act: impl FnOnce(&mut Checks, u32) -> R) -> R {
    in_run(|world| {
        let running = world.running.number();
        world.checks.as_mut().map(|checks| act(checks, running)).unwrap_or_default()
    })
}

/// Whether threads have real-time priorities in this run.
#[must_use]
pub fn has_priorities() -> bool {
    checks(|checks, _| checks.realtime)
}

/// The running thread gives back this memory.
pub fn bury(memory: Range<usize>) {
    in_run(|world| world.memory_ends(&memory));
    checks(|checks, _| checks.bury(memory));
}

/// The place of the running thread in the order of arrival.
#[must_use]
pub fn place_in_order() -> Option<usize> {
    checks(|checks, running| checks.place_in_order(running))
}

/// `value` is swapped into the word at `address` now.
#[inline]
pub(crate) fn note_order(address: usize, value: usize) {
    checks(|checks, running| checks.swaps(running, address, value));
}

/// A lock has done something.
pub(crate) fn note_event(event: Event) {
    if let Some((act, running)) = checks(|checks, running| Some((checks.on_event.clone()?, running))) {
        act(running, event);
    }
}
