//! What a mutant's machine does wrong: see [`Fault`](crate::check::Fault).
//!
//! Of the faults of memory order, [`Fault::Relaxed`] changes stores that are sequentially consistent, and
//! nothing else: this memory is x86's. The loom models find the others.

use std::cell::Cell;

use spinpark_platform::Ordering;

use crate::check::{Fault, Faults, Op};
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
    IS_ON.set(
        world.checks.as_ref().is_some_and(|checks| checks.faults.any(|fault| !matches!(fault, Fault::None))),
    );
}

pub(super) fn faults() -> Faults {
    world(|world| world.checks.as_ref().map(|checks| checks.faults).unwrap_or_default())
}

/// Whether the machine has a fault for which this holds.
pub(super) fn has(is: impl Fn(&Fault) -> bool) -> bool {
    is_on() && faults().any(is)
}

/// The part of `mask` that a step looks at.
pub(super) fn mask(mask: u32) -> u32 {
    if is_on() { faults().mask(mask) } else { mask }
}

/// A compare-exchange that wrote `value`: an answer for a load after a heavy fence.
pub(super) fn wrote(value: u32) {
    if faults().looks_back() {
        world(|world| {
            world.threads[world.running].local.written = value;
        });
    }
}

/// What an AND with `mask` keeps.
pub(super) fn masked(mask: u32) -> u32 {
    if is_on() { mask | faults().kept() } else { mask }
}

/// What a load of `value` says.
pub(super) fn seen(value: u32) -> u32 {
    if !faults().looks_back() {
        return value;
    }
    world(|world| world.threads[world.running].local.after_fence.take().unwrap_or(value))
}

/// The order with which a store happens.
pub(super) fn order(op: Op) -> Ordering {
    faults().order(op)
}

/// What a swap that is to write `value` writes.
pub(super) fn swapped(op: Op, value: u32) -> u32 {
    if faults().clears(op) { 0 } else { value }
}

/// After a heavy fence.
pub(super) fn fenced() {
    if is_on() && faults().looks_back() {
        world(|world| {
            let local = &mut world.threads[world.running].local;
            local.after_fence = Some(local.written);
        });
    }
}
