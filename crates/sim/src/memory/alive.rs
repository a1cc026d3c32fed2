//! Memory that is gone, in a run that checks a lock.

use crate::check::Checks;
use crate::failure::Failure;
use crate::world::{Thread, ThreadId, World};

impl World {
    /// Whether there is memory at `address`, and it has not been given back; if not, the run fails.
    pub(crate) fn is_alive(&mut self, address: usize) -> bool {
        self.is_alive_for(self.running, address)
    }

    /// The same, of an access by `thread`.
    pub(crate) fn is_alive_for(&mut self, thread: ThreadId, address: usize) -> bool {
        if self.failure.is_some() {
            return false;
        }
        let Some(checks) = &self.checks else { return true };
        let thread = thread.number();
        if checks.is_gone(address) {
            let word = self.name_of(address);
            self.fail(Failure::UseAfterFree { thread, word });
        } else if !self.is_memory(checks, address) {
            self.fail(Failure::Wild { thread });
        }
        self.failure.is_none()
    }

    /// Whether a program that is checked has memory there: on a stack, in an object with a name, in a reader's slot.
    fn is_memory(&self, checks: &Checks, address: usize) -> bool {
        let is_on_stack = |thread: &Thread| thread.stack.contains(&address);
        is_on_stack(&self.threads[self.running])
            || checks.has_object(address)
            || self.shared.has_line(address)
            || self.threads.0.iter().any(is_on_stack)
    }
}
