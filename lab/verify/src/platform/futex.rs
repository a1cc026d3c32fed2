//! The futex: a FIFO queue per address. The comparison and the start of the sleep are one step.
//!
//! A sleeper is parked, so an execution in which all threads sleep ends as loom's "deadlock" report: that is
//! what a lost wake-up looks like. Loom's `unpark` orders memory, which the contract does not promise; the
//! orderings of the locks are checked by the executions in which the waiter finds its word changed and does
//! not sleep.

use std::cell::Cell;
use std::rc::Rc;

use loom::thread;
use spinpark_platform::AtomicU32 as _;
use spinpark_platform::Ordering::AcqRel;
use spinpark_platform::{Clock, Clocks as _, Deadline, Futex, Wait, WakeOp};

use super::Loom;
use super::atomic::AtomicU32;
use super::sleepers::Sleeper;
use super::world::world;
use spinpark_sim::check::Fault;

pub(super) fn wait(word: &AtomicU32, expected: u32, deadline: Option<Deadline>) -> Wait {
    let world = world();
    if world.config.spurious && world.local(|local| !std::mem::replace(&mut local.has_slept, true)) {
        return Wait::Woken;
    }
    let address = std::ptr::from_ref(word).addr();
    world.step(world.queue_and_clock(address, deadline.is_some()));
    let is_changed = world.undivided(|| word.newest()) != expected;
    if is_changed && !world.config.faults.any(|fault| matches!(fault, Fault::NoCompare)) {
        return Wait::ValueChanged;
    }
    let sleeps_on = deadline.is_some() && world.config.faults.any(|fault| matches!(fault, Fault::NoTimeouts));
    let deadline = deadline.filter(|_| !sleeps_on);
    let ends = deadline.is_none() && world.config.faults.any(|fault| matches!(fault, Fault::TimedSleeps));
    let soon = || Deadline { clock: Clock::Monotonic, at: world.shown(Clock::Monotonic) + 1 };
    let deadline = if ends { Some(soon()) } else { deadline };
    if deadline.is_some_and(|deadline| deadline.at <= world.shown(deadline.clock)) {
        return Wait::TimedOut;
    }
    let outcome = Rc::new(Cell::new(None));
    let sleeper = Sleeper { address, deadline, thread: thread::current(), outcome: Rc::clone(&outcome) };
    world.sleepers.add([sleeper]);
    loop {
        thread::park();
        if let Some(outcome) = outcome.get() {
            world.hold_back();
            return if ends { Wait::Woken } else { outcome };
        }
    }
}

/// A span of the monotonic clock; a mutant's is one of the wall clock.
pub(super) fn wait_for(word: &AtomicU32, expected: u32, span: u64) -> Wait {
    let by_wall = world().config.faults.any(|fault| matches!(fault, Fault::SpansByWall));
    let clock = if by_wall { Clock::Realtime } else { Clock::Monotonic };
    wait(word, expected, Some(Deadline { clock, at: Loom::<1>::now(clock).saturating_add(span) }))
}

pub(super) fn wake(address: usize, count: u32) -> u32 {
    if std::thread::panicking() {
        return 0;
    }
    let world = world();
    if world.config.faults.any(|fault| matches!(fault, Fault::NoWakes)) {
        return 0;
    }
    world.step([world.bus(address)]);
    let woken = world.sleepers.take(count, |sleeper| sleeper.address == address);
    let number = woken.len() as u32;
    for sleeper in woken {
        sleeper.end(Wait::Woken);
    }
    number
}

/// Whether the machine has the calls for two words; a mutant's may not.
fn has_two_word_calls() -> bool {
    !std::thread::panicking() && !world().config.faults.any(|fault| matches!(fault, Fault::OneWordOnly))
}

pub(super) fn requeue(
    from: &AtomicU32,
    expected: Option<u32>,
    wake: u32,
    to: usize,
    moved: u32,
) -> Option<u32> {
    let holds = |expected| world().undivided(|| from.newest()) == expected;
    move_sleepers(std::ptr::from_ref(from).addr(), || expected.is_none_or(holds), wake, to, moved)
}

/// If `may`, in one step with that.
pub(super) fn move_sleepers(
    address: usize,
    may: impl FnOnce() -> bool,
    wake: u32,
    to: usize,
    moved: u32,
) -> Option<u32> {
    if !has_two_word_calls() {
        return None;
    }
    let world = world();
    world.step([world.bus(address), world.bus(to)]);
    if !may() {
        return None;
    }
    let on_from = |sleeper: &Sleeper| sleeper.address == address;
    let woken = world.sleepers.take(wake, on_from);
    let mut followers = world.sleepers.take(moved, on_from);
    let number = woken.len() + followers.len();
    for follower in &mut followers {
        follower.address = to;
    }
    world.sleepers.add(followers);
    for sleeper in woken {
        sleeper.end(Wait::Woken);
    }
    Some(number as u32)
}

pub(super) fn wake_op(
    first: usize,
    wake: u32,
    second: &AtomicU32,
    op: WakeOp,
    wake_second: u32,
) -> Option<u32> {
    if !has_two_word_calls() {
        return None;
    }
    let world = world();
    let address = std::ptr::from_ref(second).addr();
    world.step([world.bus(first), world.bus(address)]);
    let old = world.undivided(|| second.newest());
    world.undivided(|| second.swap(op.apply(old), AcqRel));
    let mut woken = world.sleepers.take(wake, |sleeper| sleeper.address == first);
    if op.holds(old) {
        woken.extend(world.sleepers.take(wake_second, |sleeper| sleeper.address == address));
    }
    let number = woken.len() as u32;
    for sleeper in woken {
        sleeper.end(Wait::Woken);
    }
    Some(number)
}

impl<const S: u64, const N: u64, const P: u64, const R: u32, const D: u64, const W: u64> Futex
    for Loom<S, N, P, R, D, W>
{
    fn futex_wait(word: &AtomicU32, expected: u32, deadline: Option<Deadline>) -> Wait {
        wait(word, expected, deadline)
    }

    fn futex_wait_for(word: &AtomicU32, expected: u32, span: u64) -> Wait {
        wait_for(word, expected, span)
    }

    fn sleep_cancellably(sleep: &dyn Fn() -> Wait) -> Wait {
        let leave = world().local(|local| std::mem::take(&mut local.leaves).then(|| local.leave.take()));
        if let Some(leave) = leave {
            let leave = leave.expect("a thread sleeps where it may leave");
            // SAFETY: put there by `or_leave`, in which this thread still is.
            unsafe { (*leave)() };
            std::panic::resume_unwind(Box::new("left"));
        }
        sleep()
    }

    fn or_leave<T>(leave: &dyn Fn(), body: impl FnOnce() -> T) -> T {
        // SAFETY: only the lifetime changes; the pointer is used while `leave` is borrowed here.
        let leave: *const dyn Fn() = unsafe { std::mem::transmute(std::ptr::from_ref(leave)) };
        let outer = world().local(|local| local.leave.replace(leave));
        let result = body();
        world().local(|local| local.leave = outer);
        result
    }

    fn unlocked_queue(_: *const AtomicU32) {
        if std::thread::panicking() {
            return;
        }
        if let Some(put_off) = world().local(|local| local.put_off.take()) {
            wake(put_off.happen(), 1);
        }
    }

    fn futex_wake(key: *const AtomicU32, count: u32) -> u32 {
        wake(key as usize, count)
    }

    fn futex_requeue(
        from: &AtomicU32,
        expected: Option<u32>,
        wake: u32,
        to: *const AtomicU32,
        moved: u32,
    ) -> Option<u32> {
        requeue(from, expected, wake, to as usize, moved)
    }

    /// A word has one life here: none is where another was.
    fn futex_gather(key: *const AtomicU32, _told: u32, crowd: *const AtomicU32) -> Option<()> {
        move_sleepers(key as usize, || true, 0, crowd as usize, 1).map(|_| ())
    }

    fn futex_wake_op(
        first: *const AtomicU32,
        wake: u32,
        second: &AtomicU32,
        op: WakeOp,
        wake_second: u32,
    ) -> Option<u32> {
        wake_op(first as usize, wake, second, op, wake_second)
    }
}
