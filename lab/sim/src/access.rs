//! Accesses of simulated code to memory: what suspends its thread until they happen.

use crate::engine::{is_inside, note, receive_signal, settle, spend, suspend, world};
use crate::time::Ps;
use crate::world::memory::{Access, Reach, Value, Write};
use crate::world::{Delay, Did, World};

/// The few instructions before an access; what happens before it, happens. A signal may come before them.
#[inline]
fn begin_access() {
    if world(|world| world.has_handlers) {
        receive_signal();
    }
    let others_first = world(|world| {
        let step = world.overlapped(world.costs.step);
        world.threads[world.running].debt += step;
        world.settle()
    });
    if others_first {
        suspend();
    }
}

/// Waits for memory until `has_come` says what has come of that. Returns it, and since when that was waited
/// for, if it was.
#[inline]
fn wait_for<R>(mut has_come: impl FnMut(&mut World) -> Option<R>) -> (R, Option<Ps>) {
    let mut since = None;
    loop {
        if let Some(result) = world(&mut has_come) {
            return (result, since);
        }
        since = since.or_else(|| {
            world(|world| {
                let (running, now) = (world.running, world.now);
                world.threads[running].recent.begin(Delay::Line, now);
                Some(now)
            })
        });
        suspend();
    }
}

/// What the wait of an access has let the core do ahead.
#[inline]
fn end_access(world: &mut World, since: Option<Ps>, is_update: bool) {
    if let Some(asked) = since {
        world.runs_ahead(world.now - asked);
        let (running, now) = (world.running, world.now);
        world.threads[running].recent.end(now);
    }
    if since.is_some() || is_update {
        world.has_come();
    }
    world.has_looked();
}

/// Waits for memory until that `is_over`, which is no access of its own.
fn wait_until(mut is_over: impl FnMut(&mut World) -> bool) {
    let ((), since) = wait_for(|world| is_over(world).then_some(()));
    if since.is_some() {
        world(|world| end_access(world, since, false));
    }
}

/// Loads from memory, or updates it: returns at the moment at which that happens. A load of what the thread
/// has stored itself, and others do not see yet, has that value.
#[inline]
pub(crate) fn access(address: usize, access: Access) -> Option<Value> {
    if !is_inside() {
        return None;
    }
    begin_access();
    let (own, since) = wait_for(|world| match world.reach(address, access) {
        Reach::There => Some(None),
        Reach::Forwarded(value) => Some(Some(value)),
        Reach::Later => None,
    });
    world(|world| end_access(world, since, access == Access::Update));
    own
}

/// Comes to a store of the running thread: [`make_store`] has to be next.
pub(crate) fn before_store() {
    begin_access();
    let ((), since) = wait_for(|world| world.has_room().then_some(()));
    world(|world| end_access(world, since, false));
}

/// Makes a store, which others see when its line has come; returns before that.
pub(crate) fn make_store(write: Write) {
    if !world(|world| world.make_store(write)) {
        suspend(); // for ever
    }
    if world(|world| world.costs.stores == 0) {
        drain();
    }
}

/// Stores.
pub(crate) fn store(write: Write) {
    if is_inside() {
        before_store();
        make_store(write);
    } else {
        // SAFETY: the caller made it from a reference to the word.
        unsafe { write.happen() };
    }
}

/// Waits until all other threads see what the running one has stored.
pub(crate) fn drain() {
    if world(|world| world.threads[world.running].stores.is_empty()) {
        return;
    }
    settle(); // at its own time
    wait_until(World::has_drained);
}

/// The end of the running thread's code: what it has used last goes on the clock before any thread learns of
/// its end.
pub(crate) fn finish() {
    if world(|world| world.threads[world.running].debt > 0) {
        settle();
    }
    drain();
    world(World::ends);
}

/// Waits until a process-wide barrier has ended: it has interrupted all CPUs.
pub(crate) fn wait_for_fence() {
    wait_until(World::has_fenced);
}

/// Enters the kernel, which takes `cost`: stores from before have drained then.
pub(crate) fn enter_kernel(cost: impl FnOnce(&mut World) -> Ps) {
    spend(cost);
    settle();
    drain();
}

/// Accesses memory whose contents do not matter.
pub(crate) fn touch(address: usize, kind: Access) {
    if kind == Access::Store {
        if is_inside() {
            store(Write::unknown(address));
        }
        return;
    }
    access(address, kind);
    note(|| Did::Accessed(kind, address));
}
