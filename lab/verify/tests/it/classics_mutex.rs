//! Models of the kernel's mutex of 2010, and mutants.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use loom::thread::yield_now;
use spinpark_classics::RawLock;
use spinpark_classics::mutex_2010::{Fixed, Mutex, NoSpin, OldSpin, Spinning};
use spinpark_platform::Ordering::{Acquire, Release};
use spinpark_platform::{Event, OnCpu};
use spinpark_verify::model::Checked;
use spinpark_verify::platform::{Fault, Kind, Loom, lead_in};
use spinpark_verify::{Model, Shared, breaks, breaks_rule, rejected};

/// −1.
const WAITERS: u64 = u32::MAX as u64;

fn section<L: RawLock>(shared: &Shared<L>) {
    shared.lock.lock();
    shared.data.add();
    shared.lock.unlock();
}

fn sections<S: Spinning>(threads: u32) {
    spinpark_verify::sections::<Mutex<Loom, S>>(threads, 1);
}

#[test]
fn those_that_sleep() {
    Model::new().preemptions(5).check(|| sections::<NoSpin>(2)).reaches(&[Event::Parked]);
    Model::new().preemptions(5).spurious().check(|| sections::<NoSpin>(2));
    Model::new().two_may_spin().check(|| sections::<NoSpin>(3)).reaches(&[Event::Parked]);
    // A lock is used again after a wait.
    Model::new().preemptions(2).check(|| spinpark_verify::sections::<Mutex<Loom, NoSpin>>(2, 2));
}

#[test]
fn those_that_spin() {
    let spin = Model::new().preemptions(5).oracle(OnCpu::Running);
    // The old rule: no spinner leaves while owners run, so none sleeps but through the window.
    spin.check(|| sections::<OldSpin>(2)).reaches(&[Event::SpinAcquired]);
    spin.check(|| sections::<Fixed>(2)).reaches(&[Event::SpinAcquired]);
    // Document 001: the spinner that sees another owner queues.
    let spin = Model::new().three_may_spin().oracle(OnCpu::Running);
    spin.check(|| sections::<Fixed>(3)).reaches(&[Event::SpinAcquired, Event::SpinLeftOwnerChanged]);
}

/// Spinners give up at once: the window between taking the lock and naming the owner is what they see of it.
/// If the scheduler wants the CPU, a spinner leaves also where it sees no owner.
#[test]
fn those_that_leave() {
    let off = Model::new().preemptions(5).oracle(OnCpu::Off);
    off.check(|| sections::<Fixed>(2)).reaches(&[Event::SpinLeftOffCpu, Event::Parked]);
    let wanted = Model::new().preemptions(5).need_resched().oracle(OnCpu::Running);
    wanted.check(|| sections::<OldSpin>(2)).reaches(&[Event::Parked]);
}

#[test]
fn try_lock_beside_lock() {
    Model::new().preemptions(5).check(|| {
        let shared = Shared::new(Mutex::<Loom, NoSpin>::new());
        let other = shared.spawn(|shared| {
            if shared.lock.try_lock() {
                shared.data.add();
                shared.lock.unlock();
            }
        });
        section(&shared);
        other.join().unwrap();
    });
}

fn two_sleepers_with(fault: Fault) {
    Model::new().fault(fault).check(|| sections::<NoSpin>(2));
}

#[test]
fn mutant_no_wakes() {
    rejected!("mutant_no_wakes", breaks("mutex_2010.K2"), "deadlock", || two_sleepers_with(Fault::NoWakes));
}

/// K2: a waiter that does not say that it waits.
#[test]
fn mutant_waits_unmarked() {
    rejected!("mutant_waits_unmarked", breaks("mutex_2010.K2"), "deadlock", || {
        let unmarked = Fault::Clears(|op| op.is(Kind::Swap, Acquire) && op.value == WAITERS);
        Model::new().preemptions(5).fault(unmarked).check(|| {
            // The count is 0 while a thread waits only if the first one came by a compare-exchange.
            let shared = Shared::new(Mutex::<Loom, NoSpin>::new());
            assert!(shared.lock.try_lock());
            let waiter = shared.spawn(section);
            shared.data.add();
            shared.lock.unlock();
            waiter.join().unwrap();
        });
    });
}

#[test]
fn mutant_relaxed_unlock() {
    rejected!(
        "mutant_relaxed_unlock",
        breaks_rule("of the mutex of 2010: the release is a Release"),
        "Causality violation",
        || {
            two_sleepers_with(Fault::Relaxed(|op| op.is(Kind::FetchAdd, Release)));
        }
    );
}

/// The holder releases beside a thread that sleeps: its addition lets no thread in. (A wake orders memory here: so
/// another thread may come in before it.)
fn a_slow_release(model: Model) -> Checked {
    model.preemptions(5).check(|| {
        IS_ADDED.store(false, Relaxed);
        let shared = Shared::new(Mutex::<Loom, NoSpin>::new());
        let sleeper = lead_in(|| {
            shared.lock.lock();
            let sleeper = shared.spawn(section);
            yield_now(); // it sleeps
            sleeper
        });
        let other = shared.spawn(|shared| {
            if shared.lock.try_lock() {
                shared.data.add();
                shared.lock.unlock();
            }
        });
        shared.data.add();
        shared.lock.unlock();
        other.join().unwrap();
        sleeper.join().unwrap();
    })
}

/// Whether the holder's addition has been made, in this execution: it is the first one.
static IS_ADDED: AtomicBool = AtomicBool::new(false);

const RELAXED_ADDITION: Fault =
    Fault::Relaxed(|op| op.is(Kind::FetchAdd, Release) && !IS_ADDED.swap(true, Relaxed));

/// Not a mutant here: the store publishes, too.
#[test]
fn a_slow_release_publishes_by_its_store() {
    a_slow_release(Model::new().fault(RELAXED_ADDITION)).applies();
}

#[test]
fn mutant_relaxed_slow_unlock() {
    rejected!(
        "mutant_relaxed_slow_unlock",
        breaks_rule("of the mutex of 2010: the slow release is a Release"),
        "Causality violation",
        || {
            let store = Fault::Relaxed(|op| op.is(Kind::Store, Release) && op.writes(1));
            a_slow_release(Model::new().fault(RELAXED_ADDITION).fault(store))
        }
    );
}

#[test]
fn mutant_relaxed_lock() {
    rejected!(
        "mutant_relaxed_lock",
        breaks_rule("of the mutex of 2010: the lock acquires"),
        "Causality violation",
        || {
            two_sleepers_with(Fault::Relaxed(|op| op.is(Kind::FetchSub, Acquire)));
        }
    );
}

/// A spinner that takes a lock through the window, beside one that came by the fast path.
#[test]
fn mutant_relaxed_spinner() {
    rejected!(
        "mutant_relaxed_spinner",
        breaks_rule("of the mutex of 2010: a spinner acquires"),
        "Causality violation",
        || {
            let relaxed = Fault::Relaxed(|op| op.is(Kind::CompareExchange, Acquire) && op.value == 0);
            Model::new().oracle(OnCpu::Running).fault(relaxed).check(|| sections::<OldSpin>(2));
        }
    );
}
