//! Models of holds that another thread ends: a normal mutex, or a read lock, that one thread acquires and
//! another one releases. POSIX leaves that undefined for pthreads; programs that use a mutex as a semaphore
//! do it.
//!
//! What is not modelled does not hold: the thread that has locked the mutex signals a waiter of it while the
//! other one releases it (a row of docs/drop-in.md's table of programs that break rules).

use std::sync::Arc;

use loom::sync::atomic::AtomicBool;
use loom::sync::atomic::Ordering::{Acquire, Release};
use loom::thread::{JoinHandle, yield_now};
use spinpark_locks::{Preference, RawMutex, RawRwLock};
use spinpark_platform::Event;
use spinpark_platform::Event::{Parked, WokeHead};
use spinpark_verify::platform::{Fault, Loom};
use spinpark_verify::{Model, Shared, breaks, join_all, rejected};

type Mutex = RawMutex<Loom>;
type RwLock = RawRwLock<Loom>;

/// `model` with restartable steps, with aborted ones, and without them.
fn check(model: Model, events: &[Event], body: fn()) {
    for model in [model, model.aborted(), model.without_steps()] {
        model.check(body).reaches(events);
    }
}

/// A thread that ends the hold of the caller, once that has said so.
fn releases(shared: &Arc<Shared<Mutex>>, is_due: &Arc<AtomicBool>) -> JoinHandle<()> {
    let is_due = Arc::clone(is_due);
    shared.spawn(move |shared| {
        while !is_due.load(Acquire) {
            yield_now();
        }
        shared.data.add();
        shared.lock.unlock();
    })
}

/// Another thread releases the mutex that this one has locked. This number of `waiters` want it, and perhaps
/// its owner again: then the owner in the word is the waiter itself.
fn passes_on(waiters: u32, owner_waits: bool) {
    let shared = Shared::new(Mutex::new());
    let is_due = Arc::new(AtomicBool::new(false));
    shared.lock.lock();
    let other = releases(&shared, &is_due);
    let others: Vec<_> = (0..waiters).map(|_| shared.spawn(Shared::section)).collect();
    shared.data.add();
    is_due.store(true, Release);
    if owner_waits {
        shared.section();
    }
    join_all(others.into_iter().chain([other]));
    assert_eq!(shared.finish(), 2 + waiters + u32::from(owner_waits));
}

fn its_owner_waits() {
    passes_on(0, true);
}

#[test]
fn another_thread_releases_a_mutex_with_a_waiter() {
    check(Model::new().preemptions(2), &[Parked, WokeHead], || passes_on(1, false));
}

#[test]
fn another_thread_releases_a_mutex_that_its_owner_waits_for() {
    check(Model::new().preemptions(3), &[Parked, WokeHead], its_owner_waits);
}

#[test]
fn another_thread_releases_a_mutex_that_its_owner_and_a_third_thread_wait_for() {
    Model::new().preemptions(1).check(|| passes_on(1, true)).reaches(&[Parked, WokeHead]);
}

#[test]
fn another_thread_gives_back_a_read_lock() {
    check(Model::new().preemptions(2), &[Parked], || {
        let shared = Shared::new(RwLock::new());
        shared.lock.read(Preference::Readers);
        let writer = shared.spawn(Shared::write);
        let other = shared.spawn(|shared| shared.lock.unlock_read());
        join_all([writer, other]);
        assert_eq!(shared.data.get(), 1);
    });
}

/// A1: the owner that waits takes the release for its own, which would see the mark.
#[test]
fn an_owner_that_waits_without_the_fence() {
    rejected!("an_owner_that_waits_without_the_fence", breaks("fast_path.A1"), "deadlock", || {
        Model::new().preemptions(3).fault(Fault::NoFence).check(its_owner_waits);
    });
}
