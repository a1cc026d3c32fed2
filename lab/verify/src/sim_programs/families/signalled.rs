//! Signals whose handlers use locks, while their thread is at any point of a lock call: they try the lock
//! that their thread waits for, releases or holds, and wait for one that only handlers use.

use std::rc::Rc;

use spinpark_locks::{Preference, RawMutex, RawRwLock, TryMutex as _, TryRwLock as _};
use spinpark_platform::Deadline;
use spinpark_sim::{Sim, Tuned, here};

use crate::sim_programs::case::tuned;
use crate::sim_programs::decode;
use crate::sim_programs::guard::{soon_by, wander};
use crate::sim_programs::{Guard, Hold, Mortal, Program};

/// The longest time with the lock held, ns.
const LONGEST: u64 = 500;

/// A deadline that comes before the lock, with it, or after it; or none.
fn deadline<T: Tuned>() -> Option<Deadline> {
    (here::random(2) != 0).then(|| soon_by::<T>(LONGEST, 4))
}

/// This number of threads with this number of acquisitions each, and a handler.
pub(super) fn threads<L: 'static>(
    program: &mut Program,
    number: u32,
    rounds: u32,
    lock: L,
    acquisition: fn(&L),
    handler: fn(&L),
) {
    let lock = Rc::new(lock);
    for _ in 0..number {
        let lock = Rc::clone(&lock);
        program.thread(move || {
            let theirs = Rc::clone(&lock);
            here::on_signals(move || handler(&theirs));
            for _ in 0..rounds {
                acquisition(&lock);
                wander();
            }
        });
    }
}

struct Mutexes<T: Tuned> {
    lock: Mortal<RawMutex<Sim<T>>>,
    guard: Guard,
    of_handlers: Mortal<RawMutex<Sim<T>>>,
    their_guard: Guard,
}

impl<T: Tuned> Mutexes<T> {
    fn acquisition(&self) {
        match deadline::<T>() {
            Some(deadline) if !self.lock.lock_until(deadline) => return,
            Some(_) => {}
            None => self.lock.lock(),
        }
        self.guard.enter(Hold::Alone);
        here::compute(here::random(LONGEST));
        self.guard.leave(Hold::Alone);
        self.lock.unlock();
    }

    fn handler(&self) {
        if here::random(2) == 0 && self.lock.try_lock() {
            self.guard.visit(Hold::Alone);
            self.lock.unlock();
        }
        if here::random(4) == 0 {
            self.of_handlers.lock();
            self.their_guard.visit(Hold::Alone);
            self.of_handlers.unlock();
        }
    }
}

struct ReadWrites<T: Tuned> {
    lock: Mortal<RawRwLock<Sim<T>>>,
    guard: Guard,
    of_handlers: Mortal<RawRwLock<Sim<T>>>,
    their_guard: Guard,
}

impl<T: Tuned> ReadWrites<T> {
    fn acquisition(&self) {
        if here::random(4) == 0 {
            if self.lock.write_until(deadline::<T>()) {
                self.guard.visit(Hold::Alone);
                self.lock.unlock_write();
            }
            return;
        }
        for _ in 0..here::random(12) {
            self.lock.read(Preference::Readers);
            self.guard.visit(Hold::Shared);
            self.lock.unlock_read();
        }
    }

    fn handler(&self) {
        match here::random(4) {
            0 if self.lock.try_write() => {
                self.guard.visit(Hold::Alone);
                self.lock.unlock_write();
            }
            1 if self.lock.try_read(Preference::Readers) => {
                self.guard.visit(Hold::Shared);
                self.lock.unlock_read();
            }
            2 => {
                self.of_handlers.write();
                self.their_guard.visit(Hold::Alone);
                self.of_handlers.unlock_write();
            }
            3 => {
                self.of_handlers.read(Preference::Readers);
                self.their_guard.visit(Hold::Shared);
                self.of_handlers.unlock_read();
            }
            _ => {}
        }
    }
}

fn mutex_with<T: Tuned>(program: &mut Program) {
    program.about("our mutex, and handlers of signals");
    let (lock, of_handlers) = (Mortal::new(RawMutex::new()), Mortal::new(RawMutex::new()));
    program.name_fields("lock", &lock, decode::MUTEX);
    program.name("lock of handlers", &of_handlers);
    let lock = Mutexes::<T> { lock, guard: Guard::new(), of_handlers, their_guard: Guard::new() };
    threads(program, program.threads(), program.rounds(), lock, Mutexes::acquisition, Mutexes::handler);
}

fn rwlock_with<T: Tuned>(program: &mut Program) {
    program.about("our read-write lock, and handlers of signals");
    let (lock, of_handlers) = (Mortal::new(RawRwLock::new()), Mortal::new(RawRwLock::new()));
    program.name_fields("lock", &lock, decode::RWLOCK);
    program.name("lock of handlers", &of_handlers);
    let lock = ReadWrites::<T> { lock, guard: Guard::new(), of_handlers, their_guard: Guard::new() };
    threads(program, program.threads(), program.rounds(), lock, ReadWrites::acquisition, ReadWrites::handler);
}

/// Our mutex.
pub(super) fn mutex(program: &mut Program) {
    tuned!(program.case.constants, T => mutex_with::<T>(program));
}

/// Our read-write lock.
pub(super) fn rwlock(program: &mut Program) {
    tuned!(program.case.constants, T => rwlock_with::<T>(program));
}
