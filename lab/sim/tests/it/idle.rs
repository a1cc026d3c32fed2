//! Waiters of a lock that is held: none is woken while nothing is owed to any of them, and a release lets a crowd
//! in.

use std::cell::Cell;
use std::rc::Rc;

use spinpark_locks::{Preference, RawCondvar, RawMutex, RawRwLock};
use spinpark_platform::{Event, NS_PER_MS};
use spinpark_sim::check::{Checks, Fault, Faults};
use spinpark_sim::machine::Machine;
use spinpark_sim::{Object, Sim, Simulation, SimulationResult, here};

const WAITERS: u64 = 40;
/// Much longer than any timer of a waiter.
const HOLD_NS: u64 = 2_000 * NS_PER_MS;

/// What the waiters wait for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Mutex,
    Readers,
    Writers,
    WritersBehindAReader,
    Condvar,
}

const KINDS: [Kind; 5] =
    [Kind::Mutex, Kind::Readers, Kind::Writers, Kind::WritersBehindAReader, Kind::Condvar];

struct Locks {
    mutex: Rc<Object<RawMutex<Sim>>>,
    rwlock: Rc<Object<RawRwLock<Sim>>>,
    condvar: Rc<Object<RawCondvar<Sim>>>,
    is_over: Cell<bool>,
    through: Cell<u64>,
}

impl Locks {
    fn hold(&self, kind: Kind) {
        match kind {
            Kind::Mutex => self.mutex.lock(),
            Kind::Readers | Kind::Writers => self.rwlock.write(),
            Kind::WritersBehindAReader => self.rwlock.read(Preference::Readers),
            Kind::Condvar => {}
        }
    }

    fn release(&self, kind: Kind) {
        match kind {
            Kind::Mutex => self.mutex.unlock(),
            Kind::Readers | Kind::Writers => self.rwlock.unlock_write(),
            Kind::WritersBehindAReader => self.rwlock.unlock_read(),
            Kind::Condvar => {
                self.is_over.set(true);
                self.condvar.broadcast();
            }
        }
    }

    fn wait(&self, kind: Kind) {
        match kind {
            Kind::Mutex => {
                self.mutex.lock();
                self.mutex.unlock();
            }
            Kind::Readers => {
                self.rwlock.read(Preference::Readers);
                self.rwlock.unlock_read();
            }
            Kind::Writers | Kind::WritersBehindAReader => {
                self.rwlock.write();
                self.rwlock.unlock_write();
            }
            Kind::Condvar => {
                self.mutex.lock();
                while !self.is_over.get() {
                    self.condvar.wait(&self.mutex, None);
                }
                self.mutex.unlock();
            }
        }
        self.through.set(self.through.get() + 1);
    }
}

/// A run, how often threads went to sleep before the release, and how many waiters came through.
fn run(kind: Kind, cpus: u32, fault: Fault) -> (SimulationResult, u64, u64) {
    let machine = Machine::plain(cpus);
    let mut faults = Faults::default();
    faults.add(fault);
    let mut checks = Checks::new(faults);
    let sleeps = Rc::new(Cell::new(0));
    let (counted, is_held) = (Rc::clone(&sleeps), Rc::new(Cell::new(true)));
    let holds = Rc::clone(&is_held);
    checks.on_event = Some(Rc::new(move |_, event| {
        if event == Event::Parked && holds.get() {
            counted.set(counted.get() + 1);
        }
    }));
    let mut simulation = Simulation::new(&machine).seed(1).checks(checks);
    let locks = Rc::new(Locks {
        mutex: Object::new(RawMutex::new()),
        rwlock: Object::new(RawRwLock::new()),
        condvar: Object::new(RawCondvar::new()),
        is_over: Cell::new(false),
        through: Cell::new(0),
    });
    let holder = Rc::clone(&locks);
    simulation.thread(move || {
        holder.hold(kind);
        here::sleep(HOLD_NS);
        is_held.set(false);
        holder.release(kind);
    });
    for _ in 0..WAITERS {
        let waiter = Rc::clone(&locks);
        simulation.thread(move || {
            here::sleep(NS_PER_MS);
            waiter.wait(kind);
        });
    }
    let outcome = simulation.run().expect("it can be run");
    (outcome, sleeps.get(), locks.through.get())
}

#[test]
fn no_waiter_of_a_lock_that_is_held_is_woken() {
    for kind in KINDS {
        for cpus in [1, 2, 8] {
            let (outcome, sleeps, through) = run(kind, cpus, Fault::None);
            assert_eq!((outcome.failure, through), (None, WAITERS), "{kind:?}, {cpus} CPUs");
            // On one CPU or two, threads that queue at once meet in the queue lock or in the condition variable's
            // mutex: each may sleep there once more.
            let most = if kind == Kind::Condvar { 3 * WAITERS } else { WAITERS };
            assert!(
                (WAITERS..=most).contains(&sleeps),
                "{kind:?}, {cpus} CPUs: {sleeps} sleeps of {WAITERS}"
            );
        }
    }
}

/// The count above finds a machine, or a lock, that wakes waiters by timers.
#[test]
fn timers_are_counted() {
    for kind in KINDS {
        let (_, sleeps, through) = run(kind, 2, Fault::TimedSleeps);
        assert_eq!(through, WAITERS, "{kind:?}");
        assert!(sleeps > 100 * WAITERS, "{kind:?}: {sleeps} sleeps of {WAITERS}");
    }
}

/// Waiters of a crowd are gathered on one word, and woken by one call; without such a call, one by one.
#[test]
fn a_crowd_is_let_in_at_once() {
    for kind in [Kind::Readers, Kind::Condvar] {
        let (outcome, _, through) = run(kind, 2, Fault::OneWordOnly);
        assert_eq!((outcome.failure, through), (None, WAITERS), "{kind:?}");
        let (outcome, _, through) = run(kind, 2, Fault::NoCrowdWakes);
        assert!(
            outcome.failure.is_some() && through < WAITERS,
            "{kind:?}: a crowd that is not woken goes on"
        );
    }
}
