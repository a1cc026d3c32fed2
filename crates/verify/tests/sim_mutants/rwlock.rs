//! Read-write locks.

use spinpark_platform::Ordering::{AcqRel, Release};
use spinpark_sim::check::{Checker, Fault, Kind, Op};

use super::harness::{family, leaves_a_flag, lets_two_in, never_ends, rejected, uses_what_is_gone};

/// Of the lock word.
const HANDOFF: u64 = 1 << 2;
const TIMED: u32 = 1 << 3;
const SLOTS: u64 = 1 << 5;

/// L2: a writer that starves demands the lock, but the demand is not recorded.
#[test]
fn a_demand_is_not_recorded() {
    let demand = |op: &Op| op.is(Kind::CompareExchangeWeak, Release) && op.value & HANDOFF != 0;
    rejected(Checker::new(family("rwlock")).fault(Fault::NoWrite(demand)), never_ends);
}

#[test]
fn a_gate_is_shut_without_a_fence() {
    let fault = Fault::NoFence;
    rejected(Checker::new(family("rwlock_freed")).fault(fault), |failure| {
        lets_two_in(failure) || never_ends(failure) || uses_what_is_gone(failure)
    });
}

#[test]
fn readers_are_not_moved() {
    rejected(Checker::new(family("rwlock")).fault(Fault::NotMoved), lets_two_in);
}

#[test]
fn readers_are_moved_but_not_counted() {
    rejected(Checker::new(family("rwlock")).fault(Fault::NotCounted), lets_two_in);
}

/// G2: `SLOTS` is cleared first, and the readers are counted in then.
#[test]
fn readers_are_counted_too_late() {
    let closes =
        |op: &Op| op.is(Kind::CompareExchangeWeak, AcqRel) && op.value & SLOTS == 0 && op.value >> 8 > 0;
    rejected(Checker::new(family("rwlock")).fault(Fault::InTwo(closes)), lets_two_in);
}

/// The head of the queue goes, and its timer's flag stays: it costs nobody anything, until nobody is there any more.
#[test]
fn a_flag_is_left_behind() {
    for name in ["mutex", "mutex_tight", "rwlock"] {
        rejected(Checker::new(family(name)).fault(Fault::Kept(TIMED)), leaves_a_flag);
    }
}
