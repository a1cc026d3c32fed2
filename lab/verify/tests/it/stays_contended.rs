//! Models of locks that stay contended.
//!
//! `stays_contended`: the contended bit outlives the queue, and a waiter that finds it set marks the lock
//! without a fence.

use std::sync::Arc;

use loom::thread::{self, yield_now};
use spinpark_locks::bits::queue_lock::{CONTENDED, SERVED};
use spinpark_locks::bits::word::{WAITERS, WRITER};
use spinpark_locks::{Preference, RawMutex, RawRwLock};
use spinpark_platform::Event::{Parked, WokeHead};
use spinpark_platform::Ordering::Release as Releases;
use spinpark_verify::platform::{Fault, Kind, Loom, Op, lead_in};
use spinpark_verify::{Model, Mortal, Shared, breaks, rejected};

type Mutex = RawMutex<Loom>;

const LOST_WAKE_UP: &str = "deadlock";

/// A thread holds the mutex, whose queue is empty, and whose contended bit is set: returned before the
/// thread's `rest`.
fn contended(rest: impl FnOnce(&Shared<Mutex>) + 'static) -> (Arc<Shared<Mutex>>, thread::JoinHandle<()>) {
    let shared = Shared::new(Mutex::new());
    let holder = lead_in(|| {
        shared.lock.lock();
        let holder = shared.spawn(|shared| {
            shared.lock.lock();
            shared.data.add();
            yield_now(); // here the lead-in ends
            rest(shared);
        });
        yield_now(); // it queues
        shared.lock.unlock(); // it is woken
        yield_now(); // it holds the lock
        holder
    });
    (shared, holder)
}

/// The holder of a contended mutex releases it twice, against a waiter that comes twice.
fn releases_twice(model: Model) {
    model
        .check(|| {
            let (shared, holder) = contended(|shared| {
                shared.lock.unlock();
                shared.section();
            });
            shared.section();
            shared.section();
            holder.join().unwrap();
            assert_eq!(shared.lock.lock(), ());
            assert_eq!(shared.data.get(), 4);
            shared.lock.unlock();
        })
        .reaches(&[Parked, WokeHead]);
}

#[test]
fn a_waiter_that_finds_the_contended_bit_needs_no_fence() {
    for model in [Model::new(), Model::new().aborted(), Model::new().without_steps()] {
        releases_twice(model.stays_contended().preemptions(2));
    }
}

/// Each second contention finds the contended bit of the first.
#[test]
fn two_threads_contend_twice() {
    Model::new().stays_contended().preemptions(3).check(|| {
        let shared = Shared::new(Mutex::new());
        let other = shared.spawn(|shared| {
            shared.section();
            shared.section();
        });
        shared.section();
        shared.section();
        other.join().unwrap();
        assert_eq!(shared.finish(), 4);
    });
}

/// The holder clears the contended bit, and a second waiter marks the lock meanwhile, or just before, or
/// after.
#[test]
fn the_contended_bit_ends_as_a_waiter_marks() {
    releases_twice(Model::new().preemptions(3));
}

#[test]
fn the_last_one_out_frees_a_contended_mutex() {
    Model::new().stays_contended().preemptions(3).check(|| {
        let mutex = Mortal::new(Mutex::new());
        let users = Mortal::new(loom::sync::atomic::AtomicU32::new(2));
        let run = move || {
            mutex.lock();
            mutex.unlock();
            mutex.lock();
            let is_last = users.fetch_sub(1, std::sync::atomic::Ordering::Relaxed) == 1;
            mutex.unlock();
            if is_last {
                mutex.destroy();
            }
        };
        let other = thread::spawn(run);
        run();
        other.join().unwrap();
    });
}

/// Writers and a reader of a lock that stays contended.
#[test]
fn writers_and_a_reader_of_a_contended_lock() {
    Model::new().stays_contended().preemptions(2).check(|| {
        let shared = Shared::new(RawRwLock::<Loom>::new());
        let other = shared.spawn(|shared| {
            shared.write();
            shared.read(Preference::Readers);
        });
        shared.write();
        shared.write();
        other.join().unwrap();
    });
}

// Mutants.

/// The waiter relies on a mark that was not there when it locked the queue, or that no fence followed.
#[test]
fn no_fence_at_the_first_contention() {
    rejected!("no_fence_at_the_first_contention", breaks("fast_path.A1"), LOST_WAKE_UP, || {
        Model::new().stays_contended().fault(Fault::NoFence).preemptions(3).check(|| {
            let shared = Shared::new(Mutex::new());
            let other = shared.spawn(Shared::section);
            shared.section();
            shared.section();
            other.join().unwrap();
        });
    });
}

/// The waiter reads the contended bit before it locks the queue, so it may be cleared meanwhile.
#[test]
fn the_bit_is_read_before_the_queue_is_locked() {
    rejected!("the_bit_is_read_before_the_queue_is_locked", breaks("fast_path.A4"), LOST_WAKE_UP, || {
        releases_once(Model::new().fault(Fault::Overlooked(CONTENDED | SERVED)).preemptions(3));
    });
}

/// Not a mutant of the lock: the same model on a machine without that fault.
#[test]
fn the_bit_is_read_as_the_queue_is_locked() {
    releases_once(Model::new().preemptions(3));
}

/// The holder releases, acquires and releases again; one waiter comes, and is the only one that locks the
/// queue.
fn releases_once(model: Model) {
    model.check(|| {
        let (shared, holder) = contended(|shared| {
            shared.lock.unlock();
            shared.section();
        });
        shared.section();
        holder.join().unwrap();
    });
}

/// A release clears the contended bit although the queue is not empty.
#[test]
fn the_bit_is_cleared_with_a_waiter_left() {
    rejected!("the_bit_is_cleared_with_a_waiter_left", breaks("fast_path.A4"), LOST_WAKE_UP, || {
        let unlocks = |op: &Op| op.is(Kind::CompareExchange, Releases) && op.within(!SERVED) == CONTENDED;
        releases_twice(Model::new().stays_contended().fault(Fault::Clears(unlocks)).preemptions(3));
    });
}

/// A release that clears the contended bit stores blindly, whatever came meanwhile.
#[test]
fn the_bit_is_cleared_and_no_check_follows() {
    rejected!("the_bit_is_cleared_and_no_check_follows", breaks("fast_path.A3"), LOST_WAKE_UP, || {
        let releases = |op: &Op| op.is(Kind::CompareExchange, Releases) && op.lacks(WAITERS | WRITER);
        releases_twice(Model::new().fault(Fault::Blind(releases)).preemptions(3));
    });
}
