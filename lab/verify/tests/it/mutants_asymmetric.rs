//! Known-bad machines under the asymmetric release, which the checker must reject: without the fence, the
//! look after it, the guard's bits, or the compare-exchange that follows when the contended bit is cleared.

use loom::thread::yield_now;
use spinpark_locks::bits::queue_lock::{CONTENDED, LOCKED};
use spinpark_locks::bits::word::{WAITERS, WRITER};
use spinpark_locks::{RawCondvar, RawMutex};
use spinpark_platform::Ordering::{AcqRel, Acquire, Release};
use spinpark_verify::model::Checked;
use spinpark_verify::platform::{Fault, Kind, Loom, Op, lead_in};
use spinpark_verify::{Model, Shared, breaks, join_all, rejected};

const RACE: &str = "Causality violation";
const LOST_WAKE_UP: &str = "deadlock";
const LIVELOCK: &str = "exceeded maximum number of branches";

/// One release against one waiter, then both once more.
fn a_release_against_a_waiter(model: Model) -> Checked {
    model.preemptions(3).check(|| {
        let shared = Shared::new(RawMutex::<Loom>::new());
        let other = shared.spawn(|shared| {
            shared.section();
            shared.section();
        });
        shared.section();
        shared.section();
        other.join().unwrap();
        assert_eq!(shared.finish(), 4);
    })
}

/// A waiter marks the lock whose writer is about to clear the contended bit.
fn an_end_of_contended_against_a_waiter(model: Model) {
    model.preemptions(3).check(|| {
        let shared = Shared::new(RawMutex::<Loom>::new());
        let holder = lead_in(|| {
            shared.lock.lock();
            let holder = shared.spawn(|shared| {
                shared.lock.lock();
                yield_now(); // here the lead-in ends
                shared.lock.unlock();
            });
            yield_now(); // it queues
            shared.lock.unlock(); // it is woken
            yield_now(); // it holds the lock, whose contended bit is set
            holder
        });
        shared.section();
        join_all([holder]);
    });
}

/// A thread that does not hold the mutex moves a waiter to it, and so marks it, as its owner releases it.
fn a_release_against_a_signal(model: Model) {
    model.preemptions(3).check(|| {
        let shared = Shared::new((RawMutex::<Loom>::new(), RawCondvar::<Loom>::new()));
        let waiter = lead_in(|| {
            let waiter = shared.spawn(|shared| {
                let (mutex, condvar) = &shared.lock;
                mutex.lock();
                condvar.wait(mutex, None);
                mutex.unlock();
            });
            yield_now(); // it waits
            shared.lock.0.lock();
            waiter
        });
        let signaller = shared.spawn(|shared| assert!(shared.lock.1.signal()));
        shared.lock.0.unlock();
        join_all([signaller, waiter]);
    });
}

/// A waiter records itself, and is what the lock's writer may wipe out.
fn is_mark(op: &Op) -> bool {
    op.kind == Kind::CompareExchangeWeak && matches!(op.order, Release | AcqRel) && op.has(WAITERS | WRITER)
}

#[test]
fn no_fence() {
    rejected!("no_fence", breaks("fast_path.A1"), LOST_WAKE_UP, || a_release_against_a_waiter(
        Model::new().fault(Fault::NoFence)
    ));
}

/// The mark is never there when its thread looks: it tries for ever.
#[test]
fn the_mark_never_lasts() {
    rejected!("the_mark_never_lasts", breaks("fast_path.A1"), LIVELOCK, || {
        a_release_against_a_waiter(Model::new().fault(Fault::NoWrite(is_mark)));
    });
}

/// The fence ends releases that have not seen the queue locked; those that begin between fence and lock see
/// it free.
#[test]
fn a_fence_before_the_queue_is_locked() {
    rejected!("a_fence_before_the_queue_is_locked", breaks("fast_path.A1"), LOST_WAKE_UP, || {
        let locks = |op: &Op| op.is(Kind::CompareExchangeWeak, Acquire) && op.writes(LOCKED);
        a_release_against_a_waiter(Model::new().fault(Fault::FenceBefore(locks)));
    });
}

/// Not a mutant: with the queue locked, the fence may as well come before the mark, which then lasts.
#[test]
fn a_fence_between_the_queue_lock_and_the_mark() {
    a_release_against_a_waiter(Model::new().fault(Fault::FenceBefore(is_mark))).applies();
}

#[test]
fn the_queue_is_unlocked_without_contended() {
    rejected!("the_queue_is_unlocked_without_contended", breaks("fast_path.A1"), LOST_WAKE_UP, || {
        let unlocks = |op: &Op| op.is(Kind::CompareExchange, Release) && op.writes(CONTENDED);
        a_release_against_a_waiter(Model::new().fault(Fault::Clears(unlocks)));
    });
}

#[test]
fn a_release_that_ignores_contended() {
    rejected!("a_release_that_ignores_contended", breaks("fast_path.A1"), LOST_WAKE_UP, || {
        a_release_against_a_waiter(Model::new().fault(Fault::Ignored(CONTENDED)));
    });
}

#[test]
fn a_release_that_ignores_the_queue_lock() {
    rejected!("a_release_that_ignores_the_queue_lock", breaks("fast_path.A1"), LOST_WAKE_UP, || {
        a_release_against_a_waiter(Model::new().fault(Fault::Ignored(LOCKED)));
    });
}

/// A3: the release that ended the contended stores, where it must compare.
#[test]
fn contended_ends_without_the_compare_exchange() {
    rejected!("contended_ends_without_the_compare_exchange", breaks("fast_path.A3"), LOST_WAKE_UP, || {
        let releases = |op: &Op| op.is(Kind::CompareExchange, Release) && op.writes(0);
        an_end_of_contended_against_a_waiter(Model::new().fault(Fault::Blind(releases)));
    });
}

#[test]
fn the_models_of_the_mutants_hold() {
    a_release_against_a_waiter(Model::new());
    an_end_of_contended_against_a_waiter(Model::new());
    a_release_against_a_signal(Model::new());
}

#[test]
fn the_plain_store_without_release() {
    rejected!("the_plain_store_without_release", breaks("core.T5"), RACE, || {
        a_release_against_a_waiter(Model::new().fault(Fault::Relaxed(|op| op.is(Kind::Store, Release))));
    });
}
