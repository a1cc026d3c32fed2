//! Whether there is memory where a thread accesses some.

use crate::failure::Failure;
use crate::world::memory::Place;
use crate::world::{ThreadId, World};

impl World {
    /// The place of the word at `address`, which the running thread accesses; none: there is no memory, or it
    /// has been given back, and the run fails.
    #[inline]
    pub(crate) fn alive(&mut self, address: usize) -> Option<Place> {
        if self.checks.is_some() && self.is_gone_for(self.running, address) {
            return None;
        }
        let place = self.memory.of(address, self.running);
        if place.is_none() {
            self.fail(Failure::Wild { thread: self.running.number() });
        }
        place
    }

    /// The number by which the platform knows the lock at `address`: not 0.
    pub(crate) fn name_of_lock(&mut self, address: usize) -> usize {
        self.shared.name_of(self.memory.of(address, self.running).ok_or(address))
    }

    /// Whether the run has failed, or fails because the memory at `address`, which `thread` accesses, has
    /// been given back.
    pub(crate) fn is_gone_for(&mut self, thread: ThreadId, address: usize) -> bool {
        if self.failure.is_none() && self.checks.as_ref().is_some_and(|checks| checks.is_gone(address)) {
            let word = self.name_of(address);
            self.fail(Failure::UseAfterFree { thread: thread.number(), word });
        }
        self.failure.is_some()
    }
}
