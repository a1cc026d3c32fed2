//! Spin locks of the kernel, as far as others wait for them: those of the futex hash buckets.
//!
//! First come, first served (ticket and queued spin locks are). A hand-over costs the transfer of a cache
//! line. A waiter keeps its CPU, and is not preempted.

use crate::world::{Core, State, World};

impl World {
    /// The running thread asks for spin lock `index`. Returns whether it has to wait: it is resumed when it
    /// has it.
    pub(crate) fn spin_lock(&mut self, index: usize) -> bool {
        let thread = self.running;
        let core = self.core_of_running();
        self.threads[thread].unpreemptible += 1;
        let lock = &mut self.buckets.0[index];
        if lock.is_held {
            lock.waiting.push_back(thread);
            self.threads[thread].state = State::Queueing;
            return true;
        }
        lock.is_held = true;
        let cost = self.hand_over_cost(self.buckets.0[index].last, core);
        self.threads[thread].debt += cost;
        false
    }

    /// The running thread gives it back.
    pub(crate) fn spin_unlock(&mut self, index: usize) {
        let core = self.core_of_running();
        let thread = &mut self.threads[self.running];
        thread.unpreemptible -= 1;
        let lock = &mut self.buckets.0[index];
        lock.last = Some(core);
        let Some(next) = lock.waiting.pop_front() else {
            lock.is_held = false;
            return;
        };
        let cost = self.hand_over_cost(Some(core), self.core_of(next));
        // What the holder has done, and has not paid for yet, comes first.
        let at = self.now + self.threads[self.running].debt + cost;
        self.resume_at(next, at, State::Queueing);
    }

    fn hand_over_cost(&self, from: Option<Core>, to: Core) -> u64 {
        match from {
            Some(from) if from == to => self.costs.rmw,
            Some(from) => self.places.transfer(self.places.cache_of(from), self.places.cache_of(to)),
            None => self.costs.rmw,
        }
    }
}
