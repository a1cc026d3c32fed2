//! Condition variables.

use std::cell::Cell;
use std::rc::Rc;

use spinpark_locks::bits::condvar::GIVEN_UP;
use spinpark_locks::bits::word::{WAITERS, WRITER};
use spinpark_locks::{RawCondvar, RawMutex, Waiter, WaiterRefs};
use spinpark_platform::Ordering::{AcqRel, Relaxed};
use spinpark_platform::{Futex, Wait};
use spinpark_sim::check::{Fault, Kind, Op};
use spinpark_sim::{Failure, Sim, here};
use spinpark_verify::mutants::condvar_2003::{Forgetful, PlainRequeue};
use spinpark_verify::mutants::monitor;
use spinpark_verify::sim_programs::{Checker, Family, Monitor, Mortal, Program, order_of, tokens_of_2003};
use spinpark_verify::{breaks, breaks_rule};

use super::harness::{
    accepted, corrupts_a_list, family, hangs, is_out_of_order, never_ends, rejected, uses_what_is_gone,
};

/// C1: a waiter that gives up does not claim its own wait, so a signal is spent on it.
#[test]
fn a_waiter_gives_up_without_a_claim() {
    let claim = |op: &Op| op.is(Kind::CompareExchange, Relaxed) && op.writes(GIVEN_UP);
    // Its node is linked and gone, or it has been given a reference (C4) that it does not know of.
    let is_right = |failure: &Failure| {
        corrupts_a_list(failure)
            || matches!(failure, Failure::Check(what) if what.contains("(0, false, false)"))
    };
    rejected(breaks("condvar.C1"), Checker::new(family("condvar")).fault(Fault::NoWrite(claim)), is_right);
}

/// C2: the wait releases the mutex before it is in line.
#[test]
fn a_waiter_queues_after_the_unlock() {
    let build = |program: &mut Program| {
        let pair = Mortal::new((RawMutex::<Sim>::new(), RawCondvar::<Sim>::new()));
        program.name("pair", &pair);
        let token = Rc::new(Cell::new(false));
        let (theirs, there) = (pair.clone(), Rc::clone(&token));
        program.thread(move || {
            let (mutex, condvar) = &*theirs;
            mutex.lock();
            while !there.get() {
                let waiter = Waiter::with_mutex(mutex);
                mutex.unlock();
                condvar.enqueue(&waiter);
                waiter.sleep(None, Sim::<spinpark_sim::LinuxTuning>::futex_wait);
                waiter.reacquire(condvar.finish(&waiter), mutex);
            }
            mutex.unlock();
        });
        program.thread(move || {
            let (mutex, condvar) = &*pair;
            mutex.lock();
            token.set(true);
            condvar.signal();
            mutex.unlock();
        });
    };
    rejected(
        breaks("condvar.C2"),
        Checker::new(Family { name: "a_waiter_queues_after_the_unlock", build }),
        hangs,
    );
}

/// C3: the variable is destroyed right after the broadcast, with a thread that gave up still at work in it.
#[test]
fn destroyed_while_it_is_not_idle() {
    let build = |program: &mut Program| {
        let (mutex, condvar) = (Mortal::new(RawMutex::<Sim>::new()), Mortal::new(RawCondvar::<Sim>::new()));
        program.name("condvar", &condvar);
        program.name("mutex", &mutex);
        let is_gone = Rc::new(Cell::new(false));
        let (m, c, gone) = (mutex.clone(), condvar.clone(), Rc::clone(&is_gone));
        program.thread(move || {
            m.lock();
            if !gone.get() {
                let waiter = Waiter::with_mutex(&m);
                c.enqueue(&waiter);
                m.unlock();
                waiter.sleep(None, |_, _, _| Wait::TimedOut);
                waiter.reacquire(c.finish(&waiter), &m);
            }
            m.unlock();
        });
        program.thread(move || {
            mutex.lock();
            is_gone.set(true);
            condvar.broadcast();
            condvar.destroy();
            mutex.unlock();
        });
    };
    rejected(
        breaks("condvar.C3"),
        Checker::new(Family { name: "destroyed_while_it_is_not_idle", build }),
        uses_what_is_gone,
    );
}

/// C5: a signal takes the last waiter out while another thread has the mutex' queue locked, and that waiter
/// does not end the references of those that sleep in the mutex' queue. (The signalling thread is that waiter
/// itself.)
#[test]
fn a_last_waiter_forgets_references() {
    let build = |program: &mut Program| {
        let (mutex, condvar) = (Mortal::new(RawMutex::<Sim>::new()), Mortal::new(RawCondvar::<Sim>::new()));
        let refs = Mortal::new(WaiterRefs::<Sim>::new());
        program.name("condvar", &condvar);
        program.name("mutex", &mutex);
        program.name("references", &refs);
        let is_over = Rc::new(Cell::new(false));
        let (m, c, r, over) = (mutex.clone(), condvar.clone(), refs.clone(), Rc::clone(&is_over));
        program.thread(move || {
            m.lock();
            if !over.get() {
                let waiter = Waiter::with_mutex(&m).cancellable(&r);
                c.enqueue(&waiter);
                m.unlock();
                waiter.sleep(None, Sim::<spinpark_sim::LinuxTuning>::futex_wait);
                let result = c.finish(&waiter);
                c.settle(&waiter, false);
                waiter.reacquire(result, &m);
            }
            m.unlock();
        });
        let m = mutex.clone();
        program.thread(move || {
            for _ in 0..20 {
                m.lock();
                m.unlock();
                here::sleep(here::random(200));
            }
        });
        program.thread(move || {
            here::sleep(here::random(1000));
            mutex.lock();
            let waiter = Waiter::with_mutex(&mutex).cancellable(&refs);
            condvar.enqueue(&waiter);
            condvar.signal();
            condvar.broadcast();
            let result = condvar.finish(&waiter); // and no `settle`
            while !condvar.is_idle_with(&refs) {
                here::yield_now();
            }
            is_over.set(true);
            mutex.unlock();
            waiter.reacquire(result, &mutex);
            mutex.unlock();
        });
    };
    rejected(
        breaks("condvar.C5"),
        Checker::new(Family { name: "a_last_waiter_forgets_references", build }),
        never_ends,
    );
}

#[derive(Clone)]
struct Told(Mortal<monitor::Monitor<Sim>>);

impl Monitor for Told {
    fn lock(&self) {
        self.0.lock();
    }
    fn unlock(&self) {
        self.0.unlock();
    }
    fn wait(&self) {
        self.0.wait();
    }
    fn signal(&self) -> bool {
        self.0.signal()
    }
    fn broadcast(&self) -> u32 {
        self.0.broadcast()
    }
}

/// The program of the family `condvar_order`.
fn waits(program: &mut Program, error: monitor::Error) {
    let monitor = Mortal::new(monitor::Monitor::<Sim>::new(error));
    program.name("monitor", &monitor);
    order_of(program, Told(monitor));
}

#[test]
fn the_newest_wait_ends_first() {
    let build = |program: &mut Program| waits(program, monitor::Error::NewestFirst);
    rejected(
        breaks_rule("of the condition variable: the longest waits end first"),
        Checker::new(Family { name: "newest_first", build }),
        is_out_of_order,
    );
}

#[test]
fn a_signal_ends_two_waits() {
    let build = |program: &mut Program| waits(program, monitor::Error::OneTooMany);
    rejected(
        breaks_rule("of the condition variable: a signal ends one wait"),
        Checker::new(Family { name: "one_too_many", build }),
        is_out_of_order,
    );
}

#[test]
fn a_broadcast_leaves_a_wait_out() {
    let build = |program: &mut Program| waits(program, monitor::Error::OneTooFew);
    rejected(
        breaks_rule("of the condition variable: a broadcast ends all waits"),
        Checker::new(Family { name: "one_too_few", build }),
        |failure| matches!(failure, Failure::Check(words) if words.contains("waits were ended")),
    );
}

#[test]
fn the_copy_with_its_order_is_right() {
    accepted(Family { name: "waits", build: |program| waits(program, monitor::Error::None) });
}

/// Document 003's: a waiter moved to the internal lock takes it without the mark.
#[test]
fn a_moved_waiter_takes_the_lock_without_the_mark() {
    let build = |program: &mut Program| tokens_of_2003::<PlainRequeue>(program, "plain requeue");
    rejected(breaks("mutex_2003.M3"), Checker::new(Family { name: "plain_requeue", build }), hangs);
}

#[test]
fn the_kernel_unlocks_and_forgets_sleepers() {
    let build = |program: &mut Program| tokens_of_2003::<Forgetful>(program, "forgetful");
    rejected(breaks("mutex_2003.M1"), Checker::new(Family { name: "forgetful", build }), hangs);
}

/// D1, core.W1: a signal links its waiter in the mutex' queue, and the word does not say so.
#[test]
fn a_signal_does_not_mark_the_mutex() {
    let marks = |op: &Op| op.is(Kind::CompareExchangeWeak, AcqRel) && op.has(WAITERS | WRITER);
    rejected(breaks("deferred.D1"), Checker::new(family("condvar")).fault(Fault::NoWrite(marks)), never_ends);
}

fn sleeps_on(failure: &Failure) -> bool {
    hangs(failure) || matches!(failure, Failure::Check(words) if words.contains("waiters sleep on"))
}

/// A crowd is gathered on a word, and not woken there.
#[test]
fn a_crowd_is_not_woken() {
    rejected(breaks("core.L1"), Checker::new(family("crowd")).fault(Fault::NoCrowdWakes), sleeps_on);
}

/// The last one of a crowd comes to the word after the wake: that is on the stack of a thread that goes on.
#[test]
fn the_last_one_of_a_crowd_is_gathered_too_late() {
    rejected(breaks("core.L1"), Checker::new(family("crowd")).fault(Fault::LateGathers), sleeps_on);
}
