//! `membarrier`, and what it ends: restartable steps.

use crate::engine::thread::State;
use crate::engine::time::Ps;
use crate::engine::world::World;

impl World {
    /// Every other CPU that runs a thread is interrupted, and a restartable step there starts again. Returns the cost.
    pub(crate) fn interrupt_all(&mut self) -> Ps {
        let mut interrupted = 0;
        for index in 0..self.cpus.len() {
            let Some(thread) = self.cpus[index].current.filter(|&thread| thread != self.running) else {
                continue;
            };
            interrupted += 1;
            let (interrupt, now) = (self.costs.interrupt, self.now);
            let other = &mut self.threads[thread];
            if let Some(aborted) = &mut other.step {
                *aborted = true;
            }
            if other.state == State::Executing && other.until > now {
                let until = other.until + interrupt;
                self.resume_at(thread, until, State::Executing);
            } else {
                other.debt += interrupt;
            }
        }
        self.costs.membarrier + interrupted * self.costs.kick
    }
}
