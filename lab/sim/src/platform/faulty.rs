//! What a mutant's machine does wrong: see [`Fault`](crate::check::Fault).
//!
//! Of the faults of memory order, [`Fault::Relaxed`] changes stores that are sequentially consistent, and
//! nothing else: this memory is x86's. The loom models find the others.

use std::cell::Cell;

use crate::check::{Applied, Fault, Faults};
use crate::engine::{is_inside, world};
use crate::world::World;

thread_local! {
    /// Whether the run on this OS thread has faults.
    static IS_ON: Cell<bool> = const { Cell::new(false) };
}

/// Whether anything is wrong with the machine.
#[inline]
pub(super) fn is_on() -> bool {
    IS_ON.get() && is_inside()
}

/// At the start of a run.
pub(crate) fn set(world: &World) {
    let faults = world.checks.as_ref().map(|checks| checks.faults).unwrap_or_default();
    IS_ON.set(faults.are_there());
    Applied::begin(faults);
}

/// What is wrong with the machine.
pub(super) fn faults() -> Faults {
    let of_run = || world(|world| world.checks.as_ref().map(|checks| checks.faults));
    if is_on() { of_run().unwrap_or_default() } else { Faults::default() }
}

/// Whether the machine has a fault for which this holds: it is applied.
pub(super) fn has(is: impl Fn(&Fault) -> bool) -> bool {
    faults().any(is)
}

/// A compare-exchange that wrote `value`: an answer for a load after an asymmetric barrier.
pub(super) fn wrote(value: u32) {
    if faults().looks_back() {
        world(|world| {
            world.threads[world.running].local.written = value;
        });
    }
}

/// What a load of `value` says.
pub(super) fn seen(value: u32) -> u32 {
    if !faults().looks_back() {
        return value;
    }
    let written = world(|world| world.threads[world.running].local.after_fence.take());
    written.map_or(value, |written| faults().looked_back(written))
}

/// After an asymmetric barrier.
pub(super) fn fenced() {
    if faults().looks_back() {
        world(|world| {
            let local = &mut world.threads[world.running].local;
            local.after_fence = Some(local.written);
        });
    }
}
