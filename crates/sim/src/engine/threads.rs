//! The beginning and the end of a thread.

use crate::failure::Failure;
use crate::world::{Body, CpuId, State, Thread, ThreadId, World};

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

    /// The running thread ends where it is: nothing on its stack is dropped, and the stack is gone.
    pub(crate) fn exit(&mut self) {
        let running = self.running;
        let thread = &mut self.threads[running];
        thread.is_gone = true;
        if let Some(checks) = &mut self.checks {
            checks.bury(thread.stack.clone());
        }
        self.resume_at(running, self.now, State::Executing); // to nothing: see `run`
    }

    /// Whether the running thread is to end in the sleep of a lock that it comes to, or comes from.
    pub(crate) fn exits_in_sleep(&mut self) -> bool {
        const OF: u32 = 8; // calls, or a little more: so most threads have some that return
        self.threads[self.running].local.exits && self.rng.u32(0..OF) == 0
    }

    /// Whether the thread named `token` has ended where it was.
    pub(crate) fn has_exited(&self, token: u32) -> bool {
        let thread = token.checked_sub(1).and_then(|number| self.threads.0.get(number as usize));
        thread.is_some_and(|thread| thread.is_gone && thread.state == State::Ended)
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
