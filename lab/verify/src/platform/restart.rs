//! Restartable steps, and the fence that ends them.
//!
//! A step holds its thread's own mutex; the fence takes and releases the mutex of every other thread. So a
//! step and a fence come one after the other, with the memory order that the barrier gives; steps of
//! different threads overlap, and anything else comes between the look and the store of a step. (A step that
//! a real fence aborts has done nothing: here it starts after the fence in the first place. That it may then
//! report failure is [`Config::aborted`].)
//!
//! [`Config::aborted`]: super::Config::aborted

use spinpark_platform::{AsymmetricBarrier, AtomicU32 as _, Ordering::Relaxed, Ordering::Release};

use super::Loom;
use super::atomic::AtomicU32;
use super::fence::fence;
use super::world::world;
use spinpark_sim::check::Fault;

pub(super) fn release_unless(
    guard: &AtomicU32,
    mask: u32,
    word: &AtomicU32,
    likely: impl FnOnce() -> u32,
) -> bool {
    let world = world();
    if !world.config.restartable {
        return guard.load(Relaxed) & mask == 0
            && word.compare_exchange(likely(), 0, Release, Relaxed).is_ok();
    }
    if std::thread::panicking() {
        return true;
    }
    if world.config.aborted && world.local(|local| !std::mem::replace(&mut local.has_aborted, true)) {
        return false;
    }
    step(|_| {
        let uncontended = world.config.faults.seen(guard.load(Relaxed) & mask) == 0;
        if uncontended {
            word.store(0, Release);
        }
        uncontended
    })
}

/// Runs `body` as a step of the calling thread, whose number it gets.
pub(super) fn step<R>(body: impl FnOnce(usize) -> R) -> R {
    let world = world();
    let me = world.local(|local| local.token) as usize - 1;
    let step = world.steps[me].lock().expect("no step panics");
    let stops_after = world.local(|local| local.stops_after.take());
    let result = body(me);
    world.local(|local| local.stops_after = stops_after);
    drop(step);
    result
}

pub(super) fn asymmetric_barrier() {
    let world = world();
    let faults = world.config.faults;
    let comes_before = faults.has(|fault| matches!(fault, Fault::FenceBefore(_)));
    if !comes_before && !faults.any(|fault| matches!(fault, Fault::NoFence)) {
        fence();
    }
    if faults.looks_back() {
        world.local(|local| local.after_fence = Some(local.written));
    }
}

impl<const S: u64, const N: u64, const P: u64, const R: u32, const D: u64, const W: u64> AsymmetricBarrier
    for Loom<S, N, P, R, D, W>
{
    fn release_unless<const MASK: u32>(
        guard: &AtomicU32,
        word: &AtomicU32,
        likely: impl FnOnce() -> u32,
    ) -> bool {
        release_unless(guard, MASK, word, likely)
    }

    fn asymmetric_barrier() {
        asymmetric_barrier();
    }
}
