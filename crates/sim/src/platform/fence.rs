//! The kernel's part of a heavy fence: every CPU is interrupted, and its stores drain.

use crate::access::{enter_kernel, wait_for_fence};
use crate::engine::run::{is_inside, world};
use crate::engine::step::{settle, spend};
use crate::here::random;
use crate::world::{Did, World};

/// In a run that is checked, CPUs are interrupted one after the other: one that has been goes on while the
/// next one has not.
fn interrupt_each() {
    let cpus = world(|world| world.cpus.len());
    let first = random(cpus as u64) as usize;
    let mut any = false;
    for number in 0..cpus {
        let interrupted = world(|world| world.interrupt_at((first + number) % cpus));
        spend(|world| if interrupted { world.costs.kick } else { 0 });
        settle();
        any |= interrupted;
    }
    if any {
        spend(|world| world.wait_for_last());
    }
}

/// Interrupts all CPUs, if the machine has restartable steps.
pub(super) fn interrupt() {
    if is_inside() && world(|world| world.shared.has_steps()) {
        enter_kernel(|world| world.costs.syscall);
        world(|world| world.note(Did::Said("heavy fence")));
        if world(|world| world.checks.is_some()) {
            interrupt_each();
        } else {
            spend(World::interrupt_all);
        }
        settle();
        wait_for_fence();
    }
}
