//! Signals: between two accesses, a thread runs its handler on its own stack, and then goes on.

use std::rc::Rc;

use super::run::world;
use crate::world::memory::Changed;
use crate::world::{Handler, World};

impl World {
    /// Between two signals lie so many accesses, in the mean: a slow path has about as many, so most have a
    /// signal in them.
    const ACCESSES: u64 = 40;

    /// The running thread has a handler from here on.
    pub(crate) fn handle_signals(&mut self, handler: Rc<dyn Fn()>) {
        self.has_handlers = true;
        let running = self.running;
        self.threads[running].handler = Some(Handler(handler));
    }

    /// A signal, if one comes now: not in the kernel, where it waits for the way out, and none during a
    /// handler.
    fn signal(&mut self) -> Option<Interrupted> {
        let thread = &self.threads[self.running];
        if thread.unpreemptible > 0 || thread.in_kernel || thread.handler.is_none() {
            return None;
        }
        if self.rng.u64(0..Self::ACCESSES) != 0 {
            return None;
        }
        let running = self.running;
        let thread = &mut self.threads[running];
        Some(Interrupted {
            handler: thread.handler.take()?,
            in_step: thread.step.take().is_some(),
            changed: std::mem::take(&mut thread.changed),
        })
    }

    /// The handler has ended. A restartable step in which the signal came does not commit.
    fn signal_ends(&mut self, interrupted: Interrupted) {
        let running = self.running;
        let thread = &mut self.threads[running];
        thread.handler = Some(interrupted.handler);
        thread.changed = interrupted.changed;
        thread.step = interrupted.in_step.then_some(true);
    }
}

/// What a signal came upon.
struct Interrupted {
    handler: Handler,
    in_step: bool,
    /// What the thread had changed lately: a wake-up may be next, however much the handler changes.
    changed: Changed,
}

/// Lets a signal come, perhaps, in a run with handlers.
#[cold]
pub(crate) fn receive() {
    if let Some(interrupted) = world(World::signal) {
        (interrupted.handler.0)();
        world(|world| world.signal_ends(interrupted));
    }
}
