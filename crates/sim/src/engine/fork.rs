//! A fork: the process goes on as its child, in which there is no thread but the forking one.
//!
//! What the others had on their stacks, and what they have written, stays as it is, as in the memory of a
//! child.

use crate::world::{State, ThreadId, World};

impl World {
    /// The running thread is the only one from here on, in a process of the next generation.
    ///
    /// Not now, if another thread is in the kernel, whose locks are no part of the process, or has stores
    /// that are still on their way: a child has all of them, or none.
    pub(crate) fn fork(&mut self) -> bool {
        let forking = self.running;
        let others = (0..self.threads.0.len() as u32).map(ThreadId).filter(|&thread| thread != forking);
        let others: Vec<ThreadId> =
            others.filter(|&thread| self.threads[thread].state != State::Ended).collect();
        let is_busy = |&thread: &ThreadId| {
            let thread = &self.threads[thread];
            thread.unpreemptible > 0 || thread.state == State::Queueing || !thread.stores.is_empty()
        };
        if others.iter().any(is_busy) {
            return false;
        }
        for other in others {
            self.threads[other].is_gone = true;
            if self.threads[other].state == State::Asleep {
                self.forget_sleeper(other);
                self.threads[other].state = State::Ended;
                self.alive -= 1;
            }
        }
        self.generation += 1;
        true
    }
}
