//! Models of a read-write lock that prefers writers: readers wait behind a writer that waits, and the last
//! reader promises the lock to one that is awake, or has waited for long (`Want::WriteFirst`).

use std::sync::Arc;

use loom::thread::{JoinHandle, spawn, yield_now};
use spinpark_locks::bits::word::{HANDOFF, WAITERS, WAKING};
use spinpark_locks::{Preference, RawRwLock, TryRwLock as _};
use spinpark_platform::Event::{GrantedReaders, HandedOff, Parked, TimedOut, WokeHead};
use spinpark_platform::Ordering::{AcqRel, Release};
use spinpark_verify::model::Checked;
use spinpark_verify::platform::{Fault, Kind, Loom, Op, advance, lead_in, set_priority};
use spinpark_verify::{Model, Mortal, Shared, after, breaks, breaks_rule, join_all, rejected};

const READERS: Preference = Preference::Readers;
const WRITERS: Preference = Preference::Writers;

const PASSES: &str = "a reader passes the writer";

type Lock<const STARVATION_NS: u64> = RawRwLock<Loom<STARVATION_NS>>;

/// A reader that comes after the writer has queued: that one has been inside before.
fn read_behind<const S: u64>(shared: &Shared<Lock<S>>, preference: Preference) {
    shared.lock.read(preference);
    assert_eq!(shared.data.get(), 1, "{PASSES}");
    shared.lock.unlock_read();
}

/// This thread reads, and a writer has queued.
fn a_writer_behind_this_reader<const S: u64>(shared: &Arc<Shared<Lock<S>>>) -> JoinHandle<()> {
    lead_in(|| {
        shared.lock.read(WRITERS);
        let writer = shared.spawn(Shared::write_first);
        yield_now(); // it queues
        writer
    })
}

/// Two threads beside this one, which reads, or writes.
fn writers_and_readers(model: Model, reads: bool) -> Checked {
    model.preemptions(1).check(move || {
        let shared = Shared::new(Lock::<1>::new());
        let others = [shared.spawn(Shared::write_first), shared.spawn(|shared| shared.read(WRITERS))];
        if reads {
            shared.read(WRITERS);
        } else {
            shared.write_first();
        }
        join_all(others);
        assert!(shared.lock.try_write(), "it is free");
        assert_eq!(shared.data.get(), 2 - u32::from(reads));
    })
}

#[test]
fn a_writer_and_two_readers() {
    writers_and_readers(Model::new(), true).reaches(&[Parked, WokeHead]);
    writers_and_readers(Model::new().spinning(), true).reaches(&[Parked, WokeHead]);
}

#[test]
fn two_writers_and_a_reader() {
    writers_and_readers(Model::new(), false).reaches(&[Parked, WokeHead]);
    writers_and_readers(Model::new().spinning(), false).reaches(&[Parked, WokeHead]);
}

/// A reader queues behind a writer that waits for this thread, which leaves, and comes back at once.
fn readers_come_back(model: Model, preference: Preference) -> Checked {
    model.check(move || {
        let shared = Shared::new(Lock::<0>::new());
        let writer = a_writer_behind_this_reader(&shared);
        let reader = lead_in(|| {
            let reader = shared.spawn(move |shared| read_behind(shared, preference));
            yield_now(); // it queues
            reader
        });
        shared.lock.unlock_read();
        read_behind(&shared, WRITERS);
        join_all([writer, reader]);
    })
}

#[test]
fn readers_wait_behind_a_writer_that_has_waited() {
    readers_come_back(Model::new().preemptions(1), WRITERS).reaches(&[Parked, HandedOff, GrantedReaders]);
    readers_come_back(Model::new().preemptions(1).spinning(), WRITERS).reaches(&[HandedOff]);
}

/// A reader comes as the last one leaves: before the promise, or after it.
#[test]
fn a_reader_queues_as_the_last_one_leaves() {
    Model::new()
        .preemptions(1)
        .check(|| {
            let shared = Shared::new(Lock::<0>::new());
            let writer = a_writer_behind_this_reader(&shared);
            let reader = shared.spawn(|shared| shared.read(WRITERS));
            shared.lock.unlock_read();
            join_all([writer, reader]);
        })
        .reaches(&[Parked, HandedOff, GrantedReaders]);
}

/// One that has not waited for long is preferred to readers that would join others, and a free lock is for the
/// first thread that comes.
#[test]
fn a_reader_does_not_join_readers_past_a_writer() {
    Model::new()
        .preemptions(2)
        .check(|| {
            let shared = Shared::new(Lock::<1>::new());
            let writer = a_writer_behind_this_reader(&shared);
            let reader = lead_in(|| {
                let reader = shared.spawn(|shared| {
                    assert!(!shared.lock.try_read(WRITERS), "{PASSES}");
                    shared.read(WRITERS);
                });
                yield_now(); // it has tried, and queues
                reader
            });
            shared.lock.unlock_read();
            join_all([writer, reader]);
        })
        .reaches(&[Parked, WokeHead]);
}

/// A writer leaves at its deadline: the reader behind it comes in beside the one that stays.
#[test]
fn a_writer_that_gives_up_lets_in_the_reader_behind_it() {
    Model::new()
        .moving_clock()
        .preemptions(2)
        .check(|| {
            let shared = Shared::new(Lock::<0>::new());
            let (writer, reader) = lead_in(|| {
                shared.lock.read(WRITERS);
                let writer = shared.spawn(|shared| {
                    assert!(!shared.lock.write_until_as(WRITERS, Some(after(1))));
                });
                yield_now(); // it queues
                let reader = shared.spawn(|shared| shared.read(WRITERS));
                yield_now(); // behind it
                (writer, reader)
            });
            advance(1);
            join_all([writer, reader]);
            shared.lock.unlock_read();
        })
        .reaches(&[TimedOut, GrantedReaders]);
}

/// The writer that was promised the lock is the last one that knows it.
#[test]
fn a_writer_that_was_promised_the_lock_frees_it() {
    Model::new()
        .preemptions(2)
        .check(|| {
            let lock = Mortal::new(Lock::<0>::new());
            let writer = lead_in(|| {
                lock.read(WRITERS);
                let writer = spawn(move || {
                    lock.write_until_as(WRITERS, None);
                    lock.unlock_write();
                    lock.destroy();
                });
                yield_now(); // it queues
                writer
            });
            lock.unlock_read();
            writer.join().unwrap();
        })
        .reaches(&[HandedOff]);
}

/// A real-time thread promises a lock to no waiter of a lower priority: it is free for all.
#[test]
fn a_realtime_reader_promises_nothing_to_a_writer_of_a_lower_priority() {
    for (priority, is_promised) in [(0, true), (1, false)] {
        Model::new().preemptions(0).check(move || {
            set_priority(priority);
            let shared = Shared::new(Lock::<0>::new());
            let writer = a_writer_behind_this_reader(&shared);
            shared.lock.unlock_read();
            // The writer does not run before this thread waits.
            let acquired = shared.lock.try_read(WRITERS);
            assert_eq!(acquired, !is_promised, "whether a reader of priority {priority} finds it free");
            if acquired {
                shared.lock.unlock_read();
            }
            writer.join().unwrap();
        });
    }
}

// Mutants.

/// A reader of the other kind, which joins readers.
#[test]
fn a_reader_heeds_no_writer() {
    rejected!(
        "a_reader_heeds_no_writer",
        breaks_rule("of a lock that prefers writers: no reader joins readers past a writer that waits"),
        PASSES,
        || {
            readers_come_back(Model::new().preemptions(1), READERS);
        }
    );
}

/// H4: the writer is woken, but the word does not say that the lock is kept for it.
#[test]
fn the_last_reader_promises_nothing() {
    let promises = |op: &Op| match op.is(Kind::CompareExchangeWeak, AcqRel) {
        true if op.has(WAKING) => HANDOFF,
        _ => 0,
    };
    rejected!("the_last_reader_promises_nothing", breaks("core.H4"), PASSES, || {
        readers_come_back(Model::new().preemptions(1).fault(Fault::Without(promises)), WRITERS);
    });
}

/// core.W1: the writer queues without its mark in the word.
#[test]
fn a_writer_queues_without_its_mark() {
    let marks = |op: &Op| op.is(Kind::CompareExchangeWeak, Release) && op.has(WAITERS);
    rejected!("a_writer_queues_without_its_mark", breaks("core.W1"), "deadlock", || {
        readers_come_back(Model::new().preemptions(1).fault(Fault::NoWrite(marks)), WRITERS);
    });
}
