//! Models of the read-write lock whose gate is open: readers in slots (invariants G1 to G4).

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use loom::sync::atomic::AtomicU32;
use loom::thread::{self, JoinHandle};
use spinpark_locks::{Preference, RawRwLock};
use spinpark_platform::Event::{ClosedSlots, OpenedSlots, Parked, TimedOut};
use spinpark_platform::{Clock, Deadline};
use spinpark_verify::platform::{EPOCH_NS, Fault, Loom, NEVER, advance, lead_in};
use spinpark_verify::{Guarded, Model, Mortal, rejected};

const READERS: Preference = Preference::Readers;

struct Shared {
    lock: RawRwLock<Loom<1, 0, NEVER, 0>>,
    data: Guarded,
}

impl Shared {
    /// A lock whose gate is open.
    fn new() -> Arc<Self> {
        let shared = Arc::new(Self { lock: RawRwLock::new(), data: Guarded::new() });
        lead_in(|| shared.read());
        shared
    }

    fn spawn(self: &Arc<Self>, run: impl FnOnce(&Self) + 'static) -> JoinHandle<()> {
        let shared = Arc::clone(self);
        thread::spawn(move || run(&shared))
    }

    fn write(&self) {
        self.lock.write();
        self.data.add();
        self.lock.unlock_write();
    }

    fn read(&self) {
        self.lock.read(READERS);
        self.data.get();
        self.lock.unlock_read();
    }
}

fn join_all<const N: usize>(threads: [JoinHandle<()>; N]) {
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn a_reader_and_a_writer() {
    Model::new()
        .check(|| {
            let shared = Shared::new();
            let reader = shared.spawn(Shared::read);
            shared.write();
            join_all([reader]);
        })
        .reaches(&[OpenedSlots, ClosedSlots, Parked]);
}

#[test]
fn a_reader_that_reads_again_and_a_writer() {
    Model::new()
        .preemptions(1)
        .check(|| {
            let shared = Shared::new();
            let reader = shared.spawn(|shared| {
                shared.read();
                shared.read();
            });
            shared.write();
            join_all([reader]);
        })
        .reaches(&[OpenedSlots, ClosedSlots, Parked]);
}

#[test]
fn two_readers_and_a_writer() {
    Model::new()
        .preemptions(0)
        .check(|| {
            let shared = Shared::new();
            let readers = [0, 1].map(|_| shared.spawn(Shared::read));
            shared.write();
            join_all(readers);
        })
        .reaches(&[ClosedSlots, Parked]);
}

#[test]
fn two_writers_and_a_reader() {
    Model::new()
        .preemptions(1)
        .check(|| {
            let shared = Shared::new();
            let others = [shared.spawn(Shared::read), shared.spawn(Shared::write)];
            shared.write();
            join_all(others);
            assert_eq!(shared.data.get(), 2);
        })
        .reaches(&[ClosedSlots, Parked]);
}

#[test]
fn a_reader_recurses_while_a_writer_closes_the_gate() {
    Model::new()
        .check(|| {
            let shared = Shared::new();
            let reader = shared.spawn(|shared| {
                shared.lock.read(READERS);
                shared.read();
                shared.data.get();
                shared.lock.unlock_read();
            });
            shared.write();
            join_all([reader]);
        })
        .reaches(&[ClosedSlots, Parked]);
}

#[test]
fn the_gate_opens_again_behind_a_reader_that_was_moved() {
    Model::new()
        .preemptions(1)
        .check(|| {
            let shared = Shared::new();
            let others = [
                shared.spawn(Shared::read),
                // A try that fails closes the gate; the read behind it opens it again.
                shared.spawn(|shared| {
                    if shared.lock.try_write() {
                        shared.data.add();
                        shared.lock.unlock_write();
                    }
                    shared.read();
                }),
            ];
            shared.write();
            join_all(others);
        })
        .reaches(&[OpenedSlots, ClosedSlots]);
}

#[test]
fn a_writer_with_a_deadline() {
    Model::new()
        .moving_clock()
        .check(|| {
            let shared = Shared::new();
            let reader = shared.spawn(Shared::read);
            let writer = shared.spawn(|shared| {
                let deadline = Deadline { clock: Clock::Monotonic, at: EPOCH_NS + 1 };
                if shared.lock.write_until(Some(deadline)) {
                    shared.data.add();
                    shared.lock.unlock_write();
                }
            });
            advance(2);
            join_all([reader, writer]);
            assert!(shared.lock.try_write(), "nobody is left");
        })
        .reaches(&[ClosedSlots, TimedOut]);
}

#[test]
fn an_upgradable_beside_a_reader_in_a_slot() {
    Model::new()
        .check(|| {
            let shared = Shared::new();
            let reader = shared.spawn(Shared::read);
            shared.lock.upgradable(None);
            shared.data.get();
            shared.lock.upgrade(None);
            shared.data.add();
            shared.lock.unlock_write();
            join_all([reader]);
        })
        .reaches(&[ClosedSlots, Parked]);
}

#[test]
fn the_last_one_out_frees_the_lock() {
    Model::new()
        .preemptions(1)
        .check(|| {
            let lock = Mortal::new(RawRwLock::<Loom<1, 0, NEVER, 0>>::new());
            let users = Mortal::new(AtomicU32::new(3));
            lead_in(|| {
                lock.read(READERS);
                lock.unlock_read();
            });
            let run = move |reads: bool| {
                if reads {
                    lock.read(READERS);
                } else {
                    lock.write();
                }
                // Counted while the lock is held; who counts to zero is alone once it has got the lock again.
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
            let others = [true, true].map(|reads| thread::spawn(move || run(reads)));
            run(false);
            join_all(others);
        })
        .reaches(&[ClosedSlots]);
}

/// A fence that does nothing lets a reader in beside the writer.
#[test]
fn mutant_no_fence() {
    rejected("mutant_no_fence", "Causality violation", || {
        Model::new().fault(Fault::NoFence).check(|| {
            let shared = Shared::new();
            let reader = shared.spawn(Shared::read);
            shared.write();
            join_all([reader]);
        });
    });
}
