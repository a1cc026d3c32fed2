//! Models of the read-write lock whose bias is enabled: readers in slots (invariants G1 to G4, G8), and known-bad
//! machines.
//!
//! Most are led to the place where a reader is in a slot, and explored from there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use loom::sync::atomic::AtomicU32;
use loom::thread::{self, JoinHandle, yield_now};
use spinpark_locks::bits::bias::PRIVATE;
use spinpark_locks::bits::word::SLOTS;
use spinpark_locks::{Preference, RawRwLock, TryRwLock as _};
use spinpark_platform::Event::{EnabledBias, Parked, RevokedBias, TimedOut};
use spinpark_platform::Ordering::AcqRel;
use spinpark_platform::{AtomicU32 as _, Memory, ReaderSlots};
use spinpark_verify::model::Checked;
use spinpark_verify::platform::{Fault, Kind, Loom, NEVER, Op, advance, lead_in};
use spinpark_verify::{Model, Mortal, Shared, breaks, join_all, rejected};

const READERS: Preference = Preference::Readers;

const RACE: &str = "Causality violation";

/// Every read by count tries to enable the bias.
type Lock = RawRwLock<Machine>;
type Machine = Loom<1, 0, NEVER, 0>;

/// A lock whose bias is enabled.
fn open() -> Arc<Shared<Lock>> {
    let shared = Shared::new(Lock::new());
    lead_in(|| read(&shared));
    shared
}

fn read(shared: &Shared<Lock>) {
    shared.read(READERS);
}

fn write(shared: &Shared<Lock>) {
    shared.write();
}

/// Where a thread is when the lead-in ends.
struct Place(Arc<AtomicBool>);

impl Place {
    fn reach(self) {
        self.0.store(true, Relaxed); // not loom's: only the lead-in looks
        yield_now(); // here the lead-in ends
    }
}

/// Lets the thread that `spawn` makes come to the place.
fn led_to(spawn: impl FnOnce(Place) -> JoinHandle<()>) -> JoinHandle<()> {
    lead_in(|| {
        let reached = Arc::new(AtomicBool::new(false));
        let thread = spawn(Place(Arc::clone(&reached)));
        while !reached.load(Relaxed) {
            yield_now();
        }
        thread
    })
}

/// Another thread, which is in a slot when the lead-in ends, and then does `run`.
fn in_a_slot(shared: &Arc<Shared<Lock>>, run: impl FnOnce(&Shared<Lock>) + 'static) -> JoinHandle<()> {
    led_to(|place| {
        shared.spawn(|shared| {
            shared.lock.read(READERS);
            place.reach();
            run(shared);
        })
    })
}

/// As `in_a_slot`: reads, and gives up the lock.
fn reader_in_a_slot(shared: &Arc<Shared<Lock>>) -> JoinHandle<()> {
    in_a_slot(shared, |shared| {
        shared.data.get();
        shared.lock.unlock_read();
    })
}

fn a_read_against_a_write(model: Model) {
    let body = || {
        let shared = open();
        let reader = shared.spawn(read);
        write(&shared);
        join_all([reader]);
        assert!(shared.lock.try_write(), "all readers have left");
    };
    model.check(body).reaches(&[EnabledBias, RevokedBias, Parked]);
}

#[test]
fn a_reader_and_a_writer() {
    a_read_against_a_write(Model::new());
}

#[test]
fn a_reader_that_reads_again_and_a_writer() {
    let body = || {
        let shared = open();
        let reader = shared.spawn(|shared| {
            read(shared);
            read(shared);
        });
        write(&shared);
        join_all([reader]);
    };
    Model::new().preemptions(1).check(body).reaches(&[EnabledBias, RevokedBias, Parked]);
}

/// One leaves its slot, the other may still enter one.
#[test]
fn two_readers_and_a_writer() {
    let body = || {
        let shared = open();
        let readers = [reader_in_a_slot(&shared), shared.spawn(read)];
        write(&shared);
        join_all(readers);
    };
    Model::new().preemptions(1).check(body).reaches(&[RevokedBias, Parked]);
}

/// Both revoke the bias, or find it revoked.
fn two_writes_against_a_read(model: Model) -> Checked {
    model.check(|| {
        let shared = open();
        let others = [
            reader_in_a_slot(&shared),
            shared.spawn(|shared| {
                if shared.lock.try_write() {
                    shared.data.add();
                    shared.lock.unlock_write();
                }
            }),
        ];
        write(&shared);
        join_all(others);
        assert!(shared.lock.try_write(), "all readers have left");
    })
}

#[test]
fn two_writers_and_a_reader() {
    two_writes_against_a_read(Model::new().preemptions(1)).reaches(&[RevokedBias, Parked]);
}

#[test]
fn a_reader_recurses_while_a_writer_revokes_the_bias() {
    let body = || {
        let shared = open();
        let reader = in_a_slot(&shared, |shared| {
            read(shared);
            shared.data.get();
            shared.lock.unlock_read();
        });
        write(&shared);
        join_all([reader]);
    };
    Model::new().check(body).reaches(&[RevokedBias, Parked]);
}

/// G2: the slot stays marked, whichever thread enables the bias meanwhile.
#[test]
fn the_bias_is_enabled_again_behind_a_reader_that_was_moved() {
    let body = || {
        let shared = open();
        let reader = reader_in_a_slot(&shared);
        lead_in(|| {
            assert!(!shared.lock.try_write(), "revokes the bias");
            read(&shared); // enables it again
        });
        write(&shared);
        join_all([reader]);
    };
    Model::new().check(body).reaches(&[EnabledBias, RevokedBias, Parked]);
}

/// G1, G3: readers that are counted do not enable the bias in front of a writer that waits.
#[test]
fn the_bias_stays_revoked_while_a_thread_waits() {
    let body = || {
        let shared = open();
        let writer = lead_in(|| {
            shared.lock.read(READERS);
            let writer = shared.spawn(write);
            yield_now(); // it revokes the bias and waits
            writer
        });
        assert!(shared.lock.try_read_recursive(), "beside itself");
        shared.lock.unlock_read();
        shared.lock.unlock_read();
        join_all([writer]);
    };
    Model::new().check(body).reaches(&[RevokedBias, Parked]);
}

#[test]
fn a_writer_with_a_deadline() {
    let body = || {
        let shared = open();
        let reader = shared.spawn(read);
        let writer = shared.spawn(|shared| shared.timed_write(1));
        advance(2);
        join_all([reader, writer]);
        assert!(shared.lock.try_write(), "all readers have left");
    };
    Model::new().moving_clock().check(body).reaches(&[RevokedBias, TimedOut]);
}

#[test]
fn an_upgrade_beside_a_reader_in_a_slot() {
    let body = || {
        let shared = open();
        lead_in(|| shared.lock.upgradable(None));
        let reader = shared.spawn(read);
        shared.lock.upgrade(None);
        shared.data.add();
        shared.lock.unlock_write();
        join_all([reader]);
    };
    Model::new().check(body).reaches(&[RevokedBias, Parked]);
}

/// The upgradable hold is the thread's latest; the read lock that it gives up is in a slot all the same.
#[test]
fn a_slot_is_given_back_before_an_upgradable_hold() {
    let body = || {
        let shared = open();
        let reader = in_a_slot(&shared, |shared| {
            shared.lock.upgradable(None);
            shared.data.get();
            shared.lock.unlock_read();
            shared.data.get();
            shared.lock.unlock_upgradable();
        });
        write(&shared);
        join_all([reader]);
        assert!(shared.lock.try_write(), "all readers have left");
    };
    Model::new().preemptions(1).check(body).reaches(&[RevokedBias, Parked]);
}

/// G4: a writer comes in as a reader leaves its slot; the last thread gets the lock once more, alone, and
/// frees it.
fn last_one_frees(unlock_read: fn(&Lock)) {
    let lock = Mortal::new(Lock::new());
    let users = Mortal::new(AtomicU32::new(2));
    lead_in(|| {
        lock.read(READERS);
        lock.unlock_read();
    });
    let leave = move |unlock: fn(&Lock)| {
        // Counted while the lock is held; the thread that counts to zero is alone once it has got the lock
        // again.
        let is_last = users.fetch_sub(1, Relaxed) == 1;
        unlock(&lock);
        if is_last {
            lock.write();
            lock.unlock_write();
            lock.destroy();
        }
    };
    let reader = led_to(|place| {
        thread::spawn(move || {
            lock.read(READERS);
            place.reach();
            leave(unlock_read);
        })
    });
    lock.write();
    leave(Lock::unlock_write);
    join_all([reader]);
}

#[test]
fn the_last_one_out_frees_the_lock() {
    Model::new().preemptions(4).check(|| last_one_frees(Lock::unlock_read)).reaches(&[RevokedBias, Parked]);
}

/// G7: this thread holds a lock that was at the address before; it reads the next one there, which another
/// thread writes.
fn in_used_memory(model: Model) -> Checked {
    model.check(|| {
        let shared = Shared::new(Lock::new());
        let address: *const Lock = &shared.lock;
        let before = <Machine as Memory>::AtomicU32::new(Machine::slot_table());
        assert!(lead_in(|| Machine::slot_enter(&before, address as usize)));
        let writer = shared.spawn(write);
        read(&shared); // enables the bias, if it comes first
        read(&shared);
        join_all([writer]);
        assert!(shared.lock.try_write(), "no reader is counted");
    })
}

#[test]
fn a_lock_in_used_memory() {
    in_used_memory(Model::new().preemptions(1)).reaches(&[EnabledBias, RevokedBias]);
}

/// A thread forbids the bias of a lock that others use.
fn a_ban(model: Model, shared: impl Fn() -> Arc<Shared<Lock>> + Sync + Send + 'static) -> Checked {
    model.check(move || {
        let shared = shared();
        let reader = shared.spawn(|shared| {
            read(shared);
            read(shared);
        });
        let is_banned = shared.lock.forbid_bias();
        write(&shared);
        join_all([reader]);
        assert!(!is_banned || !shared.lock.is_biased(), "a bias that is forbidden");
        assert!(shared.lock.try_write(), "all readers have left");
    })
}

/// G8: readers may just have found that the lock is private.
#[test]
fn a_bias_is_forbidden_before_there_is_one() {
    a_ban(Model::new(), || Shared::new(Lock::new())).reaches(&[EnabledBias, RevokedBias]);
}

/// G8: readers may be in slots.
#[test]
fn a_bias_is_forbidden() {
    a_ban(Model::new(), open).reaches(&[RevokedBias]);
}

#[test]
fn a_bias_is_forbidden_while_another_thread_writes() {
    let body = || {
        let shared = open();
        let others = [reader_in_a_slot(&shared), shared.spawn(write)];
        let is_banned = shared.lock.forbid_bias();
        join_all(others);
        read(&shared);
        assert!(!is_banned || !shared.lock.is_biased(), "a bias that is forbidden");
        assert!(shared.lock.try_write(), "all readers have left");
    };
    Model::new().preemptions(1).check(body).reaches(&[RevokedBias, Parked]);
}

// Mutants: the machine does not do what the bias relies on.

fn mutant(test: &str, reason: &str, fault: Fault) {
    rejected!(test, breaks("bias.G2"), reason, || a_read_against_a_write(Model::new().fault(fault)));
}

/// A reader comes in beside the writer.
#[test]
fn mutant_no_fence() {
    mutant("mutant_no_fence", RACE, Fault::NoFence);
}

/// The reader reads on beside the writer.
#[test]
fn mutant_readers_are_not_moved() {
    mutant("mutant_readers_are_not_moved", RACE, Fault::NotMoved);
}

/// The reader gives up a count that was not taken.
#[test]
fn mutant_readers_are_moved_but_not_counted() {
    mutant("mutant_readers_are_moved_but_not_counted", "subtract with overflow", Fault::NotCounted);
}

/// G4: a reader looks at the lock once more, after it has left its slot.
#[test]
fn mutant_a_reader_looks_back() {
    rejected!("mutant_a_reader_looks_back", breaks("bias.G4"), RACE, || {
        Model::new().preemptions(3).check(|| {
            last_one_frees(|lock| {
                lock.unlock_read();
                let _ = lock.is_locked();
            });
        });
    });
}

/// The writer waits for a reader that the lock does not have.
#[test]
fn mutant_slots_are_not_disowned() {
    rejected!("mutant_slots_are_not_disowned", breaks("bias.G7"), "deadlock", || {
        in_used_memory(Model::new().preemptions(1).fault(Fault::NotDisowned));
    });
}

/// `SLOTS` is cleared, and the count follows: another writer comes in between.
#[test]
fn mutant_readers_are_counted_too_late() {
    let closes = |op: &Op| op.is_compare_exchange() && op.order == AcqRel && op.lacks(SLOTS);
    rejected!("mutant_readers_are_counted_too_late", breaks("bias.G2"), RACE, || {
        two_writes_against_a_read(Model::new().preemptions(1).fault(Fault::InTwo(closes)));
    });
}

/// A reader notes that the lock is private, whatever another thread has noted there meanwhile: in the first execution that
/// fails, a bias that is enabled, so that its slots are not found and the writer waits for a reader for ever.
#[test]
fn mutant_private_again() {
    let notes = |op: &Op| op.is(Kind::CompareExchange, Relaxed) && op.writes(PRIVATE);
    rejected!("mutant_private_again", breaks("bias.G8"), "deadlock", || {
        a_ban(Model::new().fault(Fault::Blind(notes)), || Shared::new(Lock::new()));
    });
}
