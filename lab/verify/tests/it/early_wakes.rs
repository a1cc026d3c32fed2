//! Models of waiters that are woken early (E1 in `locks::core`): woken ahead of their turn where CPUs are to
//! spare, by the woken waiter before them, once waits have become long.

use loom::thread::yield_now;
use spinpark_locks::bits::node::{AWAKE, WOKEN_EARLY};
use spinpark_locks::{Preference, RawMutex, RawRwLock};
use spinpark_platform::Event::{EarlyWake, HandedOff, Parked, RequestedHandoff, TimedOut, WokeHead};
use spinpark_verify::platform::{Fault, Loom, advance, lead_in};
use spinpark_verify::{Model, Shared, breaks, join_all, rejected};

/// Starves at once.
type Mutex = RawMutex<Loom<0>>;
type RwLock = RawRwLock<Loom<0>>;

/// Longer than waits are meant to be.
const LONG_NS: u64 = 8;

/// A model of a machine with CPUs to spare.
fn spare() -> Model {
    Model::new().cpus(4).moving_clock()
}

/// Two waiters sleep for long; a release wakes the first, and that one wakes early the second, whose turn may
/// come at any time of that.
fn two_waiters(model: Model) {
    model
        .check(|| {
            let shared = Shared::new(Mutex::new());
            let waiters = lead_in(|| {
                shared.lock.lock();
                let waiters = [(); 2].map(|()| {
                    let waiter = shared.spawn(Shared::section);
                    yield_now(); // it queues
                    waiter
                });
                advance(LONG_NS);
                waiters
            });
            shared.data.add();
            shared.lock.unlock();
            shared.section();
            join_all(waiters);
            assert_eq!(shared.finish(), 4);
        })
        .reaches(&[Parked, WokeHead, EarlyWake, RequestedHandoff, HandedOff]);
}

#[test]
fn a_waiter_rouses_the_next() {
    two_waiters(spare().preemptions(2));
}

#[test]
fn a_waiter_wakes_the_next_early_before_a_release_that_is_not_a_step() {
    two_waiters(spare().preemptions(1).without_steps());
    two_waiters(spare().preemptions(1).aborted());
}

/// E1: a notification takes a waiter that was woken early to be awake, and does not wake it.
#[test]
fn a_waiter_woken_early_is_taken_to_be_awake() {
    rejected!("a_waiter_woken_early_is_taken_to_be_awake", breaks("early.E1"), "deadlock", || {
        two_waiters(spare().preemptions(2).fault(Fault::SwapReports(WOKEN_EARLY, AWAKE)));
    });
}

/// The one that is woken early has a deadline, which passes at any time.
#[test]
fn one_that_is_roused_gives_up() {
    spare()
        .preemptions(2)
        .check(|| {
            let shared = Shared::new(Mutex::new());
            let (first, second) = lead_in(|| {
                shared.lock.lock();
                let first = shared.spawn(Shared::section);
                yield_now(); // it queues
                let second = shared.spawn(|shared| shared.timed_section(LONG_NS + 1));
                yield_now(); // it queues
                advance(LONG_NS);
                (first, second)
            });
            shared.data.add();
            shared.lock.unlock();
            advance(1);
            join_all([first, second]);
            assert!(shared.finish() >= 2);
        })
        .reaches(&[EarlyWake, TimedOut]);
}

/// Writers of a read-write lock, the second one woken early, as a reader comes.
#[test]
fn a_writer_is_roused_as_a_reader_comes() {
    spare()
        .preemptions(1)
        .check(|| {
            let shared = Shared::new(RwLock::new());
            let writers = lead_in(|| {
                shared.lock.write();
                let writers = [(); 2].map(|()| {
                    let writer = shared.spawn(Shared::write);
                    yield_now(); // it queues
                    writer
                });
                advance(LONG_NS);
                writers
            });
            shared.data.add();
            shared.lock.unlock_write();
            shared.read(Preference::Readers);
            join_all(writers);
        })
        .reaches(&[EarlyWake]);
}
