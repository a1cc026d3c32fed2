//! The end of a run that fails: of its failures the first one counts.

use super::{State, ThreadId, World};
use crate::failure::Failure;

impl World {
    /// Notes the first failure: the run ends.
    pub(crate) fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    fn not_ended(&self) -> Vec<u32> {
        let all = (0..self.threads.0.len() as u32).map(ThreadId);
        all.filter(|&thread| self.threads[thread].state != State::Ended).map(ThreadId::number).collect()
    }

    pub(crate) fn note_deadlock(&mut self) {
        let threads = self.not_ended();
        if !threads.is_empty() {
            self.fail(Failure::Deadlock { threads });
        }
    }

    pub(crate) fn note_endless(&mut self) {
        self.fail(Failure::Endless { steps: self.counts.steps, threads: self.not_ended() });
    }
}
