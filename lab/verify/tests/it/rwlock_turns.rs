//! Models of the read-write lock in which one waiter must see to another (invariants core.L1, core.L2).
//!
//! They are long, so each is led to the place where it matters in one order (`lead_in`); a `yield_now` lets
//! the others run until they sleep. What follows is explored.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use loom::sync::atomic::AtomicU32;
use loom::thread::yield_now;
use spinpark_locks::{Preference, RawRwLock};
use spinpark_platform::Event::{GrantedReaders, Parked, RequestedHandoff, TimedOut, WokeHead};
use spinpark_verify::platform::{Loom, advance, lead_in};
use spinpark_verify::{Model, Shared, join_all};

const READERS: Preference = Preference::Readers;
const WRITERS: Preference = Preference::Writers;

fn rwlock<const STARVATION_NS: u64>() -> Arc<Shared<RawRwLock<Loom<STARVATION_NS>>>> {
    Shared::new(RawRwLock::new())
}

/// Runs `step` and then all threads that can run, until they sleep.
fn and_others(step: impl FnOnce()) {
    step();
    yield_now();
}

/// The woken writer queues again *behind* the upgrade, and looks: the reader's release may have left that to
/// it.
#[test]
fn an_upgrade_gets_past_a_woken_writer() {
    Model::new()
        .preemptions(1)
        .check(|| {
            let shared = rwlock::<1>();
            let writer = lead_in(|| {
                shared.lock.write();
                let writer = shared.spawn(Shared::write);
                yield_now(); // it queues
                shared.lock.unlock_write(); // it is woken
                shared.lock.upgradable(None); // it has lost
                shared.lock.read(READERS);
                writer
            });
            let reader = shared.spawn(|shared| shared.lock.unlock_read()); // for this thread
            shared.lock.upgrade(None);
            shared.lock.unlock_write();
            join_all([writer, reader]);
        })
        .reaches(&[WokeHead, Parked]);
}

/// An upgrade goes before all waiters, because they wait for its own thread.
#[test]
fn an_upgrade_gets_past_a_sleeping_writer() {
    Model::new()
        .check(|| {
            let shared = rwlock::<1>();
            let (writer, reader) = lead_in(|| {
                shared.lock.upgradable(None);
                shared.lock.read(READERS);
                let writer = shared.spawn(Shared::write);
                yield_now(); // it queues
                let reader = shared.spawn(|shared| shared.lock.unlock_read()); // for this thread
                (writer, reader)
            });
            shared.lock.upgrade(None);
            shared.lock.unlock_write();
            join_all([writer, reader]);
        })
        .reaches(&[WokeHead]);
}

/// The upgradable holder waits for a reader that queued behind it.
#[test]
fn an_upgradable_lets_in_the_reader_behind_it() {
    for preference in [READERS, WRITERS] {
        Model::new()
            .check(move || {
                let shared = rwlock::<1>();
                let has_read = Arc::new(AtomicU32::new(0));
                let threads = lead_in(|| {
                    shared.lock.write();
                    let awaited = Arc::clone(&has_read);
                    let upgradable = shared.spawn(move |shared| {
                        shared.lock.upgradable(None);
                        while awaited.load(Relaxed) == 0 {
                            yield_now();
                        }
                        shared.lock.unlock_upgradable();
                    });
                    yield_now(); // it queues
                    let reader = shared.spawn(move |shared| {
                        shared.read(preference);
                        has_read.store(1, Relaxed);
                    });
                    yield_now(); // it queues behind
                    [upgradable, reader]
                });
                shared.lock.unlock_write();
                join_all(threads);
            })
            .reaches(&[GrantedReaders, WokeHead]);
    }
}

/// Readers that wait come in with the thread that downgrades, at once.
#[test]
fn a_downgrade_lets_in_a_reader() {
    for to_upgradable in [false, true] {
        Model::new()
            .preemptions(3)
            .check(move || {
                let shared = rwlock::<1>();
                shared.lock.write();
                let reader = shared.spawn(|shared| shared.read(READERS));
                shared.data.add();
                if to_upgradable {
                    shared.lock.downgrade_to_upgradable();
                    reader.join().unwrap();
                    shared.lock.unlock_upgradable();
                } else {
                    shared.lock.downgrade();
                    reader.join().unwrap();
                    shared.lock.unlock_read();
                }
            })
            .reaches(&[GrantedReaders]);
    }
}

/// A writer that has requested the lock leaves at its deadline; the reader behind it can then enter.
#[test]
fn a_writer_that_leaves_lets_in_the_reader_behind_it() {
    Model::new()
        .moving_clock()
        .check(|| {
            let shared = rwlock::<0>();
            let writer = lead_in(|| {
                shared.lock.read(READERS);
                let writer = shared.spawn(|shared| shared.timed_write(1));
                yield_now(); // it queues
                shared.lock.read(READERS);
                and_others(|| shared.lock.unlock_read()); // it is told that it is passed, and requests the lock
                writer
            });
            let reader = shared.spawn(|shared| shared.read(READERS));
            yield_now(); // it queues
            advance(1);
            reader.join().unwrap();
            shared.lock.unlock_read();
            writer.join().unwrap();
        })
        .reaches(&[RequestedHandoff, TimedOut, GrantedReaders]);
}

/// The same for a writer that was woken, has lost, and gives up awake.
#[test]
fn a_woken_writer_that_gives_up_lets_in_the_reader_behind_it() {
    Model::new()
        .moving_clock()
        .check(|| {
            let shared = rwlock::<1>();
            let writer = lead_in(|| {
                shared.lock.write();
                let writer = shared.spawn(|shared| shared.timed_write(1));
                yield_now(); // it queues
                shared.lock.unlock_write(); // it is woken
                shared.lock.read(READERS); // it has lost
                advance(1);
                writer
            });
            let reader = shared.spawn(|shared| shared.read(WRITERS));
            yield_now(); // it queues behind the one that is awake
            reader.join().unwrap();
            shared.lock.unlock_read();
            writer.join().unwrap();
        })
        .reaches(&[TimedOut, GrantedReaders]);
}

/// A release relied on a spinner that the policy does not let in: when that one queues, it wakes the head.
#[test]
fn a_spinner_that_is_not_admitted_wakes_the_head() {
    Model::new()
        .spinning()
        .preemptions(1)
        .check(|| {
            let shared = rwlock::<1>();
            let writer = lead_in(|| {
                shared.lock.write();
                let writer = shared.spawn(Shared::write);
                yield_now(); // it queues
                shared.lock.unlock_write(); // it is woken
                and_others(|| shared.lock.write()); // it has lost, and sleeps with a timer that never ends
                writer
            });
            let reader = shared.spawn(|shared| shared.read(WRITERS));
            yield_now(); // it spins
            shared.lock.unlock_write();
            join_all([writer, reader]);
        })
        .reaches(&[WokeHead]);
}

/// A reader leaves, and one that had waited behind a writer comes in for it: the word stays as it is, and
/// both are made. (A release that took that for nothing to do would try again until the writer, which gives
/// up, has looked at the queue.)
#[test]
fn a_reader_leaves_as_another_comes_in_for_it() {
    Model::new()
        .moving_clock()
        .preemptions(2)
        .check(|| {
            let shared = rwlock::<1>();
            let others = lead_in(|| {
                shared.lock.upgradable(None);
                shared.lock.read(READERS);
                shared.lock.read(READERS);
                let writer = shared.spawn(|shared| shared.timed_write(1));
                yield_now(); // it queues
                let reader = shared.spawn(|shared| shared.read(WRITERS));
                yield_now(); // behind it
                let last = shared.spawn(Shared::write);
                yield_now(); // behind both, so that one thread waits before and another after
                shared.lock.unlock_read(); // the writer is woken: it is told that it is passed
                advance(1);
                [writer, reader, last]
            });
            shared.lock.unlock_read();
            shared.lock.unlock_upgradable();
            join_all(others);
        })
        .reaches(&[TimedOut, GrantedReaders]);
}
