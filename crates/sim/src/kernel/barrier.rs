//! `membarrier`, and what it ends: restartable steps.

use crate::engine::thread::State;
use crate::engine::time::Ps;
use crate::engine::world::World;

impl World {
    /// Every other CPU that runs a thread is interrupted, and a restartable step there starts again. Returns the cost.
    pub(crate) fn interrupt_all(&mut self) -> Ps {
        self.costs.membarrier + self.interrupt_running() * self.costs.kick
    }

    /// The same, by the kernel for itself: the interrupts are sent, then the last one's end is waited for. Returns the cost.
    pub(crate) fn interrupt_and_wait(&mut self) -> Ps {
        match self.interrupt_running() {
            0 => 0,
            interrupted => interrupted * self.costs.kick + self.costs.interrupt,
        }
    }

    /// How many were interrupted.
    fn interrupt_running(&mut self) -> u64 {
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
        interrupted
    }
}
