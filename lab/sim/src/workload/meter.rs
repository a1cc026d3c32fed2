//! What is measured at a lock, from outside: waits and their lengths, how long it was held, and that it
//! excludes.
//!
//! When a lock is free although a thread wants it, [`Gap`] says what its next owner was kept by. A
//! [`Histogram`] has bins of powers of two, as document 001 has them.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::here;
use crate::locks::{AnyCondvar, AnyMutex, AnyRwLock};
use crate::outcome::add;
use crate::world::memory::object::Object;
use crate::world::{Delay, ThreadId};

/// A contended acquisition that takes less has not waited, ns.
const AT_ONCE_NS: f64 = 100.0;

/// What of a place's figures belongs to the run's time: what a part of that time can be made of. What lies
/// after its end, while the remaining waiters get the lock one after the other, is cut off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InTime {
    /// Acquisitions.
    pub acquisitions: u64,
    /// Of those, how many were contended.
    pub contended: u64,
    /// Of those, how many took less than 100 ns.
    pub at_once: u64,
    /// Waiting, also for acquisitions that came later, ns.
    pub wait_ns: f64,
    /// Holding, ns.
    pub hold_ns: f64,
    /// It was held so by any thread, ns: what readers hold together counts once, and waits in a condition
    /// variable not at all.
    pub held_ns: f64,
    /// Of that, its owner could go on, and had no CPU, ns. Of readers this is not known.
    pub off_cpu_ns: f64,
    /// It was free although it was wanted, until it was acquired so.
    pub gap: Gap,
}

impl InTime {
    fn add(&mut self, other: &Self) {
        add!(self += other => acquisitions, contended, at_once, wait_ns, hold_ns, held_ns, off_cpu_ns);
        self.gap.add(&other.gap);
    }

    /// Which part of the contended acquisitions have not waited.
    #[must_use]
    pub fn part_at_once(&self) -> f64 {
        self.at_once as f64 / self.contended.max(1) as f64
    }
}

/// What happened at a lock, or at all locks of one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// What the workload calls it.
    pub name: String,
    /// How many locks of that name were used.
    pub locks: u64,
    /// How often it was acquired.
    pub acquisitions: u64,
    /// Of those, how often it was not free when it was asked for, or others were waiting for it.
    pub contended: u64,
    /// Time from the question to the acquisition: total and longest, ns.
    pub wait_ns: f64,
    /// The longest.
    pub longest_wait_ns: f64,
    /// The waits of the contended acquisitions, in cycles.
    pub waits: Histogram,
    /// Time from the acquisition to the release: total and longest, ns.
    pub hold_ns: f64,
    /// The longest.
    pub longest_hold_ns: f64,
    /// The holds, in cycles.
    pub holds: Histogram,
    /// The most acquisitions by others during one wait.
    pub most_passed: u64,
    /// What of that was in the run's time.
    pub in_time: InTime,
}

impl Place {
    /// One place for each name, in the order in which the names first came: `add` adds to it.
    pub fn by_name(places: impl Iterator<Item = Self>, add: fn(&mut Self, &Self)) -> Vec<Self> {
        let mut all = Vec::<Self>::new();
        for place in places {
            match all.iter_mut().find(|known| known.name == place.name) {
                Some(known) => add(known, &place),
                None => all.push(place),
            }
        }
        all
    }

    /// Adds what happened at other locks.
    pub fn merge(&mut self, other: &Self) {
        self.locks += other.locks;
        self.add(other);
    }

    /// Adds what happened at the same locks in another run.
    pub fn add(&mut self, other: &Self) {
        add!(self += other => acquisitions, contended, wait_ns, hold_ns);
        self.longest_wait_ns = self.longest_wait_ns.max(other.longest_wait_ns);
        self.waits.merge(&other.waits);
        self.longest_hold_ns = self.longest_hold_ns.max(other.longest_hold_ns);
        self.holds.merge(&other.holds);
        self.most_passed = self.most_passed.max(other.most_passed);
        self.in_time.add(&other.in_time);
    }
}

/// How a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    Exclusive,
    Shared,
}

#[derive(Debug, Default)]
struct State {
    /// Exclusive acquisitions, and shared ones.
    places: [Place; 2],
    writer: Option<u32>,
    readers: u32,
    /// The threads that ask for it, exclusively and shared.
    waiting: [u32; 2],
    since: Since,
}

/// Watches one lock.
#[derive(Debug)]
pub(super) struct Meter {
    state: RefCell<State>,
    ghz: f64,
    /// What a timeline says, exclusive and shared: of a wait, and of a hold.
    waits: [Arc<str>; 2],
    holds: [Arc<str>; 2],
}

/// What is known at the beginning of a wait.
struct Asked {
    at: f64,
    contended: bool,
    acquisitions: u64,
}

impl State {
    fn acquisitions(&self) -> u64 {
        self.places.iter().map(|place| place.acquisitions).sum()
    }

    fn is_free(&self) -> bool {
        self.writer.is_none() && self.readers == 0
    }

    /// It is free again.
    fn freed(&mut self, now: f64, hold: Hold) {
        let in_time = &mut self.places[hold as usize].in_time;
        let (held, off_cpu) = self.since.freed(now);
        in_time.held_ns += held;
        if hold == Hold::Exclusive {
            in_time.off_cpu_ns += off_cpu;
        }
    }
}

impl Meter {
    pub(super) fn new(name: &str, ghz: f64) -> Self {
        let mut state = State::default();
        state.places[Hold::Exclusive as usize].name = name.to_owned();
        state.places[Hold::Shared as usize].name = format!("{name} (read)");
        let named = |does: &str| [format!("{does} {name}").into(), format!("{does} {name} (read)").into()];
        Self { state: RefCell::new(state), ghz, waits: named("wait for"), holds: named("hold") }
    }

    /// What happened there; nothing, where no thread came.
    pub(super) fn places(&self) -> Vec<Place> {
        let used = |place: &&Place| place.acquisitions > 0;
        let one = |place: &Place| Place { locks: 1, ..place.clone() };
        self.state.borrow().places.iter().filter(used).map(one).collect()
    }

    fn ask(&self, hold: Hold) -> Asked {
        let mut state = self.state.borrow_mut();
        let is_held = state.writer.is_some() || (hold == Hold::Exclusive && state.readers > 0);
        // Readers are not in each other's way.
        let [writers, readers] = state.waiting;
        let contended = is_held || writers > 0 || (hold == Hold::Exclusive && readers > 0);
        state.since.wanted(here::now());
        state.waiting[hold as usize] += 1;
        Asked { at: here::now(), contended, acquisitions: state.acquisitions() }
    }

    /// Returns the time of the acquisition.
    fn acquired(&self, asked: &Asked, hold: Hold) -> f64 {
        let now = here::now();
        if asked.contended {
            here::mark(&self.waits[hold as usize], asked.at);
        }
        let was_free = self.state.borrow().is_free();
        self.enter(hold);
        let mut state = self.state.borrow_mut();
        state.waiting[hold as usize] -= 1;
        let gap = state.since.taken(asked.at, now, was_free);
        let passed = state.acquisitions() - asked.acquisitions;
        let place = &mut state.places[hold as usize];
        let waited = now - asked.at;
        place.most_passed = place.most_passed.max(passed);
        place.acquisitions += 1;
        place.wait_ns += waited;
        place.longest_wait_ns = place.longest_wait_ns.max(waited);
        if asked.contended {
            place.contended += 1;
            place.waits.add((waited * self.ghz) as u64);
        }
        let end = here::end_ns();
        let in_time = &mut place.in_time;
        in_time.wait_ns += (now.min(end) - asked.at).max(0.0);
        in_time.gap.add(&gap);
        if now < end {
            in_time.acquisitions += 1;
            in_time.contended += u64::from(asked.contended);
            in_time.at_once += u64::from(asked.contended && waited < AT_ONCE_NS);
        }
        now
    }

    /// The calling thread is in the critical section now; the run fails if it must not be.
    fn enter(&self, hold: Hold) {
        let me = here::thread().number();
        let mut state = self.state.borrow_mut();
        let reader = (hold == Hold::Exclusive && state.readers > 0).then_some(u32::MAX);
        if let Some(first) = state.writer.or(reader) {
            drop(state);
            here::end_with(Failure::Exclusion { first, second: me });
            return;
        }
        match hold {
            Hold::Exclusive => state.writer = Some(me),
            Hold::Shared => state.readers += 1,
        }
    }

    /// The calling thread gives up the lock, for as long as it waits for something else.
    fn gives_up(&self) {
        let mut state = self.state.borrow_mut();
        state.writer = None;
        state.freed(here::now(), Hold::Exclusive);
    }

    fn leave(&self, since: f64, hold: Hold) {
        let now = here::now();
        let held = now - since;
        here::mark(&self.holds[hold as usize], since);
        let mut state = self.state.borrow_mut();
        match hold {
            Hold::Exclusive => state.writer = None,
            Hold::Shared => state.readers -= 1,
        }
        if state.is_free() {
            state.freed(now, hold);
        }
        let place = &mut state.places[hold as usize];
        place.hold_ns += held;
        place.longest_hold_ns = place.longest_hold_ns.max(held);
        place.holds.add((held * self.ghz) as u64);
        place.in_time.hold_ns += (now.min(here::end_ns()) - since).max(0.0);
    }

    /// Runs `section` between `acquire` and `release`.
    fn around<R>(
        &self,
        hold: Hold,
        acquire: impl FnOnce(),
        section: impl FnOnce() -> R,
        release: impl FnOnce(),
    ) -> R {
        let asked = self.ask(hold);
        acquire();
        let since = self.acquired(&asked, hold);
        let result = section();
        self.leave(since, hold);
        release();
        result
    }
}

/// A mutex that is watched.
#[derive(Clone)]
pub struct Mutex {
    pub(super) lock: Rc<Object<dyn AnyMutex>>,
    pub(super) meter: Rc<Meter>,
}

impl Mutex {
    /// The first byte of the lock's first cache line, for data that lies there too.
    pub(super) fn address(&self) -> usize {
        Rc::as_ptr(&self.lock).addr()
    }

    /// Runs `section` while the calling thread holds the lock.
    pub fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        self.meter.around(Hold::Exclusive, || self.lock.lock(), section, || self.lock.unlock())
    }
}

/// A read-write lock that is watched.
#[derive(Clone)]
pub struct RwLock {
    pub(super) lock: Rc<Object<dyn AnyRwLock>>,
    pub(super) meter: Rc<Meter>,
}

impl RwLock {
    /// Where it lies: it starts a cache line.
    pub(super) fn address(&self) -> usize {
        Rc::as_ptr(&self.lock).addr()
    }

    /// Runs `section` while the calling thread holds the lock for reading.
    pub fn read<R>(&self, section: impl FnOnce() -> R) -> R {
        self.meter.around(Hold::Shared, || self.lock.read(), section, || self.lock.unlock_read())
    }

    /// As [`RwLock::read`], by a thread that tries first, as Linux's page faults do.
    pub fn read_after_try<R>(&self, section: impl FnOnce() -> R) -> R {
        let acquire = || {
            if !self.lock.try_read() {
                self.lock.read();
            }
        };
        self.meter.around(Hold::Shared, acquire, section, || self.lock.unlock_read())
    }

    /// Runs `section` while the calling thread holds the lock for writing.
    pub fn write<R>(&self, section: impl FnOnce() -> R) -> R {
        self.meter.around(Hold::Exclusive, || self.lock.write(), section, || self.lock.unlock_write())
    }
}

/// Two condition variables and their mutex, which is watched.
#[derive(Clone)]
pub struct Condvar {
    pub(super) pair: Rc<Object<dyn AnyCondvar>>,
    pub(super) meter: Rc<Meter>,
}

impl Condvar {
    /// Runs `section` while the calling thread holds the mutex. The section may wait: its waits count as held
    /// time.
    pub fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        self.meter.around(Hold::Exclusive, || self.pair.lock(), section, || self.pair.unlock())
    }

    /// Within [`Condvar::with`]: gives up the mutex, waits for a signal of one of its two condition variables
    /// (0 or 1), or for nothing, and takes the mutex again.
    pub fn wait(&self, which: usize) {
        self.meter.gives_up();
        self.pair.wait(which);
        self.meter.enter(Hold::Exclusive);
        self.meter.state.borrow_mut().since.taken_back(here::now());
    }

    /// Wakes one that waits for variable `which`.
    pub fn signal(&self, which: usize) {
        self.pair.signal(which);
    }

    /// Wakes all that wait for variable `which`.
    pub fn broadcast(&self, which: usize) {
        self.pair.broadcast(which);
    }
}

/// How long a lock was free although it was wanted, ns. The parts add up to that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Gap {
    /// Its next owner slept, and had not been woken yet.
    pub asleep_ns: f64,
    /// It had been woken, and its CPU came out of idle and switched to it.
    pub waking_ns: f64,
    /// It could run, and others had its CPU.
    pub queued_ns: f64,
    /// It waited for a cache line.
    pub lines_ns: f64,
    /// It polled, and could not see yet that the lock was free: that was on its way.
    pub unseen_ns: f64,
    /// It was between two looks: PAUSE, back-off.
    pub pause_ns: f64,
    /// Its own steps and system calls.
    pub steps_ns: f64,
    /// None of that is known: its next owner had not asked for it yet. What kept another one who waited is in
    /// the parts above.
    pub others_ns: f64,
}

impl Gap {
    /// The lock was free and wanted from `from` on; the running thread asked for it at `asked`, and has it at
    /// `to`. Before it asked, `other` is asked what kept it.
    fn new(from: f64, asked: f64, to: f64, other: Option<ThreadId>) -> Self {
        let own = asked.clamp(from, to);
        let mut gap = Self::default();
        if own > from {
            if let Some(other) = other {
                gap.kept(other, from, own);
            }
            gap.others_ns = (own - from - gap.total_ns()).max(0.0);
        }
        gap.kept(here::thread(), own, to);
        gap.steps_ns = (to - from - gap.total_ns()).max(0.0);
        gap
    }

    /// What kept `thread` from `from` to `to`.
    fn kept(&mut self, thread: ThreadId, from: f64, to: f64) {
        here::kept_by(thread, from, to, |delay, ns| {
            *match delay {
                Delay::Asleep => &mut self.asleep_ns,
                Delay::Waking => &mut self.waking_ns,
                Delay::Queued => &mut self.queued_ns,
                Delay::Line => &mut self.lines_ns,
                Delay::Unchanged => &mut self.unseen_ns,
                Delay::Pause => &mut self.pause_ns,
            } += ns;
        });
    }

    /// Adds other such times.
    pub fn add(&mut self, other: &Self) {
        add!(self += other => asleep_ns, waking_ns, queued_ns, lines_ns);
        add!(self += other => unseen_ns, pause_ns, steps_ns, others_ns);
    }

    /// All of it, ns.
    #[must_use]
    pub fn total_ns(&self) -> f64 {
        let Self { asleep_ns, waking_ns, queued_ns, lines_ns, .. } = self;
        let Self { unseen_ns, pause_ns, steps_ns, others_ns, .. } = self;
        asleep_ns + waking_ns + queued_ns + lines_ns + unseen_ns + pause_ns + steps_ns + others_ns
    }
}

/// Since when a lock is held, free, and wanted.
#[derive(Debug, Default)]
pub(super) struct Since {
    /// When it was last let go by the last one who had it.
    free: f64,
    /// Since when a thread wants it, if any does.
    wanted: f64,
    /// When it was last taken while it was free.
    held: f64,
    /// For how long its owner had waited for CPUs then.
    queued: f64,
    /// The threads that want it.
    waiting: Waiting,
}

/// The waiters, in any order.
#[derive(Debug, Default)]
struct Waiting {
    threads: Vec<ThreadId>,
    /// Where each is among them, by its number.
    places: Vec<usize>,
}

impl Waiting {
    fn insert(&mut self, thread: ThreadId) {
        let number = thread.number() as usize;
        if self.places.len() <= number {
            self.places.resize(number + 1, 0);
        }
        self.places[number] = self.threads.len();
        self.threads.push(thread);
    }

    fn remove(&mut self, thread: ThreadId) {
        let place = self.places[thread.number() as usize];
        self.threads.swap_remove(place);
        if let Some(moved) = self.threads.get(place) {
            self.places[moved.number() as usize] = place;
        }
    }
}

impl Since {
    /// The running thread wants it.
    pub(super) fn wanted(&mut self, now: f64) {
        if self.waiting.threads.is_empty() {
            self.wanted = now;
        }
        self.waiting.insert(here::thread());
    }

    /// The running thread has it. `was_free`: no other has it. It asked for it at `asked`: what kept it free
    /// until now, in the run's time.
    pub(super) fn taken(&mut self, asked: f64, now: f64, was_free: bool) -> Gap {
        self.waiting.remove(here::thread());
        if !was_free {
            return Gap::default();
        }
        self.taken_back(now);
        let end = now.min(here::end_ns());
        Gap::new(self.free.max(self.wanted).min(end), asked, end, self.waiting.threads.first().copied())
    }

    /// It is free again: how long it was held, and for how much of that the running thread, which had it,
    /// waited for a CPU; in the run's time.
    pub(super) fn freed(&mut self, now: f64) -> (f64, f64) {
        self.free = now;
        ((now.min(here::end_ns()) - self.held).max(0.0), here::queued_ns() - self.queued)
    }

    /// It is taken by a thread that gave it up only to wait for something else, and did not ask for it
    /// before.
    pub(super) fn taken_back(&mut self, now: f64) {
        (self.held, self.queued) = (now, here::queued_ns());
    }
}

/// How many bins there are.
const BINS: usize = 64;

/// Counts by size: bin *n* holds what is at least 2^(n−1) and below 2^n; bin 0 holds 0.
///
/// In cycles, document 001's figures agree with this reading of its bins, and not with 2^n ≤ x < 2^(n+1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    bins: Vec<u64>,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { bins: vec![0; BINS] }
    }
}

impl Histogram {
    /// Counts a value.
    pub fn add(&mut self, value: u64) {
        let bin = (u64::BITS - value.leading_zeros()) as usize;
        self.bins[bin.min(BINS - 1)] += 1;
    }

    /// The count of each bin.
    #[must_use]
    pub fn bins(&self) -> &[u64] {
        &self.bins
    }

    /// How many values there are.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.bins.iter().sum()
    }

    /// Adds what another one counted.
    pub fn merge(&mut self, other: &Self) {
        self.bins.iter_mut().zip(&other.bins).for_each(|(mine, theirs)| *mine += theirs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bin_ends_at_its_power_of_two() {
        let mut histogram = Histogram::default();
        [0, 1, 2, 3, 4, 1023, 1024, u64::MAX].into_iter().for_each(|value| histogram.add(value));
        let filled: Vec<_> = (0..BINS).filter(|&bin| histogram.bins()[bin] > 0).collect();
        assert_eq!(filled, [0, 1, 2, 3, 10, 11, 63]);
        assert_eq!(histogram.total(), 8);
    }
}
