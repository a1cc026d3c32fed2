//! Read-write locks.

use spinpark_locks::Preference;
use spinpark_locks::bits::queue_lock::{ASKED, LOCKED};
use spinpark_locks::bits::word::{COUNT, HANDOFF, SLOTS, TIMED, WAKING};
use spinpark_platform::Ordering::{AcqRel, Relaxed, Release};
use spinpark_platform::{NS_PER_MS, Tuning};
use spinpark_sim::Tuned;
use spinpark_sim::check::{Fault, Kind, Op};
use spinpark_verify::sim_programs::{Checker, Family, Program, dependent_with, first_with, tries_with};
use spinpark_verify::{breaks, breaks_rule};

use super::harness::{
    family, hangs, is_unfair, leaves_a_flag, lets_two_in, never_ends, passes_a_request, rejected,
    uses_what_is_gone,
};

/// core.L2: a writer that starves requests the lock, but the request is not recorded, nor that the writer
/// sleeps. It looks by itself after a time (H3), so that not every such run hangs; or a reader comes in that
/// the request would have kept out.
#[test]
fn a_request_is_not_recorded() {
    let request = |op: &Op| op.is(Kind::CompareExchangeWeak, Release) && op.has(HANDOFF);
    rejected(breaks("core.L2"), Checker::new(family("rwlock")).fault(Fault::NoWrite(request)), |failure| {
        never_ends(failure) || leaves_a_flag(failure) || passes_a_request(failure)
    });
}

#[test]
fn a_bias_is_revoked_without_a_fence() {
    let fault = Fault::NoFence;
    rejected(breaks("bias.G2"), Checker::new(family("rwlock_freed")).fault(fault), |failure| {
        lets_two_in(failure) || never_ends(failure) || uses_what_is_gone(failure)
    });
}

/// A reader's note in its slot is still in its store buffer when the writer looks for it.
#[test]
fn a_bias_is_revoked_with_a_fence_that_does_not_wait_for_stores() {
    rejected(breaks("bias.G2"), Checker::new(family("rwlock_freed")).fault(Fault::NoDrain), |failure| {
        lets_two_in(failure) || never_ends(failure) || uses_what_is_gone(failure)
    });
}

#[test]
fn readers_are_not_moved() {
    rejected(breaks("bias.G2"), Checker::new(family("rwlock")).fault(Fault::NotMoved), lets_two_in);
}

#[test]
fn readers_are_moved_but_not_counted() {
    rejected(breaks("bias.G2"), Checker::new(family("rwlock")).fault(Fault::NotCounted), lets_two_in);
}

/// G2: `SLOTS` is cleared first, and the readers are counted in then.
#[test]
fn readers_are_counted_too_late() {
    let closes = |op: &Op| op.is(Kind::CompareExchangeWeak, AcqRel) && op.lacks(SLOTS) && !op.lacks(COUNT);
    rejected(breaks("bias.G2"), Checker::new(family("rwlock")).fault(Fault::InTwo(closes)), lets_two_in);
}

/// The head of the queue goes, and its timer's flag stays: releases leave the next head, which has no timer,
/// asleep; or the flag is there when no thread is any more.
#[test]
fn a_flag_is_left_behind() {
    for name in ["mutex", "mutex_tight", "rwlock"] {
        rejected(breaks("core.L1"), Checker::new(family(name)).fault(Fault::Kept(TIMED)), |failure| {
            leaves_a_flag(failure) || hangs(failure)
        });
    }
}

/// The waiter that requests the lock never looks at that.
#[derive(Debug)]
enum Endless {}

impl Tuned for Endless {
    const TUNING: Tuning =
        Tuning { request_ns: u64::MAX, reader_patience_ns: 10 * NS_PER_MS, ..Tuning::LINUX };
}

/// H3: a request has no end, and a helper waits for its patience at each item, as it was once.
#[test]
fn a_request_is_never_withdrawn() {
    let family = Family { name: "a_request_is_never_withdrawn", build: dependent_with::<Endless> };
    rejected(breaks("dependent_readers.H3"), Checker::new(family), |failure| {
        is_unfair(failure) || never_ends(failure) || failure.to_string().contains("progress")
    });
}

/// H2, H3: no waiter looks at a request, and a thread that only tries never comes in beside a reader that
/// stays. Nor does one probe the lock, which would end the request (probe.L3).
#[test]
fn a_request_at_which_no_waiter_looks() {
    #[derive(Debug)]
    enum Unseen {}
    impl Tuned for Unseen {
        const TUNING: Tuning = Tuning { starvation_ns: 1_000, probe_ns: u64::MAX, ..Endless::TUNING };
    }
    let family = Family { name: "a_request_at_which_no_waiter_looks", build: tries_with::<Unseen> };
    rejected(breaks("wake_pass.H2"), Checker::new(family), is_unfair);
}

/// V1: a reader that leaves others inside asks the thread that has the queue locked to look; a stream of such
/// readers keeps that thread from unlocking.
#[test]
fn readers_that_leave_ask() {
    let asks = |op: &Op| {
        let for_nothing = op.is(Kind::CompareExchange, Relaxed) && op.has(LOCKED);
        if for_nothing { ASKED } else { 0 }
    };
    rejected(breaks("core.V1"), Checker::new(family("rwlock_queueing")).fault(Fault::Adds(asks)), is_unfair);
}

/// Readers of a lock that prefers writers heed none.
#[test]
fn readers_join_others_past_a_preferred_writer() {
    let build = |program: &mut Program| first_with(program, Preference::Readers);
    let family = Family { name: "readers_join_others_past_a_preferred_writer", build };
    rejected(
        breaks_rule("of a lock that prefers writers: no reader joins readers past a writer that waits"),
        Checker::new(family),
        |failure| failure.to_string().contains("joins readers past"),
    );
}

/// H4: the last reader wakes a preferred writer, and the word does not say that the lock is kept for it.
#[test]
fn the_last_reader_promises_nothing() {
    let promises = |op: &Op| match op.is(Kind::CompareExchangeWeak, AcqRel) {
        true if op.has(WAKING) => HANDOFF,
        _ => 0,
    };
    rejected(
        breaks("core.H4"),
        Checker::new(family("rwlock_first")).fault(Fault::Without(promises)),
        |failure| failure.to_string().contains("before the writer that was promised the lock"),
    );
}
