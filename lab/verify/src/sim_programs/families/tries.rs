//! Threads that only try to read, beside one that stays inside: a try succeeds after a time, whichever
//! waiters have requested the lock meanwhile, and given up, been let in, or become readers.

use std::cell::Cell;
use std::rc::Rc;

use spinpark_locks::{Preference, RawRwLock, TryRwLock as _};
use spinpark_platform::{Deadline, Tuning};
use spinpark_sim::machine::Machine;
use spinpark_sim::{Chaos, Failure, Sim, Tuned, here};

use crate::sim_programs::case::tuned;
use crate::sim_programs::decode;
use crate::sim_programs::guard::{soon_by, wander};
use crate::sim_programs::{Guard, Hold, Mortal, Program};

/// The longest hold of a reader that comes and goes, ns.
const LONGEST: u64 = 3_000;
/// The time between two tries, ns.
const BETWEEN: u64 = 200;
/// Readers that come and go.
const PASSING: u32 = 2;
/// Wakes and system calls of one acquisition, ns.
const WAKES: u64 = 50_000;

/// How long tries fail at most while a reader stays. A request goes on for as long as it has lasted each time
/// that a reader has left, and is no longer than readers put up with it.
fn bound(tuning: &Tuning, writers: u32) -> u64 {
    let request = tuning.request_ns.max(tuning.reader_patience_ns);
    u64::from(2 * PASSING + writers) * (request + WAKES)
}

/// What the threads share.
struct Shared<T: Tuned> {
    lock: Mortal<RawRwLock<Sim<T>>>,
    guard: Guard,
    /// Whether a reader stays, and since when.
    stays: Cell<bool>,
    since: Cell<f64>,
    /// Tries that have succeeded meanwhile.
    tries: Cell<u64>,
    is_over: Cell<bool>,
}

impl<T: Tuned> Shared<T> {
    /// A deadline that comes before, with or after a request.
    fn deadline() -> Option<Deadline> {
        let deadline = soon_by::<T>(LONGEST, 3);
        (here::random(4) != 0).then_some(deadline)
    }

    /// Becomes a reader, in some way, and stays until a try has succeeded.
    fn stay(&self) {
        let Self { lock, guard, .. } = self;
        let upgradable = match here::random(5) {
            0 => {
                lock.read(Preference::Readers);
                false
            }
            1 => {
                lock.write();
                guard.visit(Hold::Alone);
                lock.downgrade();
                false
            }
            2 => {
                lock.write();
                guard.visit(Hold::Alone);
                lock.downgrade_to_upgradable();
                true
            }
            _ => {
                lock.upgradable(None);
                guard.enter(Hold::Upgradable);
                here::compute(here::random(LONGEST));
                let upgraded = lock.upgrade(Self::deadline());
                guard.leave(Hold::Upgradable);
                if upgraded {
                    guard.visit(Hold::Alone);
                    lock.downgrade();
                } else {
                    lock.downgrade_upgradable();
                }
                false
            }
        };
        let hold = if upgradable { Hold::Upgradable } else { Hold::Shared };
        guard.enter(hold);
        let before = self.tries.get();
        self.since.set(here::now());
        self.stays.set(true);
        while self.tries.get() == before {
            here::compute(BETWEEN);
        }
        self.stays.set(false);
        guard.leave(hold);
        if upgradable {
            lock.unlock_upgradable();
        } else {
            lock.unlock_read();
        }
    }

    /// Tries, while a reader stays.
    fn try_to_read(&self, longest: u64) {
        while !self.is_over.get() {
            if self.stays.get() {
                if self.lock.try_read(Preference::Readers) {
                    self.guard.visit(Hold::Shared);
                    self.lock.unlock_read();
                    self.tries.set(self.tries.get() + 1);
                } else if self.stays.get() && here::now() > self.since.get() + longest as f64 {
                    let (thread, others) = (here::thread().number(), self.guard.acquisitions());
                    here::end_with(Failure::Starvation { thread, waited_ns: longest, others });
                }
            }
            here::compute(BETWEEN);
        }
    }

    fn pass(&self) {
        while !self.is_over.get() {
            self.lock.read(Preference::Readers);
            self.guard.enter(Hold::Shared);
            here::compute(here::random(LONGEST));
            self.guard.leave(Hold::Shared);
            if here::random(8) == 0 {
                self.lock.unlock_read_fair();
            } else {
                self.lock.unlock_read();
            }
            here::compute(here::random(LONGEST) / 4);
        }
    }

    fn write(&self) {
        while !self.is_over.get() {
            if self.lock.write_until(Self::deadline()) {
                self.guard.visit(Hold::Alone);
                if here::random(4) == 0 {
                    self.lock.unlock_write_fair();
                } else {
                    self.lock.unlock_write();
                }
            }
            wander();
        }
    }
}

/// Our read-write lock.
pub(super) fn ours(program: &mut Program) {
    tuned!(program.case.constants, T => tries_with::<T>(program));
}

/// Our read-write lock with constants `T`, of which is asked what ours promises.
pub fn tries_with<T: Tuned>(program: &mut Program) {
    let writers = 1 + program.random(2) as u32;
    program.case.machine = Machine::plain(2 + PASSING + writers);
    program.case.chaos = Chaos::default();
    // A real-time reader does not leave the lock to a writer of a lower priority.
    program.case.realtime = false;
    program.most_steps(50_000_000);
    program.about(format!("our read-write lock: tries beside a reader that stays, {writers} writers"));
    let promised = T::TUNING.request_ns.min(Tuning::LINUX.request_ns);
    let longest = bound(&Tuning { request_ns: promised, ..T::TUNING }, writers);
    let lock = Mortal::new(RawRwLock::<Sim<T>>::new());
    program.name_fields("lock", &lock, decode::RWLOCK);
    let shared = Rc::new(Shared {
        lock,
        guard: Guard::new(),
        stays: Cell::new(false),
        since: Cell::new(0.0),
        tries: Cell::new(0),
        is_over: Cell::new(false),
    });
    let mut thread = |act: fn(&Shared<T>)| {
        let shared = Rc::clone(&shared);
        program.thread(move || act(&shared));
    };
    for _ in 0..PASSING {
        thread(Shared::pass);
    }
    for _ in 0..writers {
        thread(Shared::write);
    }
    let theirs = Rc::clone(&shared);
    program.thread(move || theirs.try_to_read(longest));
    let rounds = program.rounds();
    program.thread(move || {
        for _ in 0..rounds {
            shared.stay();
            here::compute(here::random(LONGEST));
        }
        shared.is_over.set(true);
    });
}
