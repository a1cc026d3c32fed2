//! Readers that depend on each other, beside writers that come now and then: both make progress, with a
//! bound.
//!
//! That a run ends says too little here: a lock that delays each item of such a program by a time-out ends as
//! well.

use std::cell::Cell;
use std::rc::Rc;

use spinpark_locks::{Preference, RawRwLock};
use spinpark_sim::machine::Machine;
use spinpark_sim::{Chaos, Failure, Sim, Tuned, here};

use crate::sim_programs::case::tuned;
use crate::sim_programs::decode;
use crate::sim_programs::{Guard, Hold, Mortal, Program};

/// What a helper does for one item, ns, at most.
const WORK: u64 = 2_000;
/// Wakes and system calls of one acquisition of a writer, ns.
const WAKES: f64 = 50_000.0;

/// What the threads share.
struct Shared {
    guard: Guard,
    /// Items that the coordinator has asked for, and that the helper has done.
    wanted: Cell<u64>,
    done: Cell<u64>,
    /// Whether writers come.
    with_writers: Cell<bool>,
    is_over: Cell<bool>,
    /// The coordinator's longest hold, ns.
    longest_hold: Cell<f64>,
    /// Acquisitions of writers.
    writes: Cell<u64>,
}

/// Our read-write lock.
pub(super) fn ours(program: &mut Program) {
    tuned!(program.case.constants, T => dependent_with::<T>(program));
}

/// A thread holds the lock for reading, and waits for each of many reads of another one; then the same with
/// writers. Asks for a third as many items a second as without writers, and that a writer which has starved
/// acquires the lock at the end of the hold.
pub fn dependent_with<T: Tuned>(program: &mut Program) {
    let writers = 1 + program.random(2) as u32;
    let batch = [1, 10, 100, 1_000][program.random(4)];
    program.case.machine = Machine::plain(2 + writers);
    program.case.chaos = Chaos::default();
    // A real-time reader does not leave the lock to a writer of a lower priority.
    program.case.realtime = false;
    program.most_steps(50_000_000);
    program.about(format!("our read-write lock: {batch} dependent reads in a hold, {writers} writers"));
    let lock = Mortal::new(RawRwLock::<Sim<T>>::new());
    program.name_fields("lock", &lock, decode::RWLOCK);
    let starvation_ns = T::TUNING.starvation_ns as f64;
    // Writers come seldom enough that the wakes of their acquisitions are not what the readers lose their
    // time to.
    let span = (starvation_ns + T::TUNING.request_ns.min(1_000_000) as f64).max(20.0 * WAKES) * 40.0;
    let shared = Rc::new(Shared {
        guard: Guard::new(),
        wanted: Cell::new(0),
        done: Cell::new(0),
        with_writers: Cell::new(false),
        is_over: Cell::new(false),
        longest_hold: Cell::new(0.0),
        writes: Cell::new(0),
    });

    let (helps, theirs) = (lock.clone(), Rc::clone(&shared));
    program.thread(move || {
        while !theirs.is_over.get() {
            if theirs.done.get() == theirs.wanted.get() {
                here::compute(200);
                continue;
            }
            helps.read(Preference::Readers);
            theirs.guard.enter(Hold::Shared);
            here::compute(here::random(WORK));
            theirs.guard.leave(Hold::Shared);
            helps.unlock_read();
            theirs.done.set(theirs.done.get() + 1);
        }
    });
    for _ in 0..writers {
        let (lock, theirs) = (lock.clone(), Rc::clone(&shared));
        program.thread(move || {
            while !theirs.is_over.get() {
                here::sleep(1_000 + here::random(span as u64 / 4));
                if !theirs.with_writers.get() {
                    continue;
                }
                let since = here::now();
                lock.write();
                let waited = here::now() - since;
                theirs.guard.visit(Hold::Alone);
                theirs.writes.set(theirs.writes.get() + 1);
                lock.unlock_write();
                let most = starvation_ns + f64::from(2 * writers) * (theirs.longest_hold.get() + WAKES);
                if waited > most {
                    let (thread, waited_ns) = (here::thread().number(), waited as u64);
                    here::end_with(Failure::Starvation { thread, waited_ns, others: theirs.done.get() });
                }
            }
        });
    }
    program.thread(move || {
        let rates = [false, true].map(|with_writers| {
            shared.with_writers.set(with_writers);
            let (began, before) = (here::now(), shared.done.get());
            while here::now() < began + span {
                lock.read(Preference::Readers);
                let since = here::now();
                shared.guard.enter(Hold::Shared);
                for _ in 0..batch {
                    shared.wanted.set(shared.wanted.get() + 1);
                    while shared.done.get() < shared.wanted.get() {
                        here::compute(200);
                    }
                }
                shared.guard.leave(Hold::Shared);
                shared.longest_hold.set(shared.longest_hold.get().max(here::now() - since));
                lock.unlock_read();
                here::compute(here::random(WORK));
            }
            (shared.done.get() - before) as f64 / (here::now() - began)
        });
        shared.is_over.set(true);
        if rates[1] < rates[0] / 3.0 {
            let items = rates.map(|rate| (rate * 1e9) as u64);
            here::fail(format!("progress: {} items a second beside writers, {} without", items[1], items[0]));
        }
        // A writer that was handed the lock may not have woken yet.
        lock.read(Preference::Readers);
        lock.unlock_read();
        if shared.writes.get() == 0 {
            here::fail("progress: no writer has acquired the lock".to_owned());
        }
    });
}
