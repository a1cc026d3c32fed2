//! What is planned happens, in its order, until a thread is to run.

use spinpark_platform::Wait;

use super::stop::is_stopped;
use crate::failure::Failure;
use crate::time::Ps;
use crate::world::{State, ThreadId, What, World};

/// Later than anything that is waited for: half of what the clock can show.
const LAST: Ps = Ps::MAX / 2;

impl World {
    /// Lets time pass until a thread is to run; none: nothing is left to happen, or the run has failed.
    pub(crate) fn next(&mut self) -> Option<ThreadId> {
        self.is_running = false;
        loop {
            // What was planned besides, such as the end of a slice, does not belong to the run.
            if self.failure.is_some() || self.alive == 0 {
                return None;
            }
            if self.counts.steps > self.most_steps {
                self.note_endless();
                return None;
            }
            let Some((at, what)) = self.events.take(self.now) else {
                self.note_deadlock();
                return None;
            };
            if is_stopped() {
                self.fail(Failure::Stopped);
                return None;
            }
            if at > LAST {
                self.note_endless(); // a thread polls for what does not come
                return None;
            }
            self.counts.events += 1;
            self.now = self.now.max(at);
            if let Some(thread) = self.happen(what) {
                self.running = thread;
                self.is_running = true;
                return Some(thread);
            }
        }
    }

    fn happen(&mut self, what: What) -> Option<ThreadId> {
        match what {
            What::Arrival(line) => return self.arrive(line),
            What::Resume { thread, epoch } if self.threads[thread].epoch == epoch => {
                if self.is_blocked(thread) {
                    return None;
                }
                let resumed = &mut self.threads[thread];
                resumed.until = self.now; // by rank, it may go on before its time
                if resumed.state != State::Watching {
                    resumed.state = State::Executing;
                }
                return Some(thread);
            }
            What::Resume { .. } => {}
            What::Drain { thread } => self.end_hold(thread),
            What::Timer { thread, epoch } => self.end_sleep(thread, epoch, Wait::TimedOut),
            What::Signal { thread, epoch } => self.end_sleep(thread, epoch, Wait::Woken),
            What::Slice { cpu, epoch } => self.end_slice(cpu, epoch),
            What::Share { cpu, epoch } => self.end_share(cpu, epoch),
            What::Quota { is_new } => self.give_out(is_new),
            What::Tick { cpu } => self.tick(cpu),
            What::Balance => self.balance(),
        }
        None
    }
}
