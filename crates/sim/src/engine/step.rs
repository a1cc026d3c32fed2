//! A step of the running thread: what it has used goes on the clock, and the thread is suspended if others
//! come first.

use super::run::{is_inside, suspend, world};
use crate::chaos::{POLLING, STOPPED};
use crate::time::Ps;
use crate::world::{CpuId, Did, State, World};

/// Lets all that happens before the running thread's own time happen.
#[inline]
pub(crate) fn settle() {
    if world(World::settle) {
        suspend();
    }
}

/// Adds to what the running thread has used.
#[inline]
pub(crate) fn spend(cost: impl FnOnce(&mut World) -> Ps) {
    world(|world| {
        let cost = cost(world);
        let running = world.running;
        world.threads[running].debt += cost;
    });
}

/// Records a step.
#[inline]
pub(crate) fn note(did: impl FnOnce() -> Did) {
    if is_inside() {
        world(|world| world.note(did()));
    }
}

impl World {
    /// Puts the time that the running thread has used on the clock. Returns whether others come first: then
    /// it is suspended.
    #[inline]
    pub(crate) fn settle(&mut self) -> bool {
        let id = self.running;
        self.counts.steps += 1;
        let mut cost = std::mem::take(&mut self.threads[id].debt);
        if self.is_smt {
            cost = self.slowed(cost);
        }
        if self.chaos.is_on() {
            cost += self.disturb();
        }
        let thread = &mut self.threads[id];
        let may_leave = thread.unpreemptible == 0;
        if may_leave && (thread.to_leave || self.is_preempted()) {
            self.put_back(id, cost);
            return true;
        }
        if self.counts.steps > self.most_steps {
            return true; // for ever: the run fails
        }
        let at = self.now + cost;
        if self.chaos.is_by_rank() {
            self.now = at;
            if !self.events.is_outranked(self.threads[id].rank) && !self.events.comes_before(at) {
                return false;
            }
        } else if !self.events.comes_before(at) {
            self.now = at;
            return false;
        }
        self.resume_at(id, at, State::Executing);
        true
    }

    /// With a busy sibling everything takes longer.
    fn slowed(&self, cost: Ps) -> Ps {
        let cpu = self.threads[self.running].cpu;
        let computes = |other: CpuId| {
            let current = self.cpus[other.0 as usize].current;
            current.is_some_and(|thread| self.threads[thread].state == State::Executing)
        };
        let is_shared = self.places.siblings(cpu, self.cpus.len() as u32).any(computes);
        if is_shared { (cost as f64 / self.costs.smt) as Ps } else { cost }
    }

    /// At a step of the running thread: what holds it up.
    fn disturb(&mut self) -> Ps {
        if self.chaos.is_by_rank() {
            let between = self.chaos.steps_between_changes.max(1);
            if self.rng.u32(0..between) == 0 {
                self.threads[self.running].rank = self.rng.i64(STOPPED..POLLING);
            }
        }
        if self.chance(self.chaos.delay) { self.long_time() } else { 0 }
    }

    /// At a step of the running thread: whether it loses its CPU.
    fn is_preempted(&mut self) -> bool {
        let is_preempted = self.chance(self.chaos.preempt);
        if is_preempted {
            self.yield_to_all();
        }
        is_preempted
    }
}
