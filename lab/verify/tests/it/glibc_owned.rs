//! Models of a mutex that other code locks as well: glibc's functions, as a program reaches them past a
//! drop-in (X1 to X3 in `locks`).
//!
//! The other side is glibc's lock: 0, 1 and 2 in the same word. One of our threads that finds its values goes
//! over to it, as the drop-in does.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed as Flag};

use spinpark_locks::bits::node::RELEASED;
use spinpark_locks::{Locked, RawCondvar, RawMutex, Waiter};
use spinpark_platform::Ordering::{Acquire, Relaxed, Release};
use spinpark_platform::{AtomicU32, Futex};
use spinpark_verify::platform::{Fault, Kind, Loom, Op};
use spinpark_verify::{Model, Shared, breaks, join_all, rejected};

/// The machine.
type P = Loom;
type Mutex = RawMutex<P>;

/// glibc's `lll_lock`. Without `sleeps` it gives up where it would sleep, and leaves the word as a sleeper
/// does.
fn lock_there(mutex: &Mutex, sleeps: bool) -> bool {
    let word = mutex.queue().word();
    if word.compare_exchange(0, 1, Acquire, Relaxed).is_ok() {
        return true;
    }
    while word.swap(2, Acquire) != 0 {
        if !sleeps {
            return false;
        }
        P::futex_wait(word, 2, None);
    }
    true
}

/// glibc's `lll_unlock`.
fn unlock_there(mutex: &Mutex) {
    if mutex.queue().word().swap(0, Release) > 1 {
        P::futex_wake(mutex.queue().word(), 1);
    }
}

fn section_there(shared: &Shared<Mutex>, sleeps: bool) {
    if lock_there(&shared.lock, sleeps) {
        shared.data.add();
        unlock_there(&shared.lock);
    }
}

/// A section of one of our threads. `passed`: the mark in the mutex' kind.
fn section_here(shared: &Shared<Mutex>, passed: &AtomicBool, sleeps: bool) {
    if passed.load(Flag) {
        return section_there(shared, sleeps);
    }
    match shared.lock.lock_or_glibc(None) {
        Locked::GlibcOwned => {
            passed.store(true, Flag);
            section_there(shared, sleeps);
        }
        _ => {
            shared.data.add();
            shared.lock.unlock();
        }
    }
}

/// Sections of one thread each on our side, and one on the other.
fn both_sides(model: Model, ours: usize, sleeps: bool) {
    model.check(move || {
        let shared = Shared::new(Mutex::new());
        let passed = std::sync::Arc::new(AtomicBool::new(false));
        let there = shared.spawn(move |shared| section_there(shared, sleeps));
        let here = |passed: std::sync::Arc<AtomicBool>| {
            shared.spawn(move |shared| section_here(shared, &passed, sleeps))
        };
        let others: Vec<_> = (1..ours).map(|_| here(passed.clone())).collect();
        section_here(&shared, &passed, sleeps);
        join_all(others);
        there.join().unwrap();
    });
}

/// Each wakes the other's sleeper, where releases are read-modify-writes.
#[test]
fn one_thread_of_each() {
    both_sides(Model::new().without_steps().preemptions(3), 1, true);
}

/// No two are inside, and none of our waiters sleeps on in our queue: with plain stores as well.
#[test]
fn two_of_ours_and_one_that_leaves_its_mark() {
    both_sides(Model::new().preemptions(2), 2, false);
    both_sides(Model::new().without_steps().preemptions(2), 2, false);
}

/// A mutex that stays contended.
#[test]
fn in_a_contended_mutex() {
    both_sides(Model::new().stays_contended().preemptions(2), 2, false);
}

/// A waiter of a condition variable takes back a mutex that the other side has locked, or marked, meanwhile.
#[test]
fn a_waiter_of_a_condition_variable() {
    for model in [Model::new(), Model::new().defers()] {
        model.preemptions(2).check(|| {
            let shared = Shared::new((Mutex::new(), RawCondvar::<P>::new()));
            let (mutex, condvar) = &shared.lock;
            mutex.lock();
            let waiter = Waiter::with_mutex(mutex);
            condvar.enqueue(&waiter);
            let there = shared.spawn(|shared| {
                if lock_there(&shared.lock.0, false) {
                    shared.data.add();
                    unlock_there(&shared.lock.0);
                }
            });
            let signaller = shared.spawn(|shared| {
                let (mutex, condvar) = &shared.lock;
                let locked = mutex.lock_or_glibc(None);
                condvar.signal();
                if locked == Locked::Acquired {
                    shared.data.add();
                    mutex.unlock();
                }
            });
            mutex.unlock_to_wait();
            waiter.sleep(None, P::futex_wait);
            let result = condvar.finish(&waiter);
            if waiter.reacquire_shared(result, mutex) {
                shared.data.add();
                mutex.unlock();
            }
            there.join().unwrap();
            signaller.join().unwrap();
        });
    }
}

/// X1: one of our threads takes a glibc-owned word for its own.
#[test]
fn mutant_takes_a_glibc_owned_word() {
    rejected!("mutant_takes_a_glibc_owned_word", breaks("word.X1"), "Causality violation", || {
        Model::new().without_steps().preemptions(2).check(|| {
            let shared = Shared::new(Mutex::new());
            let there = shared.spawn(|shared| section_there(shared, true));
            let _ = shared.lock.lock_or_glibc(None);
            shared.data.add();
            shared.lock.unlock();
            there.join().unwrap();
        });
    });
}

/// X2: a wake pass at a glibc-owned word takes the waiters out, and does not end their waits.
#[test]
fn mutant_ends_no_waits() {
    let ends = |op: &Op| op.is(Kind::Swap, Release) && op.writes(RELEASED);
    rejected!("mutant_ends_no_waits", breaks("glibc_owned.X2"), "deadlock", || {
        both_sides(Model::new().without_steps().preemptions(2).fault(Fault::Clears(ends)), 2, false);
    });
}

/// X3: a release does not wake the other side's sleeper.
#[test]
fn mutant_wakes_no_other() {
    rejected!("mutant_wakes_no_other", breaks("glibc_owned.X3"), "deadlock", || {
        both_sides(Model::new().without_steps().preemptions(2).fault(Fault::NoWakes), 1, true);
    });
}

/// What is not served: a plain store wipes out the mark of the other side's sleeper.
#[test]
fn mutant_releases_by_a_plain_store() {
    rejected!("mutant_releases_by_a_plain_store", breaks("glibc_owned.X3"), "deadlock", || {
        both_sides(Model::new().preemptions(2), 1, true);
    });
}
