//! Models of waiters that leave a lock to its owner for a while.
//!
//! `backing_off`: two CPUs, a first waiter that keeps its own time from the start, releases that leave it
//! asleep, and holders that mark the lock themselves because their turn is to be timed.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Release};

use loom::sync::atomic::AtomicBool;
use loom::thread::{self, yield_now};
use spinpark_locks::RawMutex;
use spinpark_platform::Event::{HandedOff, Parked, RequestedHandoff, TimedOut, WokeHead};
use spinpark_verify::platform::{Fault, Loom, advance, lead_in};
use spinpark_verify::{Model, Shared, breaks, rejected};

/// Starves after 1 ns: a waiter that lets its owner go on requests the lock when it looks for the first time.
type Mutex = RawMutex<Loom>;
/// Starves after 3 ns: such a waiter looks twice before that.
type PatientMutex = RawMutex<Loom<4>>;

const HANGS: &str = "exceeded maximum number of branches";

/// A lock, and how many threads are done with it.
struct Timed<L> {
    shared: Arc<Shared<L>>,
    done: Arc<AtomicBool>,
}

impl<L: 'static> Timed<L> {
    fn new(lock: L) -> Self {
        Self { shared: Shared::new(lock), done: Arc::new(AtomicBool::new(false)) }
    }

    /// A thread whose end [`Timed::finish`] waits for.
    fn spawn(&self, run: impl FnOnce(&Shared<L>) + 'static) -> thread::JoinHandle<()> {
        let done = Arc::clone(&self.done);
        self.shared.spawn(move |shared| {
            run(shared);
            done.store(true, Release);
        })
    }

    /// Moves the clock until the thread is done: whatever sleeps by a timer wakes up, again and again.
    fn finish(&self, other: thread::JoinHandle<()>) {
        while !self.done.load(Acquire) {
            advance(1);
            yield_now();
        }
        other.join().unwrap();
    }
}

/// One critical section of a thread that does not come back: its release leaves no waiter asleep.
fn last_section<const STARVATION_NS: u64>(shared: &Shared<RawMutex<Loom<STARVATION_NS>>>) {
    shared.lock.lock();
    shared.data.add();
    shared.lock.unlock_to_wait();
}

/// A waiter keeps its own time from the start. Releases leave it asleep; it looks by itself, and requests the
/// lock at last.
fn unwoken<const STARVATION_NS: u64>(model: Model, sections: u32) {
    model
        .check(move || {
            let timed = Timed::new(RawMutex::<Loom<STARVATION_NS>>::new());
            timed.shared.lock.lock();
            let waiter = timed.spawn(last_section);
            for _ in 0..sections {
                timed.shared.data.add();
                timed.shared.lock.unlock();
                timed.shared.lock.lock();
                advance(1);
            }
            timed.shared.lock.unlock();
            timed.finish(waiter);
            assert_eq!(timed.shared.finish(), sections + 1);
        })
        .reaches(&[Parked]);
}

#[test]
fn an_unwoken_waiter_rechecks_by_itself() {
    unwoken::<1>(Model::new().moving_clock().backing_off().preemptions(2), 1);
    unwoken::<4>(Model::new().moving_clock().backing_off().preemptions(2), 1);
}

/// It has marked the lock as the holder clears the contended bit: the next release sees that, whether or not
/// this one wakes it.
#[test]
fn the_contended_bit_ends_as_a_waiter_comes_that_keeps_its_own_time() {
    for model in [Model::new(), Model::new().stays_contended()] {
        model.moving_clock().backing_off().preemptions(2).check(contended_ends_beside_a_timed_head);
    }
}

fn contended_ends_beside_a_timed_head() {
    let timed = Timed::new(Mutex::new());
    let shared = Arc::clone(&timed.shared);
    shared.lock.lock();
    shared.lock.force_slow_release();
    let waiter = timed.spawn(last_section);
    shared.lock.unlock(); // the contended ends, perhaps
    shared.section(); // perhaps by a plain store
    shared.lock.lock();
    shared.data.add();
    advance(1);
    yield_now(); // the waiter looks, and requests the lock
    shared.lock.unlock();
    timed.finish(waiter);
    shared.lock.lock();
    assert_eq!(shared.data.get(), 3);
    shared.lock.unlock();
}

/// A thread that releases to wait for something else does not come back: it wakes the waiter, and no clock is
/// needed.
#[test]
fn a_release_to_wait_wakes_a_waiter_that_keeps_its_own_time() {
    Model::new()
        .backing_off()
        .preemptions(3)
        .check(|| {
            let shared = Shared::new(PatientMutex::new());
            shared.lock.lock();
            let waiter = shared.spawn(last_section);
            shared.data.add();
            shared.lock.unlock_to_wait();
            waiter.join().unwrap();
            assert_eq!(shared.data.get(), 2);
        })
        .reaches(&[WokeHead]);
}

/// The same of a fair release, which hands the mutex over.
#[test]
fn a_fair_release_serves_a_waiter_that_keeps_its_own_time() {
    Model::new()
        .backing_off()
        .preemptions(2)
        .check(|| {
            let shared = Shared::new(PatientMutex::new());
            let waiter = lead_in(|| {
                shared.lock.lock();
                let waiter = shared.spawn(last_section);
                yield_now(); // it queues
                waiter
            });
            shared.data.add();
            shared.lock.unlock_fair();
            waiter.join().unwrap();
            assert_eq!(shared.data.get(), 2);
        })
        .reaches(&[HandedOff]);
}

/// One that keeps its own time, one behind it, and a deadline at which the first leaves: the second is not
/// left behind.
#[test]
fn a_waiter_that_keeps_its_own_time_gives_up() {
    Model::new()
        .moving_clock()
        .backing_off()
        .preemptions(1)
        .check(|| {
            let timed = Timed::new(PatientMutex::new());
            timed.shared.lock.lock();
            let first = timed.shared.spawn(|shared| shared.timed_section(1));
            let second = timed.spawn(Shared::section);
            advance(1);
            timed.shared.lock.unlock();
            timed.finish(second);
            first.join().unwrap();
            timed.shared.finish();
        })
        .reaches(&[TimedOut]);
}

/// A holder marks the mutex by itself, for its turn to be timed, as the other thread queues; each acquires
/// twice.
#[test]
fn a_holder_marks_as_a_waiter_queues() {
    for model in [Model::new(), Model::new().stays_contended()] {
        model.moving_clock().backing_off().preemptions(2).check(|| {
            let timed = Timed::new(Mutex::new());
            let other = timed.spawn(|shared| {
                shared.section();
                last_section(shared);
            });
            timed.shared.section();
            timed.shared.section();
            timed.finish(other);
            timed.shared.lock.lock();
            assert_eq!(timed.shared.data.get(), 4);
            timed.shared.lock.unlock();
        });
    }
}

/// A waiter that starves is handed the mutex by a holder that comes back for it again and again.
#[test]
fn a_waiter_that_keeps_its_own_time_requests_the_lock() {
    Model::new()
        .moving_clock()
        .backing_off()
        .preemptions(2)
        .check(|| {
            let timed = Timed::new(Mutex::new());
            let shared = &timed.shared;
            let waiter = lead_in(|| {
                shared.lock.lock();
                let waiter = timed.spawn(Shared::section);
                yield_now(); // it queues
                waiter
            });
            advance(1);
            yield_now();
            shared.lock.unlock();
            timed.finish(waiter);
            shared.finish();
        })
        .reaches(&[RequestedHandoff, HandedOff]);
}

// Mutants.

/// The waiter that releases leave asleep has no timer.
#[test]
fn a_waiter_that_keeps_no_time() {
    rejected!("a_waiter_that_keeps_no_time", breaks("core.L1"), HANGS, || {
        unwoken::<1>(Model::new().moving_clock().backing_off().fault(Fault::NoTimeouts).preemptions(1), 1);
    });
}
