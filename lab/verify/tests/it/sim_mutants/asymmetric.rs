//! The release that is a plain store.

use spinpark_platform::Ordering::{AcqRel, Acquire, Release};
use spinpark_sim::check::{Fault, Kind, Op};
use spinpark_verify::sim_programs::Checker;

use super::harness::{OF_TEST, family, hangs, is_shown, never_ends, rejected};

/// Of the lock word.
const WAITERS: u64 = 1 << 7;
const WRITER: u64 = 3;
/// Of the queue lock.
const LOCKED: u32 = 1;
const CONTENDED: u32 = 4;

/// A waiter records itself, and is what the lock's writer may wipe out.
pub(crate) fn is_mark(op: &Op) -> bool {
    op.kind == Kind::CompareExchangeWeak
        && matches!(op.order, Release | AcqRel)
        && op.value & (WAITERS | WRITER) == WAITERS | WRITER
}

#[test]
fn no_fence() {
    rejected(Checker::new(family("mutex_tight")).fault(Fault::NoFence), hangs);
}

/// The fence ends steps, but a store that one has made before stays in its store buffer, and wipes the mark
/// out later.
#[test]
fn a_fence_that_does_not_wait_for_stores() {
    rejected(Checker::new(family("mutex_tight")).fault(Fault::NoDrain), hangs);
}

/// The mark is never there when its thread looks: it tries for ever, or until the lock is free, and leaves a
/// flag behind.
#[test]
fn the_mark_never_lasts() {
    rejected(Checker::new(family("mutex_tight")).fault(Fault::NoWrite(is_mark)), |_| true);
}

#[test]
fn a_fence_before_the_queue_is_locked() {
    let locks = |op: &Op| op.is(Kind::CompareExchangeWeak, Acquire) && op.value == u64::from(LOCKED);
    rejected(Checker::new(family("mutex_tight")).fault(Fault::FenceBefore(locks)), hangs);
}

/// Not a mutant: with the queue locked, the fence may as well come before the mark, which then lasts.
#[test]
fn a_fence_between_the_queue_lock_and_the_mark() {
    let checker = Checker::new(family("mutex_tight")).fault(Fault::FenceBefore(is_mark));
    let checker = checker.of_test(OF_TEST);
    if !is_shown(checker)
        && let Err(failing) = checker.sweep(0..1_000)
    {
        panic!("{failing}");
    }
}

#[test]
fn the_queue_is_unlocked_without_contended() {
    let unlocks = |op: &Op| op.is(Kind::CompareExchange, Release) && op.value == u64::from(CONTENDED);
    rejected(Checker::new(family("mutex_tight")).fault(Fault::Clears(unlocks)), hangs);
}

#[test]
fn a_release_that_ignores_contended() {
    rejected(Checker::new(family("mutex_tight")).fault(Fault::Ignored(CONTENDED)), never_ends);
}

#[test]
fn a_release_that_ignores_the_queue_lock() {
    rejected(Checker::new(family("mutex_tight")).fault(Fault::Ignored(LOCKED)), hangs);
}

/// A3: the release that ended the contended stores, where it must compare.
#[test]
fn contended_ends_without_the_compare_exchange() {
    let releases = |op: &Op| op.is(Kind::CompareExchange, Release) && op.value == 0;
    rejected(Checker::new(family("mutex_tight")).fault(Fault::Blind(releases)), hangs);
}
