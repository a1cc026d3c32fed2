//! A fork while other threads wait: the child has only the forking thread, which holds the lock. Its own
//! threads then use the lock: none of it may be handed to a thread that is not there, or wait for one.

use std::cell::Cell;
use std::rc::Rc;

use spinpark_locks::{Preference, RawCondvar, RawMutex, RawRwLock, Waiter};
use spinpark_platform::{Deadline, Futex};
use spinpark_sim::{Sim, Tuned, here};

use crate::sim_programs::case::tuned;
use crate::sim_programs::decode;
use crate::sim_programs::guard::{soon_by, wander};
use crate::sim_programs::{Guard, Hold, Mortal, Program};

/// The longest time before the fork, or with the lock held, ns.
const LONGEST: u64 = 4_000;

/// A deadline that comes before the lock, with it, or after it.
fn soon<T: Tuned>() -> Deadline {
    soon_by::<T>(LONGEST, 2)
}

/// The same, or none.
fn deadline<T: Tuned>() -> Option<Deadline> {
    (here::random(3) != 0).then(soon::<T>)
}

/// The threads of the parent, then the one that forks while it is inside, and starts as many in the child.
///
/// `of_parent` and `of_child` are one acquisition of such a thread; the forking one comes in and goes by
/// `enter` and `leave`.
fn forks<L: 'static>(
    program: &mut Program,
    lock: &Rc<L>,
    of_parent: fn(&L),
    of_child: fn(&L),
    enter: fn(&L),
    leave: fn(&L),
) {
    let (threads, rounds) = (program.threads(), program.rounds());
    for _ in 0..threads {
        let lock = Rc::clone(lock);
        program.thread(move || {
            for _ in 0..rounds {
                of_parent(&lock);
                wander();
            }
        });
    }
    let lock = Rc::clone(lock);
    program.thread(move || {
        here::sleep(here::random(LONGEST));
        enter(&lock);
        here::compute(here::random(LONGEST));
        let children: Vec<_> = match here::fork() {
            false => Vec::new(),
            true => (0..threads)
                .map(|_| {
                    let lock = Rc::clone(&lock);
                    here::spawn(move || (0..rounds).for_each(|_| of_child(&lock)))
                })
                .collect(),
        };
        here::compute(here::random(LONGEST));
        leave(&lock);
        for child in children {
            here::join(child);
        }
    });
}

struct Mutex<T: Tuned> {
    lock: Mortal<RawMutex<Sim<T>>>,
    condvar: Mortal<RawCondvar<Sim<T>>>,
    guard: Guard,
    /// The forking thread has been through.
    is_open: Cell<bool>,
}

impl<T: Tuned> Mutex<T> {
    fn new(program: &mut Program) -> Rc<Self> {
        let lock = Mortal::new(RawMutex::new());
        program.name_fields("lock", &lock, decode::MUTEX);
        let condvar = Mortal::new(RawCondvar::new());
        program.name("condvar", &condvar);
        Rc::new(Self { lock, condvar, guard: Guard::new(), is_open: Cell::new(false) })
    }

    fn enter(&self) {
        self.lock.lock();
        self.guard.enter(Hold::Alone);
    }

    fn leave(&self) {
        self.guard.leave(Hold::Alone);
        self.lock.unlock();
    }

    fn section(&self) {
        match deadline::<T>() {
            Some(deadline) if self.lock.lock_until(deadline) => self.guard.enter(Hold::Alone),
            Some(_) => return,
            None => self.enter(),
        }
        here::compute(here::random(200));
        self.leave();
    }

    /// The caller is inside.
    fn wait(&self, deadline: Option<Deadline>) {
        let waiter = Waiter::with_mutex(&self.lock);
        self.condvar.enqueue(&waiter);
        self.leave();
        waiter.sleep(deadline, Sim::<T>::futex_wait);
        let result = self.condvar.finish(&waiter);
        waiter.reacquire(result, &self.lock);
        self.guard.enter(Hold::Alone);
    }

    /// The forking thread lets in those that wait for it.
    fn open(&self) {
        self.is_open.set(true);
        self.condvar.broadcast();
        self.leave();
    }

    /// Waits for the forking thread, which wakes no thread that is not there, but all that are.
    fn after_open(&self) {
        self.enter();
        while !self.is_open.get() {
            self.wait(None);
        }
        self.leave();
        self.exchange();
    }

    /// Waits, or signals, or both.
    fn exchange(&self) {
        self.enter();
        if here::random(3) == 0 {
            self.wait(Some(soon::<T>()));
        }
        if here::random(4) == 0 {
            self.condvar.broadcast();
        } else {
            self.condvar.signal();
        }
        self.leave();
        if here::random(4) == 0 {
            self.condvar.broadcast();
        }
    }
}

struct ReadWrite<T: Tuned> {
    lock: Mortal<RawRwLock<Sim<T>>>,
    guard: Guard,
}

impl<T: Tuned> ReadWrite<T> {
    fn read(&self) {
        self.lock.read(Preference::Readers);
        self.guard.enter(Hold::Shared);
    }

    fn unlock_read(&self) {
        self.guard.leave(Hold::Shared);
        self.lock.unlock_read();
    }

    fn write(&self) {
        self.lock.write();
        self.guard.enter(Hold::Alone);
    }

    fn unlock_write(&self) {
        self.guard.leave(Hold::Alone);
        self.lock.unlock_write();
    }

    fn writes(&self) {
        if self.lock.write_until(deadline::<T>()) {
            self.guard.visit(Hold::Alone);
            self.lock.unlock_write();
        }
    }

    fn reads_or_writes(&self) {
        if here::random(2) == 0 {
            return self.writes();
        }
        for _ in 0..here::random(20) {
            self.read();
            self.unlock_read();
        }
    }
}

fn mutex_with<T: Tuned>(program: &mut Program) {
    program.about("our mutex, in a child");
    let lock = Mutex::<T>::new(program);
    forks(program, &lock, Mutex::section, Mutex::section, Mutex::enter, Mutex::leave);
}

fn condvar_with<T: Tuned>(program: &mut Program) {
    program.about("our condition variable, in a child");
    let lock = Mutex::<T>::new(program);
    forks(program, &lock, Mutex::exchange, Mutex::after_open, Mutex::enter, Mutex::open);
}

fn rwlock_with<T: Tuned>(program: &mut Program) {
    let lock = Mortal::new(RawRwLock::new());
    program.name_fields("lock", &lock, decode::RWLOCK);
    let lock = Rc::new(ReadWrite::<T> { lock, guard: Guard::new() });
    let child = ReadWrite::reads_or_writes;
    if program.random(2) == 0 {
        program.about("our read-write lock, read by the child");
        forks(program, &lock, ReadWrite::writes, child, ReadWrite::read, ReadWrite::unlock_read);
    } else {
        program.about("our read-write lock, written by the child");
        forks(program, &lock, child, child, ReadWrite::write, ReadWrite::unlock_write);
    }
}

/// Our mutex.
pub(super) fn mutex(program: &mut Program) {
    tuned!(program.case.constants, T => mutex_with::<T>(program));
}

/// Our condition variable and its mutex.
pub(super) fn condvar(program: &mut Program) {
    tuned!(program.case.constants, T => condvar_with::<T>(program));
}

/// Our read-write lock.
pub(super) fn rwlock(program: &mut Program) {
    tuned!(program.case.constants, T => rwlock_with::<T>(program));
}
