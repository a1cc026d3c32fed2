//! Models of requests and real-time threads (invariants wake_pass.H2, dependent_readers.H3): a real-time thread hands no lock
//! over to a waiter of a lower priority, and a real-time waiter looks at its request, whichever waiters are
//! before it.

use std::sync::Arc;

use loom::sync::Notify;
use loom::thread::yield_now;
use spinpark_locks::bits::word::HANDOFF;
use spinpark_locks::{Preference, RawMutex, RawRwLock, TryMutex as _, TryRwLock as _};
use spinpark_platform::Event::{RequestedHandoff, WithdrewRequest, WokeHead};
use spinpark_verify::platform::{
    Fault, Loom, advance, come_late, lead_in, let_come, set_priority, stop_after, while_stopped,
};
use spinpark_verify::{Model, Shared, breaks, join_all, rejected};

const READERS: Preference = Preference::Readers;
const NO_SLOTS: u32 = u32::MAX;

/// Waiters request the lock at once, and look after 1 ns; readers are patient for 10 ns.
type Looking = Waiting<0>;
/// As those, once they have waited for `STARVATION_NS`.
type Waiting<const STARVATION_NS: u64> = RawRwLock<Loom<STARVATION_NS, 0, 10, NO_SLOTS, 1>>;

/// A thread that holds no read lock reads, without waiting.
fn a_new_reader_comes_in<const S: u64>(shared: &Arc<Shared<Waiting<S>>>) {
    let reader = shared.spawn(|shared| {
        assert!(shared.lock.try_read(READERS), "a new reader is kept out");
        shared.lock.unlock_read();
    });
    reader.join().unwrap();
}

/// The calling thread, and those that it starts, see the word as it is now.
fn see<const S: u64>(shared: &Shared<Waiting<S>>) {
    shared.lock.read_recursive(None);
    shared.lock.unlock_read();
}

/// A real-time thread releases a mutex that a waiter of a lower priority has requested, as another thread
/// that has the queue locked is stopped. The mutex is free, not kept for the waiter.
fn past_a_queue_holder(model: Model) {
    for step in 0..16 {
        model.preemptions(0).check(move || {
            let shared = Shared::new(RawMutex::<Loom<0>>::new());
            let starved = lead_in(|| {
                shared.lock.lock();
                let starved = shared.spawn(Shared::section);
                yield_now(); // it queues
                shared.lock.unlock();
                shared.lock.lock();
                yield_now(); // it loses, and requests the lock
                set_priority(1);
                starved
            });
            let stopped = while_stopped(|| {
                let stopped = shared.spawn(move |shared| {
                    stop_after(step);
                    shared.section();
                });
                yield_now(); // it comes to the place where it stops, or sleeps
                shared.lock.unlock();
                assert!(shared.lock.try_lock(), "handed over");
                shared.data.add();
                shared.lock.unlock();
                stopped
            });
            join_all([starved, stopped]);
            assert_eq!(shared.finish(), 3);
        });
    }
}

#[test]
fn a_realtime_thread_comes_back_past_a_queue_holder() {
    past_a_queue_holder(Model::new());
}

/// The waiter requests the lock as the real-time thread is about to release it.
#[test]
fn a_realtime_thread_hands_nothing_over() {
    let checked = Model::new().moving_clock().preemptions(2).check(|| {
        let shared = Shared::new(RawMutex::<Loom<1>>::new());
        let waiter = lead_in(|| {
            shared.lock.lock();
            let waiter = shared.spawn(Shared::section);
            yield_now(); // it queues
            shared.lock.unlock();
            shared.lock.lock();
            yield_now(); // it loses, and keeps its own time
            set_priority(1);
            advance(1);
            waiter
        });
        shared.data.add();
        shared.lock.unlock();
        waiter.join().unwrap();
        assert_eq!(shared.finish(), 2);
    });
    assert!(!checked.to_string().contains("HandedOff"), "handed over: {checked}");
    checked.reaches(&[RequestedHandoff, WithdrewRequest]);
}

/// A real-time writer requests the lock of a reader, and makes a pause, which an upgrade that goes before it
/// ends.
#[test]
fn a_realtime_writer_looks_behind_an_upgrade() {
    Model::new()
        .moving_clock()
        .preemptions(0)
        .check(|| {
            let shared = Shared::new(Looking::new());
            let threads = lead_in(|| {
                let begins = Arc::new(Notify::new());
                let theirs = Arc::clone(&begins);
                let upgrade = shared.spawn(move |shared| {
                    shared.lock.upgradable(None);
                    theirs.wait();
                    shared.lock.upgrade(None);
                    shared.lock.unlock_write();
                });
                yield_now(); // it is in
                shared.lock.read(READERS);
                let writer = shared.spawn(|shared| {
                    set_priority(1);
                    shared.write();
                });
                yield_now(); // it requests the lock
                advance(1);
                yield_now(); // it makes a pause
                begins.notify();
                yield_now(); // the upgrade is the head
                advance(3);
                yield_now(); // the writer requests the lock again
                see(&shared);
                advance(2);
                yield_now(); // it looks at that
                see(&shared);
                [upgrade, writer]
            });
            a_new_reader_comes_in(&shared);
            shared.lock.unlock_read();
            join_all(threads);
        })
        .reaches(&[RequestedHandoff, WithdrewRequest]);
}

/// A real-time writer queues beside a waiter that was woken and does not run. A reader that leaves no other
/// inside wakes it; it keeps out no reader before.
#[test]
fn a_realtime_writer_beside_a_woken_waiter_keeps_out_no_reader() {
    Model::new()
        .moving_clock()
        .preemptions(0)
        .check(|| {
            let shared = Shared::new(Looking::new());
            let threads = lead_in(|| {
                shared.lock.write();
                let woken = shared.spawn(|shared| {
                    come_late();
                    shared.write();
                });
                yield_now(); // it queues
                shared.lock.unlock_write();
                shared.lock.read(READERS);
                let writer = shared.spawn(|shared| {
                    set_priority(1);
                    shared.write();
                    let_come();
                });
                yield_now(); // it queues
                [woken, writer]
            });
            a_new_reader_comes_in(&shared);
            shared.lock.unlock_read();
            join_all(threads);
        })
        .reaches(&[WokeHead]);
}

/// A writer that keeps its own time requests the lock of a reader, beside an upgrade that was woken and does not
/// run.
fn beside_a_woken_waiter(model: Model) {
    model
        .moving_clock()
        .preemptions(0)
        .check(|| {
            let shared = Shared::new(Waiting::<1>::new());
            let threads = lead_in(|| {
                let begins = Arc::new(Notify::new());
                let theirs = Arc::clone(&begins);
                let upgrade = shared.spawn(move |shared| {
                    shared.lock.upgradable(None);
                    theirs.wait();
                    come_late();
                    shared.lock.upgrade(None);
                    shared.lock.unlock_write();
                });
                yield_now(); // it is in
                shared.lock.read(READERS);
                shared.lock.read_recursive(None);
                let writer = shared.spawn(|shared| shared.write());
                yield_now(); // it queues
                shared.lock.unlock_read();
                yield_now(); // it loses, and keeps its own time
                begins.notify();
                yield_now(); // the upgrade is the head
                shared.lock.unlock_read(); // and is woken
                shared.lock.read(READERS);
                advance(1);
                yield_now(); // the writer requests the lock
                advance(1);
                yield_now(); // it looks at that
                see(&shared);
                [upgrade, writer]
            });
            a_new_reader_comes_in(&shared);
            let_come();
            shared.lock.unlock_read();
            join_all(threads);
        })
        .reaches(&[WithdrewRequest]);
}

#[test]
fn a_request_beside_a_woken_waiter_makes_way_for_one_that_tries() {
    beside_a_woken_waiter(Model::new());
}

/// A writer becomes a reader and waits for a recursive reader, which has queued behind a writer that keeps no
/// time.
#[test]
fn a_recursive_reader_comes_in_past_a_writer() {
    Model::new().moving_clock().preemptions(1).check(|| {
        let shared = Shared::new(Looking::new());
        let (writer, reader) = lead_in(|| {
            shared.lock.write();
            let writer = shared.spawn(Shared::write);
            yield_now(); // it queues
            let reader = shared.spawn(|shared| {
                shared.lock.read_recursive(None);
                shared.lock.unlock_read();
            });
            yield_now(); // it queues
            shared.lock.downgrade();
            (writer, reader)
        });
        advance(10);
        reader.join().unwrap();
        shared.lock.unlock_read();
        writer.join().unwrap();
    });
}

/// As above, with probes after 4 ns.
type Probing = RawRwLock<Loom<0, 0, 10, NO_SLOTS, 1, 4>>;

/// probe.L3: a downgrade ends a request and wakes a real-time writer, which does not run. A reader behind another one is let
/// in: the thread inside waits for it.
#[test]
fn a_reader_behind_two_realtime_writers_is_let_in() {
    Model::new().moving_clock().preemptions(0).check(|| {
        let shared = Shared::new(Probing::new());
        let (others, reader) = lead_in(|| {
            shared.lock.write();
            let w0 = shared.spawn(Shared::write);
            yield_now(); // it queues
            shared.lock.unlock_write();
            shared.lock.write();
            yield_now(); // it loses, and requests the lock
            let r1 = shared.spawn(|shared| {
                set_priority(3);
                come_late();
                shared.write();
            });
            yield_now(); // it queues
            let r2 = shared.spawn(|shared| {
                set_priority(2);
                shared.write();
            });
            yield_now(); // it queues
            let reader = shared.spawn(|shared| {
                set_priority(1);
                shared.lock.read(READERS);
                shared.lock.unlock_read();
            });
            yield_now(); // it queues
            for _ in 0..4 {
                advance(4);
                yield_now(); // timers that are not needed end
            }
            shared.lock.downgrade();
            for _ in 0..10 {
                advance(20);
                yield_now(); // probes
            }
            ([w0, r1, r2], reader)
        });
        lead_in(|| {
            reader.join().unwrap(); // a reader inside waits for it
            let_come();
            shared.lock.unlock_read();
            join_all(others);
        });
    });
}

/// U1: a promise to a real-time writer, which does not run, was passed by a reader. The next head, which requests the
/// lock of that reader, ends its request; the reader's release wakes it.
#[test]
fn a_realtime_writer_is_woken_beside_a_passed_promise() {
    Model::new().moving_clock().preemptions(0).check(|| {
        let shared = Shared::new(Looking::new());
        let (first, late) = lead_in(|| {
            shared.lock.read(READERS);
            shared.lock.read_recursive(None);
            let first = shared.spawn(|shared| {
                set_priority(2);
                shared.write();
                let_come();
            });
            yield_now(); // it queues
            shared.lock.unlock_read();
            yield_now(); // it loses, and requests the lock
            let late = shared.spawn(|shared| {
                set_priority(3);
                come_late();
                shared.write();
            });
            yield_now(); // it queues before the first
            shared.lock.unlock_read(); // promised to `late`
            yield_now();
            assert!(shared.lock.try_read(READERS), "past the promise");
            advance(1);
            yield_now(); // the first looks at its request
            shared.lock.unlock_read(); // U1: wakes it
            (first, late)
        });
        first.join().unwrap();
        late.join().unwrap();
    });
}

// Mutants.

/// H2: a release that leaves the look to the thread that has the queue locked leaves the request, too.
#[test]
fn a_request_is_left_to_the_queue_holder() {
    rejected!(
        "a_request_is_left_to_the_queue_holder",
        breaks("wake_pass.H2"),
        "a flag was left behind",
        || {
            past_a_queue_holder(Model::new().fault(Fault::Kept(HANDOFF)));
        }
    );
}

/// H3: a request beside a woken waiter goes on.
#[test]
fn a_request_beside_a_woken_waiter_goes_on() {
    rejected!(
        "a_request_beside_a_woken_waiter_goes_on",
        breaks("dependent_readers.H3"),
        "a new reader is kept out",
        || {
            beside_a_woken_waiter(Model::new().fault(Fault::Kept(HANDOFF)));
        }
    );
}
