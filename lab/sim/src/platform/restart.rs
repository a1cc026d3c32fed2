//! Restartable steps: a look and a store that are aborted by a preemption or an asymmetric barrier in between.
//! The store goes into the thread's store buffer; the fence waits until it has drained, if it came first.

use spinpark_platform::{AsymmetricBarrier, AtomicU32 as _, Ordering::Relaxed, Ordering::Release};

use super::{AtomicU32, Sim, Tuned, faulty};
use crate::access::{before_store, make_store};
use crate::check::Fault;
use crate::engine::{is_inside, note, world};
use crate::platform::interrupt_cpus;
use crate::world::Did;
use crate::world::memory::Write;

/// Runs `look`; if it finds something to store, and nothing has come in between, that is stored.
pub(super) fn step(look: impl FnOnce() -> Option<Write>) -> bool {
    world(|world| {
        let aborted = world.chance(world.chaos.abort);
        world.threads[world.running].step = Some(aborted);
    });
    let write = look();
    if write.is_some() {
        before_store();
    }
    let commits = world(|world| world.threads[world.running].step.take() == Some(false));
    match write {
        Some(write) if commits => make_store(write),
        Some(_) => note(|| Did::Said("the step is aborted")),
        None => return false,
    }
    commits
}

impl<T: Tuned> AsymmetricBarrier for Sim<T> {
    fn release_unless<const MASK: u32>(
        guard: &AtomicU32,
        word: &AtomicU32,
        likely: impl FnOnce() -> u32,
    ) -> bool {
        let faults = faulty::faults();
        let is_uncontended = |guard: u32| faults.seen(guard & MASK) == 0;
        if !is_inside() {
            let uncontended = is_uncontended(guard.value());
            if uncontended {
                word.set(0);
            }
            return uncontended;
        }
        if !world(|world| world.shared.has_steps()) {
            return is_uncontended(guard.load(Relaxed))
                && word.compare_exchange(likely(), 0, Release, Relaxed).is_ok();
        }
        step(|| is_uncontended(guard.load(Relaxed)).then(|| word.write(0)))
    }

    fn asymmetric_barrier() {
        let comes_before = faulty::faults().has(|fault| matches!(fault, Fault::FenceBefore(_)));
        if !comes_before && !faulty::has(|fault| matches!(fault, Fault::NoFence)) {
            interrupt_cpus();
        }
        faulty::fenced();
    }
}
