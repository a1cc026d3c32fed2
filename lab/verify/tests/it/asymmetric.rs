//! Models of the asymmetric release: a writer's plain store against a thread that marks the lock (invariants
//! A1 to A3).
//!
//! Each runs on three machines: one with restartable steps, one on which the first step of each thread is
//! aborted, and one without them, on which a release is a compare-exchange and the fence does nothing.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use loom::sync::atomic::AtomicU32;
use loom::thread::{self, yield_now};
use spinpark_locks::{Adaptive, Preference, RawCondvar, RawMutex, RawRwLock, TryRwLock as _, WaitResult};
use spinpark_platform::Event::{
    DeferredWake, GrantedReaders, Parked, SpinAcquired, SpinLeftBudget, TimedOut, WokeHead,
};
use spinpark_platform::{Event, Platform};
use spinpark_verify::platform::{Loom, advance, lead_in};
use spinpark_verify::{Guarded, Model, Mortal, Shared, after, breaks, join_all, rejected};

type Mutex<const STARVATION_NS: u64 = 1, const SPIN_NS: u64 = 0> = RawMutex<Loom<STARVATION_NS, SPIN_NS>>;

/// `model` on the three machines.
fn check(model: Model, events: &[Event], body: fn()) {
    for model in [model, model.aborted(), model.without_steps()] {
        model.check(body).reaches(events);
    }
}

/// Each of `threads` has two critical sections: the second acquires what the first released.
fn two_sections_each<P: Platform + Adaptive>(threads: u32) {
    let shared = Shared::new(RawMutex::<P>::new());
    let run = |shared: &Shared<RawMutex<P>>| {
        shared.section();
        shared.section();
    };
    let others: Vec<_> = (1..threads).map(|_| shared.spawn(run)).collect();
    run(&shared);
    join_all(others);
    assert_eq!(shared.finish(), 2 * threads);
}

#[test]
fn a_release_against_a_waiter_that_marks() {
    check(Model::new().preemptions(3), &[Parked, WokeHead], || two_sections_each::<Loom>(2));
}

#[test]
fn a_release_against_a_waiter_that_spins_first() {
    check(Model::new().preemptions(2).spinning(), &[SpinAcquired, SpinLeftBudget, WokeHead], || {
        two_sections_each::<Loom>(2);
    });
}

#[test]
fn a_release_against_two_waiters() {
    for model in [Model::new().preemptions(1), Model::new().preemptions(1).spinning()] {
        check(model, &[Parked, WokeHead], || {
            let shared = Shared::new(Mutex::<1>::new());
            let others = lead_in(|| {
                shared.lock.lock();
                [0, 1].map(|_| shared.spawn(Shared::section))
            });
            shared.data.add();
            shared.lock.unlock();
            join_all(others);
            assert_eq!(shared.finish(), 3);
        });
    }
}

#[test]
fn a_release_against_a_timed_waiter() {
    check(Model::new().moving_clock().preemptions(2), &[TimedOut, WokeHead], || {
        let shared = Shared::new(Mutex::<1>::new());
        shared.lock.lock();
        let timed = shared.spawn(|shared| shared.timed_section(1));
        advance(1);
        shared.data.add();
        shared.lock.unlock();
        shared.section();
        timed.join().unwrap();
        shared.finish();
    });
}

/// A3: the queue has asked for contended, there are no flags, and a thread marks the lock as its writer
/// releases it.
fn contended_ends<const OTHERS: usize>() {
    let shared = Shared::new(Mutex::<1>::new());
    let holder = lead_in(|| {
        shared.lock.lock();
        let holder = shared.spawn(|shared| {
            shared.lock.lock();
            shared.data.add();
            yield_now(); // here the lead-in ends
            shared.lock.unlock();
        });
        yield_now(); // it queues
        shared.lock.unlock(); // it is woken
        yield_now(); // it holds the lock
        holder
    });
    let others: Vec<_> = (1..OTHERS).map(|_| shared.spawn(Shared::section)).collect();
    shared.section();
    holder.join().unwrap();
    join_all(others);
    assert_eq!(shared.finish(), 1 + OTHERS as u32);
}

#[test]
fn contended_ends_as_a_thread_marks() {
    check(Model::new().preemptions(2), &[WokeHead], contended_ends::<1>);
    // The other two machines add nothing but time to what the line above and `a_release_against_two_waiters`
    // explore.
    Model::new().preemptions(1).check(contended_ends::<2>).reaches(&[WokeHead]);
}

#[test]
fn contended_ends_beside_a_spinner() {
    check(Model::new().preemptions(2).spinning(), &[SpinLeftBudget, WokeHead], contended_ends::<1>);
}

/// The spinner leaves at its deadline, or queues, or acquires.
#[test]
fn a_spinner_leaves() {
    check(Model::new().moving_clock().preemptions(2).spinning(), &[TimedOut, SpinAcquired], || {
        let shared = Shared::new(Mutex::<1>::new());
        let timed = shared.spawn(|shared| shared.timed_section(1));
        shared.section();
        advance(1);
        shared.section();
        timed.join().unwrap();
        shared.finish();
    });
}

// A waiter that is moved from a condition variable.

struct Pair {
    mutex: Mutex,
    condvar: RawCondvar<Loom>,
}

/// With a waiter in the condition variable and the mutex held by the model's thread.
fn signalled(run: impl FnOnce(&Arc<Shared<Pair>>)) {
    let shared = Shared::new(Pair { mutex: RawMutex::new(), condvar: RawCondvar::new() });
    let waiter = lead_in(|| {
        let waiter = shared.spawn(|shared| {
            let Pair { mutex, condvar } = &shared.lock;
            mutex.lock();
            assert_eq!(condvar.wait(mutex, None), WaitResult::Signalled);
            shared.data.add();
            mutex.unlock();
        });
        yield_now(); // it waits
        shared.lock.mutex.lock();
        waiter
    });
    run(&shared);
    waiter.join().unwrap();
}

#[test]
fn a_release_against_a_signal_without_the_lock() {
    check(Model::new().preemptions(4), &[WokeHead], || {
        signalled(|shared| {
            let signaller = shared.spawn(|shared| assert!(shared.lock.condvar.signal()));
            shared.data.add();
            shared.lock.mutex.unlock();
            signaller.join().unwrap();
        });
    });
}

#[test]
fn a_release_after_a_signal_under_the_lock() {
    check(Model::new().preemptions(1), &[DeferredWake, WokeHead], || {
        signalled(|shared| {
            let other = shared.spawn(|shared| {
                shared.lock.mutex.lock();
                shared.data.add();
                shared.lock.mutex.unlock();
            });
            shared.data.add();
            assert!(shared.lock.condvar.signal());
            shared.lock.mutex.unlock();
            other.join().unwrap();
        });
    });
}

/// Outside the contract of `RawMutex::unlock`: another thread releases while the one that has acquired
/// signals, which takes for granted that it is the one that releases. What the contract is for.
#[test]
fn a_release_by_another_thread_against_a_signal_by_the_owner() {
    rejected!(
        "a_release_by_another_thread_against_a_signal_by_the_owner",
        breaks("fast_path.A1"),
        "deadlock",
        || {
            Model::new().preemptions(4).check(|| {
                signalled(|shared| {
                    let other = shared.spawn(|shared| shared.lock.mutex.unlock());
                    assert!(shared.lock.condvar.signal());
                    other.join().unwrap();
                });
            });
        }
    );
}

#[test]
fn a_mutex_freed_by_the_waiter_that_was_signalled() {
    check(Model::new().preemptions(3), &[WokeHead], || {
        let mutex = Mortal::new(Mutex::<1>::new());
        let condvar = Mortal::new(RawCondvar::new());
        let waiter = lead_in(|| {
            let waiter = thread::spawn(move || {
                mutex.lock();
                assert_eq!(condvar.wait(&mutex, None), WaitResult::Signalled);
                mutex.unlock();
                mutex.destroy();
            });
            yield_now(); // it waits
            mutex.lock();
            waiter
        });
        let signaller = thread::spawn(move || assert!(condvar.signal()));
        mutex.unlock();
        signaller.join().unwrap();
        waiter.join().unwrap();
    });
}

// Writers of a read-write lock.

fn rwlock() -> Arc<Shared<RawRwLock<Loom>>> {
    Shared::new(RawRwLock::new())
}

#[test]
fn a_writers_release_against_a_writer() {
    check(Model::new().preemptions(3), &[Parked, WokeHead], || {
        let shared = rwlock();
        let run = |shared: &Shared<RawRwLock<Loom>>| {
            shared.write();
            shared.write();
        };
        let other = shared.spawn(run);
        run(&shared);
        other.join().unwrap();
        assert_eq!(shared.data.get(), 4);
    });
}

fn two_writes_and_a_read(preference: Preference) {
    let shared = rwlock();
    let reader = shared.spawn(move |shared| shared.read(preference));
    shared.write();
    shared.write();
    reader.join().unwrap();
}

#[test]
fn a_writers_release_against_a_reader() {
    let model = Model::new();
    check(model.preemptions(3), &[GrantedReaders], || two_writes_and_a_read(Preference::Readers));
    check(model.preemptions(2), &[GrantedReaders], || two_writes_and_a_read(Preference::Writers));
}

/// An upgrader held the lock while others could mark it without a fence.
#[test]
fn the_release_of_an_upgrade_against_a_writer() {
    check(Model::new().preemptions(3), &[Parked, WokeHead], || {
        let shared = rwlock();
        let writer = shared.spawn(|shared| shared.write());
        shared.lock.upgradable(None);
        if shared.lock.try_upgrade() {
            shared.data.add();
            shared.lock.unlock_write();
        } else {
            shared.lock.unlock_upgradable();
        }
        shared.write();
        writer.join().unwrap();
    });
}

#[test]
fn a_downgrade_against_a_timed_writer() {
    check(Model::new().moving_clock().preemptions(2), &[TimedOut, WokeHead], || {
        let shared = rwlock();
        shared.lock.write();
        let writer = shared.spawn(|shared| shared.timed_write(1));
        advance(1);
        shared.lock.downgrade();
        shared.data.get();
        shared.lock.unlock_read();
        shared.write();
        writer.join().unwrap();
        assert!(shared.lock.write_until(Some(after(0))), "free");
    });
}

// The last one out frees the lock.

fn last_writer_frees() {
    let lock = Mortal::new(RawRwLock::<Loom>::new());
    let users = Mortal::new(AtomicU32::new(2));
    let run = move || {
        lock.write();
        let is_last = users.fetch_sub(1, Relaxed) == 1;
        lock.unlock_write();
        if is_last {
            lock.destroy();
        }
    };
    let other = thread::spawn(run);
    run();
    other.join().unwrap();
}

/// The thread that frees the mutex got it from a release that cleared the contended bit.
fn last_one_frees(spins: bool) {
    let mutex = Mortal::new(Mutex::<1>::new());
    let users = Mortal::new(Guarded::new());
    let run = move || {
        mutex.lock();
        let is_last = users.add() == 2;
        mutex.unlock();
        if is_last {
            mutex.destroy();
        }
    };
    let other = lead_in(|| {
        if spins {
            return thread::spawn(run);
        }
        mutex.lock();
        let other = thread::spawn(move || {
            mutex.lock();
            yield_now(); // here the lead-in ends
            mutex.unlock();
            run();
        });
        yield_now(); // it queues
        mutex.unlock(); // it is woken
        yield_now(); // it holds the mutex, with contended
        other
    });
    run();
    other.join().unwrap();
}

#[test]
fn the_last_one_out_frees_the_lock() {
    check(Model::new().preemptions(3), &[WokeHead], last_writer_frees);
    check(Model::new().preemptions(2), &[WokeHead], || last_one_frees(false));
    check(Model::new().preemptions(2).spinning(), &[SpinAcquired], || last_one_frees(true));
}
