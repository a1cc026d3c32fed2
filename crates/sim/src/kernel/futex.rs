//! Futexes: which threads sleep on which word, in which order.
//!
//! The calls themselves, with their waits for the bucket's lock, are in `calls`; here is what happens while it is held.

use spinpark_platform::Wait;

use crate::time::Ps;
use crate::world::{State, ThreadId, What, World};

impl World {
    /// The hash bucket of the word at `address`. By the number of its line, which is the same in every run.
    pub(crate) fn bucket(&mut self, address: usize) -> usize {
        let line = self.memory.of(address).0 as usize;
        (line * 31 + address / 4 % 16) % self.buckets.len()
    }

    /// The running thread sleeps on `address`, at most until `deadline`; the caller suspends it.
    pub(crate) fn sleep_on(&mut self, address: usize, deadline: Option<Ps>) {
        let thread = self.running;
        self.futexes.sleepers.entry(address).or_default().push_back(thread);
        let sleeper = &mut self.threads[thread];
        sleeper.futex = Some(address);
        sleeper.outcome = Wait::Woken;
        sleeper.timer += 1;
        let epoch = sleeper.timer;
        if let Some(at) = deadline {
            let at = at.max(self.now).saturating_add(self.costs.slack);
            self.events.plan(at, What::Timer { thread, epoch });
        }
        if self.chance(self.chaos.interrupt) {
            let at = self.now + self.long_time();
            self.events.plan(at, What::Signal { thread, epoch });
        }
        self.sleep();
    }

    /// Neither a wake nor its timer finds the thread any more.
    pub(crate) fn forget_sleeper(&mut self, thread: ThreadId) {
        let sleeper = &mut self.threads[thread];
        sleeper.timer += 1;
        if let Some(address) = sleeper.futex.take() {
            let queue = self.futexes.sleepers.get_mut(&address);
            queue.into_iter().for_each(|queue| queue.retain(|&other| other != thread));
        }
    }

    /// Its deadline has passed, or a signal has come.
    pub(crate) fn end_sleep(&mut self, thread: ThreadId, epoch: u32, outcome: Wait) {
        let sleeper = &mut self.threads[thread];
        if sleeper.timer != epoch || sleeper.state != State::Asleep {
            return;
        }
        sleeper.outcome = outcome;
        self.forget_sleeper(thread);
        self.wake(thread);
    }

    /// Takes up to `count` sleepers off the futex, oldest first.
    pub(crate) fn take_sleepers(&mut self, address: usize, count: u32) -> Vec<ThreadId> {
        let Some(queue) = self.futexes.sleepers.get_mut(&address) else { return Vec::new() };
        let taken: Vec<_> = queue.drain(..queue.len().min(count as usize)).collect();
        if queue.is_empty() {
            self.futexes.sleepers.remove(&address);
        }
        for &thread in &taken {
            let sleeper = &mut self.threads[thread];
            sleeper.futex = None;
            sleeper.timer += 1;
        }
        taken
    }

    /// Moves up to `count` sleepers to another futex; returns how many.
    pub(crate) fn move_sleepers(&mut self, from: usize, to: usize, count: u32) -> u32 {
        let Some(queue) = self.futexes.sleepers.get_mut(&from) else { return 0 };
        let moved: Vec<_> = queue.drain(..queue.len().min(count as usize)).collect();
        if queue.is_empty() {
            self.futexes.sleepers.remove(&from);
        }
        for &thread in &moved {
            self.threads[thread].futex = Some(to);
        }
        self.futexes.sleepers.entry(to).or_default().extend(&moved);
        moved.len() as u32
    }
}
