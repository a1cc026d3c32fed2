//! Models of requests (invariants wake_pass.H2, dependent_readers.H3): a waiter stands behind each one that looks at it by
//! itself, so that no reader is kept out for longer than that.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use loom::sync::atomic::AtomicU32;
use loom::thread::{JoinHandle, yield_now};
use spinpark_locks::bits::word::{HANDOFF, TIMED, UNIT, WAKING};
use spinpark_locks::{Adaptive, Preference, RawRwLock, TryRwLock as _};
use spinpark_platform::Event::{HandedOff, RequestedHandoff, TimedOut, WithdrewRequest};
use spinpark_platform::Ordering::AcqRel;
use spinpark_platform::Platform;
use spinpark_verify::platform::{Fault, Kind, Loom, Op, advance, lead_in};
use spinpark_verify::{Model, Shared, after, breaks, join_all, rejected};

const READERS: Preference = Preference::Readers;
const NO_SLOTS: u32 = u32::MAX;

/// Waiters that have lost request the lock once they have waited for 4 ns, and do not look at that.
type Lock = RawRwLock<Loom<4>>;
/// They request it at once, and look after 1 ns; readers are patient for 10 ns.
type Looking = RawRwLock<Loom<0, 0, 10, NO_SLOTS, 1>>;

/// The scenes of a model, in their order: each thread waits for its own.
#[derive(Clone)]
struct Scene(Arc<AtomicU32>);

impl Scene {
    fn new() -> Self {
        Self(Arc::new(AtomicU32::new(0)))
    }

    fn begins(&self, scene: u32) {
        self.0.store(scene, Release);
    }

    fn awaits(&self, scene: u32) {
        while self.0.load(Acquire) < scene {
            yield_now();
        }
    }
}

/// A reader comes and leaves beside another: the writer at the head is told that it is passed.
fn pass(lock: &Lock) {
    lock.read_recursive(None);
    lock.unlock_read();
    yield_now(); // the writer requests the lock
}

/// The calling thread, and those that it starts, see the word as it is now.
fn see(lock: &Looking) {
    lock.read_recursive(None);
    lock.unlock_read();
}

/// The calling thread reads; a writer queues, and requests the lock of it.
fn a_request(shared: &Arc<Shared<Looking>>) -> JoinHandle<()> {
    shared.lock.read(READERS);
    let writer = shared.spawn(Shared::write);
    yield_now(); // it queues
    see(&shared.lock);
    yield_now(); // it requests the lock
    writer
}

/// A thread that holds no read lock reads, without waiting.
fn a_new_reader_comes_in<P: Platform + Adaptive + 'static>(shared: &Arc<Shared<RawRwLock<P>>>) {
    let reader = shared.spawn(|shared| {
        assert!(shared.lock.try_read(READERS), "a new reader is kept out");
        shared.lock.unlock_read();
    });
    reader.join().unwrap();
}

/// An upgrade requests the lock, and a writer waits behind it that has not. The upgrade ends, as `upgrades`
/// has it, in one order, or in each if the model `explores_end`; then a new reader comes in beside.
fn after_an_upgrade(model: Model, explores_end: bool, upgrades: fn(&Shared<Lock>), ends: fn(&Lock)) {
    model
        .moving_clock()
        .preemptions(0)
        .check(move || {
            let shared = Shared::new(Lock::new());
            let scene = Scene::new();
            let threads = lead_in(|| {
                let theirs = scene.clone();
                let reader = shared.spawn(move |shared| {
                    shared.lock.read(READERS);
                    theirs.awaits(1);
                    yield_now(); // the upgrade waits for this thread
                    advance(4);
                    pass(&shared.lock);
                    theirs.begins(2);
                    yield_now(); // the writer queues
                    ends(&shared.lock);
                    theirs.awaits(3);
                    assert!(shared.lock.try_read(READERS), "a new reader is kept out");
                    shared.lock.unlock_read();
                    theirs.begins(4);
                });
                let theirs = scene.clone();
                let writer = shared.spawn(move |shared| {
                    theirs.awaits(2);
                    shared.write();
                });
                yield_now();
                shared.lock.upgradable(None);
                scene.begins(1);
                if !explores_end {
                    upgrades(&shared);
                }
                [reader, writer]
            });
            if explores_end {
                IS_LEFT_OUT.store(false, Relaxed);
                upgrades(&shared);
                // Perhaps before the writer goes on.
                assert!(shared.lock.try_read(READERS), "a new reader is kept out");
                shared.lock.unlock_read();
            }
            scene.begins(3);
            scene.awaits(4);
            shared.lock.unlock_read();
            join_all(threads);
            assert_eq!(shared.data.get(), 1);
        })
        .reaches(&[RequestedHandoff]);
}

fn an_upgrade_gives_up(model: Model) {
    after_an_upgrade(
        model,
        false,
        |shared| {
            assert!(!shared.lock.upgrade(Some(after(5))));
            shared.lock.downgrade_upgradable();
        },
        |lock| {
            advance(1);
            yield_now(); // it leaves
            lock.unlock_read();
        },
    );
}

#[test]
fn an_upgrade_that_gives_up_takes_its_request_along() {
    an_upgrade_gives_up(Model::new());
}

fn an_upgrade_is_granted(model: Model, explores_end: bool) {
    after_an_upgrade(
        model,
        explores_end,
        |shared| {
            shared.lock.upgrade(None);
            shared.lock.downgrade();
        },
        RawRwLock::unlock_read,
    );
}

#[test]
fn an_upgrade_that_is_granted_takes_its_request_along() {
    an_upgrade_is_granted(Model::new(), false);
}

/// A writer behind an upgrade requests the lock, and gives up.
#[test]
fn a_writer_behind_an_upgrade_takes_its_request_along() {
    Model::new()
        .moving_clock()
        .preemptions(1)
        .check(|| {
            let shared = Shared::new(Lock::new());
            let (writer, upgrade) = lead_in(|| {
                shared.lock.read(READERS);
                let scene = Scene::new();
                let theirs = scene.clone();
                let upgrade = shared.spawn(move |shared| {
                    shared.lock.upgradable(None);
                    theirs.awaits(1);
                    shared.lock.upgrade(None);
                    shared.lock.unlock_write();
                });
                yield_now();
                let writer = shared.spawn(|shared| shared.timed_write(5));
                yield_now(); // it queues
                advance(4);
                pass(&shared.lock); // it requests the lock
                scene.begins(1);
                yield_now(); // the upgrade is the head
                (writer, upgrade)
            });
            advance(1);
            writer.join().unwrap();
            a_new_reader_comes_in(&shared);
            shared.lock.unlock_read();
            upgrade.join().unwrap();
        })
        .reaches(&[RequestedHandoff, TimedOut]);
}

/// A reader that leaves fairly promises the lock to the writer that waits, as another reader comes in once
/// more beside it.
#[test]
fn a_fair_release_that_leaves_a_reader_inside_promises_nothing() {
    Model::new()
        .preemptions(1)
        .check(|| {
            let shared = Shared::new(Lock::new());
            let (writer, leaves) = lead_in(|| {
                shared.lock.read(READERS);
                let writer = shared.spawn(Shared::write);
                yield_now(); // it queues
                let leaves = shared.spawn(|shared| {
                    shared.lock.unlock_read_fair(); // for this thread
                });
                (writer, leaves)
            });
            let comes_in = shared.lock.try_read_recursive();
            leaves.join().unwrap();
            if comes_in && !shared.lock.is_write_locked() {
                a_new_reader_comes_in(&shared);
            }
            if comes_in {
                shared.lock.unlock_read();
            }
            writer.join().unwrap();
        })
        .reaches(&[HandedOff]);
}

/// A request of which no queued reader knows ends too: a thread that only tries comes in.
fn one_that_tries(model: Model) {
    model
        .moving_clock()
        .preemptions(1)
        .check(|| {
            let shared = Shared::new(Looking::new());
            let writer = lead_in(|| {
                let writer = a_request(&shared);
                advance(1);
                yield_now(); // it looks at that
                see(&shared.lock);
                writer
            });
            a_new_reader_comes_in(&shared);
            shared.lock.unlock_read();
            writer.join().unwrap();
        })
        .reaches(&[RequestedHandoff, WithdrewRequest]);
}

#[test]
fn a_request_makes_way_for_one_that_tries() {
    one_that_tries(Model::new());
}

/// A writer requests the lock of another writer, which becomes a reader and stays.
#[test]
fn a_request_of_a_writer_ends_when_that_has_become_a_reader() {
    for to_upgradable in [false, true] {
        Model::new()
            .moving_clock()
            .preemptions(1)
            .check(move || {
                let shared = Shared::new(Looking::new());
                let writer = lead_in(|| {
                    shared.lock.write();
                    let writer = shared.spawn(Shared::write);
                    yield_now(); // it queues
                    shared.lock.unlock_write(); // it is woken
                    shared.lock.write(); // it has lost
                    yield_now(); // it requests the lock
                    if to_upgradable {
                        shared.lock.downgrade_to_upgradable();
                    } else {
                        shared.lock.downgrade();
                    }
                    yield_now(); // it requests the lock of this thread, as a reader
                    advance(10);
                    yield_now(); // it looks at that
                    see(&shared.lock);
                    writer
                });
                a_new_reader_comes_in(&shared);
                if to_upgradable {
                    shared.lock.unlock_upgradable();
                } else {
                    shared.lock.unlock_read();
                }
                writer.join().unwrap();
            })
            .reaches(&[RequestedHandoff, WithdrewRequest, HandedOff]);
    }
}

/// A reader waits for a thread that wants the lock upgradably, which a request has kept out.
#[test]
fn a_request_makes_way_for_an_upgradable_one() {
    Model::new()
        .moving_clock()
        .preemptions(1)
        .check(|| {
            let shared = Shared::new(Looking::new());
            let (writer, upgradable) = lead_in(|| {
                let writer = a_request(&shared);
                let upgradable = shared.spawn(|shared| {
                    shared.lock.upgradable(None);
                    shared.lock.unlock_upgradable();
                });
                yield_now(); // it queues
                advance(1);
                (writer, upgradable)
            });
            upgradable.join().unwrap();
            shared.lock.unlock_read();
            writer.join().unwrap();
        })
        .reaches(&[RequestedHandoff, WithdrewRequest]);
}

// Mutants.

/// Whether the look that ends the request has been left out, in this execution.
static IS_LEFT_OUT: AtomicBool = AtomicBool::new(false);

/// H2: the look that ends a request at which no waiter looks is left out, once.
#[test]
fn a_request_without_a_waiter() {
    fn ends(op: &Op) -> bool {
        // One reader, and the head is woken. While the upgrade waits, its own hold is there too.
        let ends = op.is(Kind::CompareExchangeWeak, AcqRel) && op.writes(UNIT | WAKING);
        ends && !IS_LEFT_OUT.swap(true, Relaxed)
    }
    rejected!("a_request_without_a_waiter", breaks("wake_pass.H2"), "a new reader is kept out", || {
        an_upgrade_is_granted(Model::new().fault(Fault::NoWrite(ends)), true);
    });
}

/// H3: a request is never withdrawn, as its pause is not written.
#[test]
fn a_request_without_a_pause() {
    let pauses = |op: &Op| op.is_compare_exchange() && op.has(HANDOFF | TIMED);
    rejected!(
        "a_request_without_a_pause",
        breaks("dependent_readers.H3"),
        "a new reader is kept out",
        || {
            one_that_tries(Model::new().fault(Fault::NoWrite(pauses)));
        }
    );
}
