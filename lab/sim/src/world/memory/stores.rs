//! The store buffer: the stores that a thread has made, and that no other thread sees yet.
//!
//! A core goes on past a store. The store waits, with its value, until the cache line has come to the core
//! for writing. This is x86-TSO (Owens, Sarkar, Sewell, *A better x86 memory model: x86-TSO*, TPHOLs 2009;
//! Intel SDM vol. 3, §8.2, has the same rules in words): a store may be seen later than a load that follows
//! it in the program, and nothing else is reordered. UltraSPARC's TSO is the same.
//!
//! | state of a store   | set by                            | left by                                                  |
//! |--------------------|-----------------------------------|----------------------------------------------------------|
//! | *held* (checks)    | its store, by lot (`Chaos`)       | `What::Drain`, `flush`, its thread's `wait_for_stores`   |
//! | *waiting*          | its store; the end of *held*      | drained, when it is the oldest and its line is usable    |
//! | *drained*          | `drain`: its value is in memory   | –                                                        |
//!
//! | label | invariant                                                    | kept by                                         |
//! |-------|--------------------------------------------------------------|-------------------------------------------------|
//! | B1    | a thread's stores drain in the order of its program          | `drain` takes the oldest only; a held one stops |
//! | B2    | a store is seen by all other threads at one moment, when its | values are in memory, which all share; `drain`  |
//! |       | core has the line, and no other has a copy                   | asks `is_usable`; by rank lines are everywhere  |
//! | B3    | a thread's load has its own latest store to that address, or | `forwarded` looks from the youngest to the      |
//! |       | else memory's value                                          | oldest; loads happen in order                   |
//! | B4    | read-modify-writes, full fences, sequentially consistent     | they wait for `has_drained`, and nothing        |
//! |       | stores (`XCHG`), system calls, a thread's end: all its       | happens between its answer and them             |
//! |       | stores have drained                                          |                                                 |
//! | B5    | a thread runs nowhere, and no other one on its CPU, before   | `leaves_cpu`, `is_blocked` at each resumption   |
//! |       | the stores from before it left that CPU have drained         |                                                 |
//! | B6    | a process-wide barrier returns after every store has drained | `flush` notes how many there are as it          |
//! |       | that was in a buffer when its CPU was interrupted            | interrupts; `has_fenced` counts                 |
//! | B7    | a store to memory that has ended writes nothing              | `memory_ends`, at each drop of a word           |
//! | B8    | every store drains                                           | `ask` keeps a request for each of the oldest    |
//! |       |                                                              | lines; an arrival, and `What::Drain`, drain     |
//!
//! What costs time: a store takes its thread none, unless the buffer is full (`cpu.stores`); then it waits
//! for the oldest one. The core asks for the lines of its oldest stores side by side. A store to a line that
//! the core has, with no older one before it, drains at once.
//!
//! Memory behind a [`Cell`](crate::Cell), and memory whose contents do not matter, is written at once, and
//! only its line is waited for here: in a program without data races no thread can tell.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize};

use crate::time::Ps;
use crate::world::chaos::POLLING;
use crate::world::memory::{Reach, Request};
use crate::world::{Core, Did, LineId, State, Thread, ThreadId, What, World};

/// For how many stores a core asks for the lines side by side at most: as of other misses (`ahead`).
const ASKED: usize = 4;

impl World {
    /// The running thread is about to store. Returns whether there is room; if not, it is resumed when there
    /// is.
    pub(crate) fn has_room(&mut self) -> bool {
        let depth = self.costs.stores.max(1);
        self.threads[self.running].stores.stores.len() < depth || self.waits(depth - 1)
    }

    /// The running thread's stores have to be seen by all. Returns whether they are; if not, it is resumed
    /// when they are.
    pub(crate) fn has_drained(&mut self) -> bool {
        let running = self.running;
        if self.threads[running].stores.is_empty() {
            return true;
        }
        self.release_held(running);
        self.drain(running);
        self.threads[running].stores.is_empty() || self.waits(0)
    }

    /// The running thread waits until at most `left` of its stores are left: not, then.
    fn waits(&mut self, left: usize) -> bool {
        let running = &mut self.threads[self.running];
        running.stores.wanted = Some(left);
        running.state = State::Fetching;
        false
    }

    /// Makes a store of the running thread: there is room. Returns whether there is memory; if not, the run
    /// has failed.
    pub(crate) fn make_store(&mut self, write: Write) -> bool {
        let Some(place) = self.alive(write.address) else { return false };
        let (id, core, thread) = (place.line, self.core_of_running(), self.running);
        let is_of_other = self.memory.is_of_other(id, thread);
        self.threads[thread].changed.add(write.address, place, is_of_other);
        let is_held = self.chance(self.chaos.buffered);
        let is_first = self.threads[thread].stores.is_empty();
        if is_first && !is_held && self.may_write(id, core) {
            // SAFETY: the running thread has a reference to it.
            let did = unsafe { write.happen() };
            self.note(did);
            self.changed(id, core);
            self.note_polled(id, Access::Store);
            return true;
        }
        self.note(Did::Buffered(write));
        self.memory.get(id).buffered += 1;
        self.buffers.stores += 1;
        let buffer = &mut self.threads[thread].stores;
        buffer.core = core;
        buffer.made += 1;
        buffer.stores.push_back(Store { write, line: id, is_asked: false, is_held, is_over: false });
        if is_held {
            self.plan_drain(thread);
        }
        let early = self.asking_for();
        let early = if early <= self.since_lost(id, core) { early } else { 0 };
        self.drain_and_ask(thread, early);
        true
    }

    /// Whether `core` can write the line now.
    fn may_write(&self, id: LineId, core: Core) -> bool {
        self.chaos.is_by_rank() || self.memory.lines[id.0 as usize].is_usable(core, true, self.now)
    }

    /// What the running thread has stored to `address` last, if that has not drained.
    #[inline]
    pub(crate) fn forwarded(&self, address: usize) -> Option<Value> {
        let stores = &self.threads[self.running].stores.stores;
        let is_it = |store: &&Store| store.write.address == address && !store.is_over;
        stores.iter().rev().find(is_it).map(|store| store.write.value)
    }

    /// When a store that is held may drain.
    fn plan_drain(&mut self, thread: ThreadId) {
        if self.chaos.is_by_rank() {
            // Before threads that poll, or they might wait for it for ever.
            let rank = self.rng.i64(0..POLLING);
            self.events.plan_by_rank(rank, What::Drain { thread });
        } else {
            let at = self.now + self.long_time();
            self.events.plan(at, What::Drain { thread });
        }
    }

    /// A store has been held for long enough.
    pub(crate) fn end_hold(&mut self, thread: ThreadId) {
        let stores = &mut self.threads[thread].stores.stores;
        if let Some(store) = stores.iter_mut().find(|store| store.is_held) {
            store.is_held = false;
            self.drain(thread);
        }
    }

    fn release_held(&mut self, thread: ThreadId) {
        self.threads[thread].stores.stores.iter_mut().for_each(|store| store.is_held = false);
    }

    /// A line has come for which the thread's core has asked to store to it.
    pub(super) fn line_came(&mut self, thread: ThreadId, id: LineId) {
        let stores = &mut self.threads[thread].stores.stores;
        stores.iter_mut().filter(|store| store.line == id).for_each(|store| store.is_asked = false);
        self.drain(thread);
    }

    /// B1, B2: the thread's oldest stores drain, as far as their lines are there.
    fn drain(&mut self, thread: ThreadId) {
        self.drain_and_ask(thread, 0);
    }

    fn drain_and_ask(&mut self, thread: ThreadId, early: Ps) {
        let before = self.threads[thread].stores.drained;
        loop {
            let buffer = &self.threads[thread].stores;
            let core = buffer.core;
            let Some(oldest) = buffer.stores.front() else { break };
            if oldest.is_held || !self.may_write(oldest.line, core) {
                break;
            }
            let store = self.threads[thread].stores.stores.pop_front().expect("it is there");
            self.threads[thread].stores.drained += 1;
            self.buffers.stores -= 1;
            self.memory.get(store.line).buffered -= 1;
            self.happens(thread, &store);
            self.changed(store.line, core);
        }
        self.ask(thread, early);
        if self.threads[thread].stores.drained != before {
            self.goes_on(thread);
        }
    }

    fn happens(&mut self, thread: ThreadId, store: &Store) {
        let address = store.write.address;
        if store.is_over || self.checks.is_some() && self.is_gone_for(thread, address) {
            return; // it writes nothing; or the run has failed
        }
        // SAFETY: B7: a word that has been dropped has no value here any more.
        let did = unsafe { store.write.happen() };
        self.note_of(thread, did);
    }

    /// B8: asks for the lines of the oldest stores; the thread's core has done so for the last one for
    /// `early`.
    fn ask(&mut self, thread: ThreadId, early: Ps) {
        let (now, core) = (self.now, self.threads[thread].stores.core);
        for index in 0..self.threads[thread].stores.stores.len().min(ASKED) {
            let stores = &self.threads[thread].stores.stores;
            let (id, is_last) = (stores[index].line, index + 1 == stores.len());
            let is_asked = stores.iter().take(ASKED).any(|store| store.line == id && store.is_asked);
            if is_asked || self.may_write(id, core) {
                continue;
            }
            self.threads[thread].stores.stores[index].is_asked = true;
            let early = if is_last { early } else { 0 };
            let request = Request { thread, core, exclusive: true, is_store: true, early, asked: now };
            self.request(id, request);
        }
    }

    /// Some of the thread's stores have drained, or are none any more: lets those go on that wait for that.
    fn goes_on(&mut self, thread: ThreadId) {
        let now = self.now;
        let buffer = &mut self.threads[thread].stores;
        let left = buffer.stores.len();
        let resumes = buffer.wanted.take_if(|wanted| left <= *wanted).is_some();
        if resumes {
            self.resume_at(thread, now, State::Fetching);
        }
        let buffer = &mut self.threads[thread].stores;
        if left == 0 && std::mem::take(&mut buffer.is_left) {
            self.buffers.left -= 1;
            for follower in std::mem::take(&mut self.threads[thread].stores.followers) {
                self.resume_at(follower, now, State::Fetching);
            }
        }
        for waiting in std::mem::take(&mut self.buffers.fences) {
            self.resume_at(waiting, now, State::Fetching);
        }
    }

    /// The thread's CPU is interrupted: what is in its buffer is not held any longer, and a barrier can wait
    /// for it.
    pub(crate) fn flush(&mut self, thread: ThreadId) {
        let buffer = &mut self.threads[thread].stores;
        if !buffer.is_empty() {
            buffer.fenced = buffer.made;
            self.release_held(thread);
            self.drain(thread);
        }
    }

    /// B5: the thread leaves its CPU.
    pub(crate) fn leaves_cpu(&mut self, thread: ThreadId) {
        if self.threads[thread].stores.is_empty() {
            return;
        }
        self.flush(thread);
        let buffer = &mut self.threads[thread].stores;
        if !buffer.is_empty() && !std::mem::replace(&mut buffer.is_left, true) {
            self.buffers.left += 1;
            let cpu = self.threads[thread].cpu;
            self.cpu(cpu).left_by = Some(thread);
        }
    }

    /// B5: whether the thread, which is about to run, has to wait; if so, it is resumed later.
    #[inline]
    pub(crate) fn is_blocked(&mut self, thread: ThreadId) -> bool {
        if self.buffers.left == 0 {
            return false;
        }
        let cpu = self.threads[thread].cpu;
        let before = self.cpu(cpu).left_by.filter(|&before| self.threads[before].stores.is_left);
        let own = self.threads[thread].stores.is_left.then_some(thread);
        let Some(blocking) = own.or(before) else { return false };
        self.threads[blocking].stores.followers.push(thread);
        self.threads[thread].state = State::Fetching;
        true
    }

    /// B6: whether all stores have drained for which a barrier waits; if not, the running thread is resumed
    /// when some have.
    pub(crate) fn has_fenced(&mut self) -> bool {
        let is_behind = |thread: &Thread| thread.stores.drained < thread.stores.fenced;
        if self.buffers.stores == 0 || !self.threads.0.iter().any(is_behind) {
            return true;
        }
        let running = self.running;
        self.buffers.fences.push(running);
        self.threads[running].state = State::Fetching;
        false
    }

    /// B7: the running thread ends the objects in `memory`.
    pub(crate) fn memory_ends(&mut self, memory: &std::ops::Range<usize>) {
        if self.buffers.stores == 0 {
            return;
        }
        let running = self.running;
        for (number, thread) in self.threads.0.iter_mut().enumerate() {
            let is_own = number == running.0 as usize;
            let ended = thread.stores.stores.iter_mut().filter(|store| memory.contains(&store.write.address));
            ended.for_each(|store| {
                store.write.value = Value::Unknown;
                store.is_over |= is_own;
            });
        }
    }

    /// What a load of `address` by the running thread finds in the buffer: it costs what a hit costs.
    #[inline]
    pub(super) fn reach_own_store(&mut self, address: usize, id: LineId) -> Option<Reach> {
        let value = self.forwarded(address)?;
        let cost = self.overlapped(self.costs.hit);
        self.threads[self.running].debt += cost;
        self.note_polled(id, Access::Load);
        Some(Reach::Forwarded(value))
    }
}

/// A store that waits.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) write: Write,
    pub(crate) line: LineId,
    /// Its core has asked for the line for it.
    pub(crate) is_asked: bool,
    /// In a run with [`Chaos`](crate::Chaos): it stays, whatever its core has.
    pub(crate) is_held: bool,
    /// Its thread has ended the object itself: the memory is its own for whatever comes next, so the store is
    /// no late one.
    pub(crate) is_over: bool,
}

/// A thread's stores, oldest first.
#[derive(Debug, Default)]
pub(crate) struct StoreBuffer {
    pub(crate) stores: VecDeque<Store>,
    /// The core that made them.
    pub(crate) core: Core,
    /// How many there were until now, and how many of them have drained.
    pub(crate) made: u64,
    pub(crate) drained: u64,
    /// A barrier waits until this number has drained.
    pub(crate) fenced: u64,
    /// Its thread goes on when at most this number is left.
    pub(crate) wanted: Option<usize>,
    /// Its thread has left the CPU, and these wait for the rest.
    pub(crate) is_left: bool,
    pub(crate) followers: Vec<ThreadId>,
}

impl StoreBuffer {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.stores.is_empty()
    }
}

/// What the buffers of all threads have in common.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    /// How many stores are in them.
    pub(crate) stores: usize,
    /// How many threads have left a CPU with stores that have not drained.
    pub(crate) left: usize,
    /// Threads that wait for a barrier.
    pub(crate) fences: Vec<ThreadId>,
}

/// What is done to a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Load,
    Store,
    /// A read-modify-write, whether it changes anything or not.
    Update,
}

/// What a store writes, and where to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    /// It has been written, or does not matter.
    Unknown,
    /// A word.
    Word(*const AtomicU32, u32),
    /// A pointer.
    Pointer(*const AtomicPtr<()>, *mut ()),
    /// A reader's slot.
    Slot(*const AtomicUsize, usize),
}

/// A store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write {
    pub(crate) address: usize,
    pub(crate) value: Value,
}

impl Write {
    pub(crate) fn unknown(address: usize) -> Self {
        Self { address, value: Value::Unknown }
    }

    pub(crate) fn word(word: &AtomicU32, value: u32) -> Self {
        Self { address: std::ptr::from_ref(word).addr(), value: Value::Word(word, value) }
    }

    pub(crate) fn pointer<T>(pointer: &AtomicPtr<T>, value: *mut T) -> Self {
        let place = std::ptr::from_ref(pointer).cast::<AtomicPtr<()>>();
        Self { address: place.addr(), value: Value::Pointer(place, value.cast()) }
    }

    pub(crate) fn slot(slot: &AtomicUsize, value: usize) -> Self {
        Self { address: std::ptr::from_ref(slot).addr(), value: Value::Slot(slot, value) }
    }

    /// Puts the value into memory. Returns what to say of it.
    ///
    /// # Safety
    ///
    /// The word has not been dropped.
    pub(crate) unsafe fn happen(self) -> Did {
        match self.value {
            Value::Unknown => Did::Accessed(Access::Store, self.address),
            Value::Word(word, value) => {
                // SAFETY: it came from a reference, and is not dropped, as the caller says; all accesses are
                // atomic.
                let old = unsafe { &*word }.swap(value, Relaxed);
                Did::Wrote(self.address, old, value)
            }
            Value::Pointer(pointer, value) => {
                // SAFETY: as above. A pointer to a sized type is as large as any other.
                let old = unsafe { &*pointer }.swap(value, Relaxed);
                Did::Pointer(self.address, Some(old.addr()), value.addr())
            }
            Value::Slot(slot, value) => {
                // SAFETY: as above.
                unsafe { &*slot }.store(value, Relaxed);
                Did::Accessed(Access::Store, self.address)
            }
        }
    }
}
