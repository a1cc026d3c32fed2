//! Mutexes.

use std::cell::Cell;
use std::rc::Rc;

use spinpark_locks::RawMutex;
use spinpark_locks::bits::word::{HANDOFF, HOLD, SPINNER, WAKING};
use spinpark_platform::Ordering::AcqRel;
use spinpark_platform::{SpinPolicy, Tuning};
use spinpark_sim::check::{Fault, Kind, Op};
use spinpark_sim::{LinuxTuning, Sim};
use spinpark_verify::sim_programs::{Checker, Family, Mortal, Program, patience_with};
use spinpark_verify::{breaks, breaks_rule};

use super::asymmetric::is_mark;
use super::harness::{family, hangs, is_unfair, leaves_a_flag, never_ends, rejected, uses_what_is_gone};

#[test]
fn wakes_are_lost() {
    for name in ["mutex", "rwlock", "rwsem", "condvar", "condvar_2003"] {
        rejected(breaks("core.L1"), Checker::new(family(name)).fault(Fault::NoWakes), hangs);
    }
}

#[test]
fn a_sleep_does_not_compare() {
    for name in ["mutex", "rwlock", "rwsem", "condvar", "condvar_2003"] {
        // Beside a waiter that looks by itself, again and again (H3), threads that sleep for ever are no
        // deadlock.
        rejected(breaks("core.L1"), Checker::new(family(name)).fault(Fault::NoCompare), |failure| {
            hangs(failure) || never_ends(failure)
        });
    }
}

/// core.W1: a waiter queues without its mark in the word, so the release does not look.
#[test]
fn a_waiter_queues_without_its_mark() {
    let mutant = Checker::new(family("mutex")).fault(Fault::NoWrite(is_mark)).fault(Fault::NoLook);
    rejected(breaks("core.W1"), mutant, never_ends);
}

/// core.R1: a release that looks at the mutex once more, after another thread was let in.
#[test]
fn a_release_looks_back() {
    let build = |program: &mut Program| {
        let mutex = Mortal::new(RawMutex::<Sim>::new());
        program.name("mutex", &mutex);
        let users = Rc::new(Cell::new(0));
        let threads = program.threads();
        for _ in 0..threads {
            let (mutex, users) = (mutex.clone(), Rc::clone(&users));
            program.thread(move || {
                mutex.lock();
                users.set(users.get() + 1);
                let is_last = users.get() == threads;
                mutex.unlock();
                if is_last {
                    mutex.destroy();
                } else {
                    let _ = mutex.is_locked();
                }
            });
        }
    };
    rejected(
        breaks("core.R1"),
        Checker::new(Family { name: "a_release_looks_back", build }),
        uses_what_is_gone,
    );
}

/// A lock that thread 0 gets only if no other wants it.
#[derive(Default)]
struct Favour {
    taken: Cell<bool>,
    wanted: Cell<u32>,
}

impl Favour {
    fn lock(&self, number: u32) {
        let others = u32::from(number != 0);
        self.wanted.set(self.wanted.get() + others);
        while self.taken.get() || (number == 0 && self.wanted.get() > 0) {
            Sim::<LinuxTuning>::spin_for(100);
        }
        self.taken.set(true);
        self.wanted.set(self.wanted.get() - others);
    }
}

#[test]
fn one_thread_is_always_last() {
    let build = |program: &mut Program| {
        let lock = Rc::new(Favour::default());
        let released = Rc::clone(&lock);
        patience_with(
            program,
            &Tuning::LINUX,
            move |number| lock.lock(number),
            move || released.taken.set(false),
        );
    };
    rejected(
        breaks_rule("fairness, of a lock that one thread gets last"),
        Checker::new(Family { name: "one_thread_is_always_last", build }),
        is_unfair,
    );
}

/// core.H1: the release wakes the head that has requested the lock, and the word does not say that the lock is kept
/// for it.
#[test]
fn a_request_is_not_met() {
    let promises = |op: &Op| match op.is(Kind::CompareExchangeWeak, AcqRel) {
        true if op.has(HANDOFF | WAKING) && op.lacks(HOLD) => HANDOFF,
        _ => 0,
    };
    let mutant = Checker::new(family("mutex")).fault(Fault::Without(promises));
    rejected(breaks("core.H1"), mutant, |failure| {
        failure.to_string().contains("requested the lock, and was passed")
    });
}

/// fast_path.A2: a spinner leaves, and its flag stays.
#[test]
fn a_spinner_leaves_its_flag() {
    rejected(
        breaks("fast_path.A2"),
        Checker::new(family("mutex")).fault(Fault::Kept(SPINNER)),
        leaves_a_flag,
    );
}
