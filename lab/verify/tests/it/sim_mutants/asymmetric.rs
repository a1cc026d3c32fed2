//! The release that is a plain store.

use spinpark_locks::bits::queue_lock::{CONTENDED, LOCKED};
use spinpark_locks::bits::word::{WAITERS, WRITER};
use spinpark_platform::Ordering::{AcqRel, Acquire, Release};
use spinpark_sim::check::{Fault, Kind, Op};
use spinpark_verify::breaks;
use spinpark_verify::sim_programs::Checker;

use super::harness::{OF_TEST, family, hangs, is_shown, never_ends, rejected};

/// A waiter records itself, and is what the lock's writer may wipe out.
pub(crate) fn is_mark(op: &Op) -> bool {
    op.kind == Kind::CompareExchangeWeak && matches!(op.order, Release | AcqRel) && op.has(WAITERS | WRITER)
}

#[test]
fn no_fence() {
    rejected(breaks("fast_path.A1"), Checker::new(family("mutex_tight")).fault(Fault::NoFence), hangs);
}

/// The fence ends steps, but a store that one has made before stays in its store buffer, and wipes the mark
/// out later.
#[test]
fn a_fence_that_does_not_wait_for_stores() {
    rejected(breaks("fast_path.A1"), Checker::new(family("mutex_tight")).fault(Fault::NoDrain), hangs);
}

/// The mark is never there when its thread looks: it tries for ever, or until the lock is free, and leaves a
/// flag behind.
#[test]
fn the_mark_never_lasts() {
    rejected(
        breaks("fast_path.A1"),
        Checker::new(family("mutex_tight")).fault(Fault::NoWrite(is_mark)),
        |_| true,
    );
}

#[test]
fn a_fence_before_the_queue_is_locked() {
    let locks = |op: &Op| op.is(Kind::CompareExchangeWeak, Acquire) && op.writes(LOCKED);
    rejected(
        breaks("fast_path.A1"),
        Checker::new(family("mutex_tight")).fault(Fault::FenceBefore(locks)),
        hangs,
    );
}

/// Not a mutant: with the queue locked, the fence may as well come before the mark, which then lasts.
#[test]
fn a_fence_between_the_queue_lock_and_the_mark() {
    let checker = Checker::new(family("mutex_tight")).fault(Fault::FenceBefore(is_mark));
    let checker = checker.of_test(OF_TEST);
    if !is_shown(checker) {
        checker.sweep(0..1_000).unwrap_or_else(|failing| panic!("{failing}")).applies();
    }
}

#[test]
fn the_queue_is_unlocked_without_contended() {
    let unlocks = |op: &Op| op.is(Kind::CompareExchange, Release) && op.writes(CONTENDED);
    rejected(
        breaks("fast_path.A1"),
        Checker::new(family("mutex_tight")).fault(Fault::Clears(unlocks)),
        hangs,
    );
}

#[test]
fn a_release_that_ignores_contended() {
    rejected(
        breaks("fast_path.A1"),
        Checker::new(family("mutex_tight")).fault(Fault::Ignored(CONTENDED)),
        never_ends,
    );
}

#[test]
fn a_release_that_ignores_the_queue_lock() {
    rejected(
        breaks("fast_path.A1"),
        Checker::new(family("mutex_tight")).fault(Fault::Ignored(LOCKED)),
        hangs,
    );
}

/// A3: the release that ended the contended stores, where it must compare.
#[test]
fn contended_ends_without_the_compare_exchange() {
    let releases = |op: &Op| op.is(Kind::CompareExchange, Release) && op.writes(0);
    rejected(
        breaks("fast_path.A3"),
        Checker::new(family("mutex_tight")).fault(Fault::Blind(releases)),
        hangs,
    );
}
