//! Signals: a thread does something else between two accesses, on its own stack, and goes on.

use std::rc::Rc;

use super::thread::Handler;
use super::world::World;

impl World {
    /// Between two signals lie so many accesses, in the mean.
    const ACCESSES: u64 = 40;

    /// The running thread has a handler from here on.
    pub(crate) fn handle_signals(&mut self, handler: Rc<dyn Fn()>) {
        self.has_handlers = true;
        let running = self.running;
        self.threads[running].handler = Some(Handler(handler));
    }

    /// Whether a signal comes now: not in the kernel, where one waits for the way out.
    #[inline]
    pub(crate) fn signal(&mut self) -> Option<Rc<dyn Fn()>> {
        if self.has_handlers { self.drawn_signal() } else { None }
    }

    #[cold]
    fn drawn_signal(&mut self) -> Option<Rc<dyn Fn()>> {
        let thread = &self.threads[self.running];
        if thread.unpreemptible > 0 || thread.in_kernel || thread.handler.is_none() {
            return None;
        }
        if self.rng.u64(0..Self::ACCESSES) != 0 {
            return None;
        }
        self.threads[self.running].handler.clone().map(|handler| handler.0)
    }

    /// The handler begins; returns what the thread was in the middle of: a restartable step, which does not commit.
    pub(crate) fn enter_handler(&mut self) -> Interrupted {
        let running = self.running;
        let thread = &mut self.threads[running];
        Interrupted { handler: thread.handler.take(), in_step: thread.step.take().is_some() }
    }

    /// The handler has ended.
    pub(crate) fn leave_handler(&mut self, interrupted: Interrupted) {
        let running = self.running;
        let thread = &mut self.threads[running];
        thread.handler = interrupted.handler;
        thread.step = interrupted.in_step.then_some(true);
    }
}

/// What a signal came upon.
pub(crate) struct Interrupted {
    handler: Option<Handler>,
    in_step: bool,
}
