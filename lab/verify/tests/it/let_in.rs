//! Models of readers that are let in past a writer that has no room (`Action::LetIn`): what kept them out has
//! left, and a thread inside may wait for them. While a writer has requested the lock, none is.

use std::cell::Cell;
use std::sync::Arc;

use loom::thread::{JoinHandle, yield_now};
use spinpark_locks::bits::word::{COUNT, HANDOFF, TIMED, UNIT, WAITERS, WAKING};
use spinpark_locks::{Preference, RawRwLock};
use spinpark_platform::Event::{GrantedReaders, RequestedHandoff, TimedOut};
use spinpark_platform::Ordering::{AcqRel, Release};
use spinpark_verify::platform::{Fault, Kind, Loom, Op, advance, lead_in};
use spinpark_verify::{Model, Shared, breaks, join_all, rejected};

const READERS: Preference = Preference::Readers;

const PASSES: &str = "a reader passes a writer that has requested the lock";

/// A waiter that has lost once requests the lock.
type Lock = RawRwLock<Loom<0>>;
type Waits = fn(&Shared<Lock>);

/// This thread has the lock by `hold`, beside readers. A writer queues, is told that it is passed, and requests
/// the lock; then another writer queues, and a reader, by these functions.
fn a_reader_is_kept_out(
    shared: &Arc<Shared<Lock>>,
    hold: fn(&Lock),
    [first, second]: [Waits; 2],
    read: Waits,
) -> [JoinHandle<()>; 3] {
    lead_in(|| {
        let queue = |waits: Waits| {
            let waiter = shared.spawn(waits);
            yield_now(); // it queues
            waiter
        };
        hold(&shared.lock);
        let first = queue(first);
        shared.lock.read(READERS);
        shared.lock.unlock_read();
        yield_now(); // it requests the lock
        [first, queue(second), queue(read)]
    })
}

/// The writer that has requested the lock leaves at its deadline: the next one has no room, and the reader
/// comes in past it, beside the thread that waits for it.
fn a_request_ends(model: Model, [hold, release]: [fn(&Lock); 2], read: Waits) {
    model
        .moving_clock()
        .preemptions(1)
        .check(move || {
            let shared = Shared::new(Lock::new());
            let writers: [Waits; 2] = [|shared| shared.timed_write(1), Shared::write];
            let [first, second, reader] = a_reader_is_kept_out(&shared, hold, writers, read);
            advance(1);
            reader.join().unwrap();
            release(&shared.lock);
            join_all([first, second]);
            assert_eq!(shared.data.get(), 1);
        })
        .reaches(&[RequestedHandoff, TimedOut, GrantedReaders]);
}

const BY_READING: [fn(&Lock); 2] = [|lock| lock.read(READERS), Lock::unlock_read];
const UPGRADABLY: [fn(&Lock); 2] = [|lock| assert!(lock.upgradable(None)), Lock::unlock_upgradable];

fn read(shared: &Shared<Lock>) {
    shared.read(READERS);
}

fn read_upgradably(shared: &Shared<Lock>) {
    shared.lock.upgradable(None);
    shared.data.get();
    shared.lock.unlock_upgradable();
}

#[test]
fn readers_come_in_once_a_request_has_ended() {
    a_request_ends(Model::new(), BY_READING, read);
}

#[test]
fn readers_come_in_beside_an_upgradable_holder_once_a_request_has_ended() {
    a_request_ends(Model::new(), UPGRADABLY, read);
}

#[test]
fn an_upgradable_waiter_comes_in_once_a_request_has_ended() {
    a_request_ends(Model::new(), BY_READING, read_upgradably);
}

/// Another writer leaves at its deadline: the request stands, and the reader waits behind it.
fn a_request_stands(model: Model) {
    model
        .moving_clock()
        .preemptions(1)
        .check(|| {
            let shared = Shared::new(Lock::new());
            let writers: [Waits; 2] = [Shared::write, |shared| shared.timed_write(1)];
            let waiters = a_reader_is_kept_out(&shared, BY_READING[0], writers, |shared| {
                shared.lock.read(READERS);
                assert!(shared.data.get() > 0, "{PASSES}");
                shared.lock.unlock_read();
            });
            IS_WRONG.set(true);
            advance(1);
            yield_now(); // the second writer has left
            shared.lock.unlock_read();
            join_all(waiters);
            IS_WRONG.set(false);
        })
        .reaches(&[RequestedHandoff, TimedOut, GrantedReaders]);
}

#[test]
fn no_reader_comes_in_while_a_request_stands() {
    a_request_stands(Model::new());
}

// Mutants.

thread_local! {
    /// Whether the mutant that is run on this thread has come to what it does wrong.
    static IS_WRONG: Cell<bool> = const { Cell::new(false) };
}

/// A waiter that leaves takes another one's request with it.
#[test]
fn a_reader_is_let_in_past_a_request() {
    let leaves = |op: &Op| match op.is(Kind::CompareExchangeWeak, Release) {
        true if IS_WRONG.get() && op.has(WAITERS) => HANDOFF,
        _ => 0,
    };
    rejected!("a_reader_is_let_in_past_a_request", breaks("dependent_readers.H3"), PASSES, || {
        a_request_stands(Model::new().fault(Fault::Without(leaves)));
    });
}

/// The reader is let in, and not counted.
#[test]
fn a_reader_that_is_let_in_is_not_counted() {
    let lets_in = |op: &Op| {
        op.is(Kind::CompareExchangeWeak, AcqRel)
            && op.within(WAITERS | WAKING | TIMED | HANDOFF) == WAITERS
            && op.within(COUNT) == 2 * UNIT
    };
    rejected!(
        "a_reader_that_is_let_in_is_not_counted",
        breaks("core.T6"),
        "attempt to subtract with overflow",
        || {
            a_request_ends(Model::new().fault(Fault::NoWrite(lets_in)), BY_READING, read);
        }
    );
}
