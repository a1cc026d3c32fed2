//! When memory begins and ends: words on a thread's stack are gone when their object is.
//!
//! Where an object begins cannot be seen: it is made, and moved to its place. So what ends on a thread's
//! stack is taken for gone until that thread makes another object. An access by another thread meanwhile is
//! one to memory that was given back.

use crate::engine::run::{is_inside, world};

/// The running thread makes an object: what it has had on its stack before may lie under it.
#[inline]
pub(super) fn begin() {
    if is_inside() {
        world(|world| {
            let stack = &world.threads[world.running].stack;
            if let Some(checks) = &mut world.checks {
                checks.revive(stack.clone());
            }
        });
    }
}

/// An object at `address`, of `size` bytes, ends.
#[inline]
pub(super) fn end(address: usize, size: usize) {
    if is_inside() {
        world(|world| {
            let line = world.memory.ends(address);
            if line.is_some_and(|line| world.memory.get(line).buffered > 0) {
                world.memory_ends(&(address..address + size));
            }
            let is_on_stack = world.threads[world.running].stack.contains(&address);
            if let Some(checks) = world.checks.as_mut().filter(|_| is_on_stack) {
                checks.bury(address..address + size);
            }
        });
    }
}
