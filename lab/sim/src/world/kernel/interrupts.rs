//! Interrupts: of `membarrier`, which ends restartable steps, and of the timer.

use crate::check::Fault;
use crate::time::Ps;
use crate::world::{CpuId, State, ThreadId, What, World};

impl World {
    /// Every other CPU that runs a thread is interrupted, and a restartable step there starts again. Returns
    /// the cost, with the wait for the last one.
    pub(crate) fn interrupt_all(&mut self) -> Ps {
        let barrier = self.costs.membarrier;
        match self.interrupt_running() {
            0 => barrier,
            interrupted => barrier + interrupted * self.costs.kick + self.wait_for_last(),
        }
    }

    /// What is left of an interrupt once it has been sent. It is served while its sender is not through with
    /// the sending: on `this-2` the two take 1,280 and 1,220 ns, and a wait for both 1,430 ns.
    pub(crate) fn wait_for_last(&self) -> Ps {
        self.costs.interrupt.saturating_sub(self.costs.kick)
    }

    /// The same, by the kernel for itself: the interrupts are sent, then the last one's end is waited for.
    /// Returns the cost.
    pub(crate) fn interrupt_and_wait(&mut self) -> Ps {
        match self.interrupt_running() {
            0 => 0,
            interrupted => interrupted * self.costs.kick + self.costs.interrupt,
        }
    }

    /// How many were interrupted.
    fn interrupt_running(&mut self) -> u64 {
        (0..self.cpus.len()).map(|index| u64::from(self.interrupt_at(index))).sum()
    }

    /// Whether CPU `index` was interrupted: it runs another thread.
    pub(crate) fn interrupt_at(&mut self, index: usize) -> bool {
        let Some(thread) = self.cpus[index].current.filter(|&thread| thread != self.running) else {
            return false;
        };
        if let Some(aborted) = &mut self.threads[thread].step {
            *aborted = true;
        }
        if !self.has_fault(|fault| matches!(fault, Fault::NoDrain)) {
            self.flush(thread);
        }
        self.interrupt(thread);
        true
    }

    /// The thread's CPU serves an interrupt first.
    fn interrupt(&mut self, thread: ThreadId) {
        let (interrupt, now) = (self.spread_call(self.costs.interrupt), self.now);
        let other = &mut self.threads[thread];
        if other.state == State::Executing && other.until > now {
            let until = other.until + interrupt;
            self.resume_at(thread, until, State::Executing);
        } else {
            other.debt += interrupt;
        }
    }

    /// A CPU that has something to do has timer ticks, each CPU at its own time. Without them two threads
    /// that hit upon a rhythm would keep it for ever. A thread that polls has them only when it looks: so
    /// polling for what does not come has no events.
    pub(crate) fn plan_tick(&mut self, cpu: CpuId) {
        let tick = self.costs.tick;
        if tick == 0 || self.chaos.is_by_rank() || self.cpu(cpu).tick_planned {
            return;
        }
        let offset = tick * (u64::from(cpu.0) + 1) / (self.cpus.len() as u64 + 1);
        let next = (self.now + tick - offset) / tick * tick + offset;
        self.cpu(cpu).tick_planned = true;
        self.events.plan(next, What::Tick { cpu });
    }

    /// A timer tick.
    pub(crate) fn tick(&mut self, cpu: CpuId) {
        self.cpu(cpu).tick_planned = false;
        if let Some(thread) = self.cpu(cpu).current {
            self.flush(thread);
            self.interrupt(thread);
            if self.threads[thread].state != State::Watching {
                self.plan_tick(cpu);
            }
        }
    }
}
