//! Running a simulation: the loop that resumes coroutines, and how their code reaches the world.
//!
//! Everything of a run happens on one OS thread: the world is in a thread-local cell, which is never borrowed
//! while another coroutine runs. Several OS threads can each run a simulation of their own.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use corosensei::stack::{DefaultStack, Stack};
use corosensei::{Coroutine, CoroutineResult, Yielder};

use crate::failure::Failure;
use crate::report::{Outcome, ThreadTimes};
use crate::time::PS_PER_NS;
use crate::world::{Body, ThreadId, World};

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
) -> std::io::Result<Outcome> {
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
            // What a check finds in a lock is told; what is wrong with the simulation itself is not caught.
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

fn outcome(mut world: World) -> Outcome {
    let ns = |ps: u64| ps / PS_PER_NS;
    let threads = world.threads.0.iter().map(|thread| ThreadTimes {
        on_cpu_ns: ns(thread.times.on_cpu),
        spinning_ns: ns(thread.times.spinning),
        runnable_ns: ns(thread.times.runnable),
        asleep_ns: ns(thread.times.asleep),
    });
    Outcome {
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
