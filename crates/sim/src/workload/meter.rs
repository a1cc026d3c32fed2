//! What is measured at a lock, from outside: waits and their lengths, how long it was held, and that it
//! excludes.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::gap::{Gap, Since};
use super::histogram::Histogram;
use crate::failure::Failure;
use crate::here;
use crate::locks::{AnyCondvar, AnyMutex, AnyRwLock};

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
        self.acquisitions += other.acquisitions;
        self.contended += other.contended;
        self.at_once += other.at_once;
        self.wait_ns += other.wait_ns;
        self.hold_ns += other.hold_ns;
        self.held_ns += other.held_ns;
        self.off_cpu_ns += other.off_cpu_ns;
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
    /// Adds what happened at other locks.
    pub fn merge(&mut self, other: &Self) {
        self.locks += other.locks;
        self.add(other);
    }

    /// Adds what happened at the same locks in another run.
    pub fn add(&mut self, other: &Self) {
        self.acquisitions += other.acquisitions;
        self.contended += other.contended;
        self.wait_ns += other.wait_ns;
        self.longest_wait_ns = self.longest_wait_ns.max(other.longest_wait_ns);
        self.waits.merge(&other.waits);
        self.hold_ns += other.hold_ns;
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

    fn takes_back(&self) {
        self.state.borrow_mut().since.taken_back(here::now());
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
    pub(super) lock: Rc<dyn AnyMutex>,
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
    pub(super) lock: Rc<dyn AnyRwLock>,
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

/// A condition variable (there are two, if you want) and its mutex, which is watched.
#[derive(Clone)]
pub struct Condvar {
    pub(super) pair: Rc<dyn AnyCondvar>,
    pub(super) meter: Rc<Meter>,
}

impl Condvar {
    /// Runs `section` while the calling thread holds the mutex. The section may wait: its waits count as held
    /// time.
    pub fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        self.meter.around(Hold::Exclusive, || self.pair.lock(), section, || self.pair.unlock())
    }

    /// Within [`Condvar::with`]: gives up the mutex, waits for a signal, or for nothing, and takes the mutex
    /// again.
    pub fn wait(&self) {
        self.wait_for(0);
    }

    /// Wakes one.
    pub fn signal(&self) {
        self.signal_to(0);
    }

    /// Wakes all.
    pub fn broadcast(&self) {
        self.pair.broadcast(0);
    }

    /// As [`Condvar::wait`], on one of the mutex' two condition variables: 0, which is the other calls', or
    /// 1.
    pub fn wait_for(&self, which: usize) {
        self.meter.gives_up();
        self.pair.wait(which);
        self.meter.enter(Hold::Exclusive);
        self.meter.takes_back();
    }

    /// As [`Condvar::signal`], of one of the two.
    pub fn signal_to(&self, which: usize) {
        self.pair.signal(which);
    }
}
