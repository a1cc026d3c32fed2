//! Models of the read-write lock.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use loom::sync::atomic::AtomicU32;
use loom::thread;
use spinpark_locks::{Preference, RawRwLock, TryRwLock as _};
use spinpark_platform::Event::{
    GrantedReaders, HandedOff, Parked, RequestedHandoff, SpinLeftBudget, TimedOut, WithdrewRequest, WokeHead,
};
use spinpark_verify::platform::{Loom, NEVER, advance, lead_in};
use spinpark_verify::{Model, Mortal, Shared, after, join_all};

const READERS: Preference = Preference::Readers;

fn rwlock<const STARVATION_NS: u64>() -> Arc<Shared<RawRwLock<Loom<STARVATION_NS>>>> {
    Shared::new(RawRwLock::new())
}

#[test]
fn a_writer_and_two_readers() {
    Model::new()
        .preemptions(1)
        .check(|| {
            let shared = rwlock::<1>();
            let readers = [0, 1].map(|_| shared.spawn(|shared| shared.read(READERS)));
            shared.write();
            join_all(readers);
        })
        .reaches(&[GrantedReaders, Parked]);
}

#[test]
fn two_writers_and_a_reader_spinning() {
    Model::new()
        .preemptions(1)
        .spinning()
        .check(|| {
            let shared = rwlock::<1>();
            let others = [shared.spawn(Shared::write), shared.spawn(|shared| shared.read(READERS))];
            shared.write();
            join_all(others);
            assert_eq!(shared.data.get(), 2);
        })
        .reaches(&[SpinLeftBudget, Parked]);
}

#[test]
fn readers_are_let_in_as_a_group() {
    Model::new()
        .check(|| {
            let shared = rwlock::<1>();
            shared.lock.write();
            let readers = [0, 1].map(|_| shared.spawn(|shared| shared.read(READERS)));
            shared.data.add();
            shared.lock.unlock_write();
            join_all(readers);
        })
        .reaches(&[GrantedReaders]);
}

#[test]
fn a_reader_recurses_while_a_starved_writer_waits() {
    Model::new()
        .preemptions(1)
        .check(|| {
            let shared = rwlock::<0>();
            shared.lock.read(READERS);
            let writer = shared.spawn(Shared::write);
            // The first release tells the writer that it is passed; it requests the lock; the second read
            // gets past it.
            for _ in 0..2 {
                thread::yield_now();
                shared.lock.read(READERS);
                shared.data.get();
                shared.lock.unlock_read();
            }
            shared.lock.unlock_read();
            writer.join().unwrap();
        })
        .reaches(&[RequestedHandoff, HandedOff]);
}

#[test]
fn a_reader_waits_for_its_helper_past_a_starved_writer() {
    // The helper probes twice, and ends the request of the writer, which has lasted long enough (no time at all).
    Model::new()
        .preemptions(1)
        .check(|| {
            let lock = Arc::new(RawRwLock::<Loom<0, 0, 0, { u32::MAX }, NEVER, 0>>::new());
            lock.read(READERS);
            let [writer, helper] = [false, true].map(|reads| {
                let lock = Arc::clone(&lock);
                thread::spawn(move || {
                    if reads {
                        lock.read(READERS);
                        lock.unlock_read();
                    } else {
                        lock.write();
                        lock.unlock_write();
                    }
                })
            });
            // A second read, so that its release lets the writer know that it is passed.
            lock.read(READERS);
            lock.unlock_read();
            helper.join().unwrap();
            lock.unlock_read();
            writer.join().unwrap();
        })
        .reaches(&[RequestedHandoff]);
}

#[test]
fn readers_that_overlap_do_not_starve_a_writer() {
    Model::new()
        .preemptions(1)
        .moving_clock()
        .check(|| {
            let shared = rwlock::<1>();
            shared.lock.read(READERS);
            let writer = shared.spawn(Shared::write);
            // Another thread reads on and on, while the first reader stays.
            let stream = shared.spawn(|shared| {
                while shared.lock.try_read(READERS) {
                    shared.lock.unlock_read();
                    advance(1);
                    thread::yield_now();
                }
            });
            stream.join().unwrap();
            shared.lock.unlock_read();
            writer.join().unwrap();
        })
        .reaches(&[RequestedHandoff, HandedOff]);
}

#[test]
fn readers_that_overlap_do_not_starve_an_upgrade() {
    Model::new()
        .preemptions(1)
        .moving_clock()
        .check(|| {
            let shared = rwlock::<1>();
            shared.lock.read(READERS);
            let upgrader = shared.spawn(|shared| {
                shared.lock.upgradable(None);
                shared.lock.upgrade(None);
                shared.data.add();
                shared.lock.unlock_write();
            });
            let stream = shared.spawn(|shared| {
                while shared.lock.try_read(READERS) {
                    shared.lock.unlock_read();
                    advance(1);
                    thread::yield_now();
                }
            });
            stream.join().unwrap();
            shared.lock.unlock_read();
            upgrader.join().unwrap();
        })
        .reaches(&[RequestedHandoff, HandedOff]);
}

#[test]
fn two_upgraders() {
    Model::new().check(|| {
        let shared = rwlock::<1>();
        let upgrade = |shared: &Shared<RawRwLock<_>>| {
            shared.lock.upgradable(None);
            shared.data.get();
            shared.lock.upgrade(None);
            shared.data.add();
            shared.lock.unlock_write();
        };
        let other = shared.spawn(upgrade);
        upgrade(&shared);
        other.join().unwrap();
        assert_eq!(shared.data.get(), 2);
    });
}

#[test]
fn downgrades() {
    for to_upgradable in [false, true] {
        Model::new()
            .preemptions(1)
            .check(move || {
                let shared = rwlock::<1>();
                shared.lock.write();
                let others = [shared.spawn(Shared::write), shared.spawn(|shared| shared.read(READERS))];
                shared.data.add();
                if to_upgradable {
                    shared.lock.downgrade_to_upgradable();
                    shared.data.get();
                    shared.lock.downgrade_upgradable();
                } else {
                    shared.lock.downgrade();
                }
                shared.data.get();
                shared.lock.unlock_read();
                join_all(others);
            })
            .reaches(&[GrantedReaders]);
    }
}

#[test]
fn a_timed_upgrade_is_still_upgradable() {
    Model::new()
        .moving_clock()
        .check(|| {
            let shared = rwlock::<1>();
            let reader = shared.spawn(|shared| shared.read(READERS));
            let upgrader = shared.spawn(|shared| {
                shared.lock.upgradable(None);
                if shared.lock.upgrade(Some(after(1))) {
                    shared.data.add();
                    shared.lock.unlock_write();
                } else {
                    shared.data.get();
                    shared.lock.unlock_upgradable();
                }
            });
            advance(1);
            join_all([reader, upgrader]);
        })
        .reaches(&[TimedOut, WokeHead]);
}

#[test]
fn fair_releases() {
    Model::new()
        .preemptions(1)
        .check(|| {
            let shared = rwlock::<1>();
            shared.lock.write();
            let others = [shared.spawn(Shared::write), shared.spawn(|shared| shared.read(READERS))];
            shared.data.add();
            shared.lock.unlock_write_fair();
            shared.lock.read(READERS);
            shared.data.get();
            shared.lock.unlock_read_fair();
            join_all(others);
        })
        .reaches(&[HandedOff, GrantedReaders]);
}

#[test]
fn the_last_one_out_frees_the_lock() {
    for readers in [1, 2] {
        Model::new()
            .preemptions(1)
            .check(move || {
                let lock = Mortal::new(RawRwLock::<Loom>::new());
                let users = Mortal::new(AtomicU32::new(3));
                let run = move |reads: bool| {
                    if reads {
                        lock.read(READERS);
                    } else {
                        lock.write();
                    }
                    // Counted while the lock is held; the thread that counts to zero is alone once it has got
                    // the lock again.
                    let is_last = users.fetch_sub(1, Relaxed) == 1;
                    if reads {
                        lock.unlock_read();
                    } else {
                        lock.unlock_write();
                    }
                    if is_last {
                        lock.write();
                        lock.unlock_write();
                        lock.destroy();
                    }
                };
                let others = [0, 1].map(|other| thread::spawn(move || run(other < readers)));
                run(false);
                join_all(others);
            })
            .reaches(&[GrantedReaders, WokeHead]);
    }
}

/// H3: a writer's request ends before its helper's patience does, so the helper comes in, and the reader that
/// waits for it leaves. The writer, which is promised the lock, is handed it then.
#[test]
fn a_request_is_withdrawn_for_a_reader_that_another_one_waits_for() {
    type Lock = RawRwLock<Loom<0, 0, NEVER, { u32::MAX }, 1>>;
    Model::new()
        .preemptions(1)
        .moving_clock()
        .check(|| {
            let shared = Shared::new(Lock::new());
            let (writer, helper) = lead_in(|| {
                shared.lock.read(READERS);
                let writer = shared.spawn(Shared::write);
                thread::yield_now(); // it queues
                shared.lock.read(READERS);
                shared.lock.unlock_read();
                thread::yield_now(); // it is told that it is passed, and requests the lock
                let helper = shared.spawn(|shared| shared.read(READERS));
                thread::yield_now(); // it queues
                (writer, helper)
            });
            advance(1);
            helper.join().unwrap();
            shared.lock.unlock_read();
            writer.join().unwrap();
        })
        .reaches(&[RequestedHandoff, WithdrewRequest, HandedOff]);
}
