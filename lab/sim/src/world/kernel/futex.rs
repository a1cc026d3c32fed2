//! Futexes: which threads sleep on which word, in which order.
//!
//! The calls themselves, with their waits for the bucket's lock, are in `platform::calls`; here is what
//! happens while it is held.
//!
//! Of the kernel's spin locks only those are here for which others wait: those of the hash buckets. First
//! come, first served (ticket and queued spin locks are). A hand-over costs the transfer of a cache line. A
//! waiter keeps its CPU, and is not preempted.

use crate::failure::Failure;
use crate::time::Ps;
use crate::world::memory::Place;
use crate::world::memory::object::is_in_region;
use crate::world::{Core, State, ThreadId, What, World};

impl World {
    /// layout.J3: the futex whose word is, or was, at `address`. None: no word that was ever used is there,
    /// and no thread sleeps.
    ///
    /// Not every wake-up finds its word alive: what it was for may have come already. But its thread has
    /// changed the word then, and that says which one is meant.
    pub(crate) fn futex(&mut self, address: usize) -> Option<Place> {
        let running = self.running;
        if let Some(place) = self.threads[running].changed.find(address) {
            return Some(place);
        }
        let stack = self.memory.stack_of(address);
        if stack.is_some_and(|thread| thread != running) {
            self.fail(Failure::Check(format!(
                "thread {} wakes another one on a word of that one's stack, and has not changed that lately: if it has ended, \
                 the compiler decides which word is there",
                running.0
            )));
            return None;
        }
        // A word of its own stack may be a mere key so far.
        if is_in_region(address) || stack.is_some() {
            self.memory.of(address, running)
        } else {
            self.memory.known(address)
        }
    }

    /// The hash bucket of a futex.
    pub(crate) fn bucket(&self, futex: Option<Place>) -> usize {
        let hash = futex.map_or(0, |word| word.line.0 as usize * 31 + word.offset as usize / 4);
        hash % self.buckets.len()
    }

    /// The running thread sleeps on `futex`, at most until `deadline`; the caller suspends it.
    pub(crate) fn sleep_on(&mut self, futex: Place, deadline: Option<Ps>) {
        let thread = self.running;
        self.futexes.entry(futex).or_default().push_back(thread);
        let sleeper = &mut self.threads[thread];
        sleeper.futex = Some(futex);
        sleeper.has_timed_out = false;
        let epoch = self.set_timer(deadline);
        if self.chance(self.chaos.interrupt) {
            let at = self.now + self.long_time();
            self.events.plan(at, What::Signal { thread, epoch });
        }
        self.sleep();
    }

    /// The running thread is about to sleep until `deadline`, if there is one: returns the sleep's number.
    pub(crate) fn set_timer(&mut self, deadline: Option<Ps>) -> u32 {
        let thread = self.running;
        self.threads[thread].timer += 1;
        let epoch = self.threads[thread].timer;
        if let Some(at) = deadline {
            let at = at.max(self.now).saturating_add(self.costs.slack);
            self.events.plan(at, What::Timer { thread, epoch });
        }
        epoch
    }

    /// Neither a wake nor its timer finds the thread any more.
    pub(crate) fn forget_sleeper(&mut self, thread: ThreadId) {
        let sleeper = &mut self.threads[thread];
        sleeper.timer += 1;
        if let Some(futex) = sleeper.futex.take() {
            let queue = self.futexes.get_mut(&futex);
            queue.into_iter().for_each(|queue| queue.retain(|&other| other != thread));
        }
    }

    /// Its deadline has passed, or a signal has come.
    pub(crate) fn end_sleep(&mut self, thread: ThreadId, epoch: u32, has_timed_out: bool) {
        let sleeper = &mut self.threads[thread];
        if sleeper.timer != epoch || sleeper.state != State::Asleep {
            return;
        }
        sleeper.has_timed_out = has_timed_out;
        self.forget_sleeper(thread);
        self.wake(thread);
    }

    /// Takes up to `count` threads out of the queue of a futex, oldest first.
    fn dequeue_sleepers(&mut self, futex: Place, count: u32) -> Vec<ThreadId> {
        let Some(queue) = self.futexes.get_mut(&futex) else { return Vec::new() };
        let taken = queue.drain(..queue.len().min(count as usize)).collect();
        if queue.is_empty() {
            self.futexes.remove(&futex);
        }
        taken
    }

    /// Takes up to `count` sleepers off the futex, oldest first.
    pub(crate) fn take_sleepers(&mut self, futex: Place, count: u32) -> Vec<ThreadId> {
        let taken = self.dequeue_sleepers(futex, count);
        for &thread in &taken {
            let sleeper = &mut self.threads[thread];
            sleeper.futex = None;
            sleeper.timer += 1;
        }
        taken
    }

    /// Moves up to `count` sleepers to another futex; returns how many.
    pub(crate) fn move_sleepers(&mut self, from: Place, to: Place, count: u32) -> u32 {
        let moved = self.dequeue_sleepers(from, count);
        for &thread in &moved {
            self.threads[thread].futex = Some(to);
        }
        self.futexes.entry(to).or_default().extend(&moved);
        moved.len() as u32
    }
}

impl World {
    /// The running thread asks for spin lock `index`. Returns whether it has to wait: it is resumed when it
    /// has it.
    pub(crate) fn spin_lock(&mut self, index: usize) -> bool {
        let thread = self.running;
        let core = self.core_of_running();
        self.threads[thread].unpreemptible += 1;
        let lock = &mut self.buckets[index];
        if lock.is_held {
            lock.waiting.push_back(thread);
            self.threads[thread].state = State::Queueing;
            return true;
        }
        lock.is_held = true;
        let cost = self.hand_over_cost(self.buckets[index].last, core);
        self.threads[thread].debt += cost;
        false
    }

    /// The running thread gives it back.
    pub(crate) fn spin_unlock(&mut self, index: usize) {
        let core = self.core_of_running();
        let thread = &mut self.threads[self.running];
        thread.unpreemptible -= 1;
        let lock = &mut self.buckets[index];
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
        match from.filter(|&from| from != to) {
            Some(from) => self.places.transfer(self.places.cache_of(from), self.places.cache_of(to)),
            None => self.costs.rmw,
        }
    }
}
