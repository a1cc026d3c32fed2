//! The beginning and the end of a thread.

use crate::failure::Failure;
use crate::world::{Body, CpuId, Thread, ThreadId, World};

impl World {
    /// A new thread, runnable at once. The first ones are spread over the CPUs.
    pub(crate) fn spawn(&mut self, body: Body, allowed: Option<(u32, u32)>) -> ThreadId {
        let id = ThreadId(self.threads.0.len() as u32);
        let allowed = allowed.unwrap_or((0, self.cpus.len() as u32));
        let cpu = CpuId(allowed.0 + id.0 % (allowed.1 - allowed.0));
        let mut thread = Thread::new(cpu, self.now, allowed);
        thread.rank = self.chaos.first_rank(&mut self.rng);
        self.threads.0.push(thread);
        self.alive += 1;
        self.born.push((id, body));
        self.wake(id);
        self.counts.wakes -= 1; // it starts, it has not slept
        id
    }

    /// The running thread's code ends. layout.J2: the words on its stack have ended before.
    pub(crate) fn ends(&mut self) {
        if !self.memory.is_clear(self.running) {
            self.fail(Failure::Check(format!(
                "thread {} ends, and a word on its stack has a cache line without being there: it was moved, forgotten, or \
                 used after its end, so that the compiler decides what else is on that line",
                self.running.0
            )));
        }
    }

    /// The running thread has come to its end.
    pub(crate) fn ended(&mut self) {
        self.alive -= 1;
        let thread = self.running;
        for joiner in std::mem::take(&mut self.threads[thread].joiners) {
            self.wake(joiner);
        }
        self.is_running = false;
        self.leave_for_good(thread);
    }
}
