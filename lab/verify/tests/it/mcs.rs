//! Models of document 002's MCS lock, and mutants. A node is destroyed (and checked) as soon as its thread is
//! through.

use std::sync::Arc;

use loom::thread;
use spinpark_classics::mcs::{Before, Corrected, McsLock, Patches, Shape};
use spinpark_platform::Ordering::{AcqRel, Release};
use spinpark_verify::platform::{Fault, Kind, Loom};
use spinpark_verify::{Guarded, Model, breaks, breaks_rule, rejected};

fn sections<S: Shape>(threads: u32) {
    let shared = Arc::new((McsLock::<Loom, S>::new(), Guarded::new()));
    let others: Vec<_> = (1..threads)
        .map(|_| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.0.with(|| shared.1.add());
            })
        })
        .collect();
    shared.0.with(|| shared.1.add());
    for other in others {
        other.join().unwrap();
    }
    assert_eq!(shared.0.with(|| shared.1.get()), threads);
}

/// Patch 6 takes away a store that is not needed: with it, the lock is right as well.
#[test]
fn sections_exclude_each_other() {
    Model::new().preemptions(5).check(|| sections::<Corrected>(2));
    Model::new().preemptions(5).check(|| sections::<Patches<false, true, true>>(2));
    Model::new().two_may_spin().check(|| sections::<Corrected>(3));
}

#[test]
fn try_with_beside_with() {
    Model::new().preemptions(3).check(|| {
        let shared = Arc::new((McsLock::<Loom, Corrected>::new(), Guarded::new()));
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.0.try_with(|| shared.1.add()).is_some())
        };
        shared.0.with(|| shared.1.add());
        let tried = other.join().unwrap();
        assert_eq!(shared.0.try_with(|| shared.1.get()), Some(1 + u32::from(tried)), "it is free");
    });
}

#[test]
fn mutant_mcs_before_patch_7() {
    rejected!(
        "mutant_mcs_before_patch_7",
        breaks_rule("of the MCS lock: sections are ordered by its barriers"),
        "Causality violation",
        || {
            Model::new().check(|| sections::<Before>(2));
        }
    );
}

/// Without the first half of patch 7: the section starts before the wait is over.
#[test]
fn mutant_mcs_without_a_barrier_behind_the_wait() {
    rejected!(
        "mutant_mcs_without_a_barrier_behind_the_wait",
        breaks_rule("of the MCS lock: a section begins after the wait"),
        "Causality violation",
        || {
            Model::new().check(|| sections::<Patches<true, false, true>>(2));
        }
    );
}

/// Without the second half: the section ends after the hand-over.
#[test]
fn mutant_mcs_without_a_barrier_before_the_hand_over() {
    rejected!(
        "mutant_mcs_without_a_barrier_before_the_hand_over",
        breaks_rule("of the MCS lock: a section ends before the hand-over"),
        "Causality violation",
        || {
            Model::new().check(|| sections::<Patches<true, true, false>>(2));
        }
    );
}

fn two_threads_with(fault: Fault) {
    Model::new().preemptions(3).fault(fault).check(|| sections::<Corrected>(2));
}

/// The uncontended unlock does not publish the section.
#[test]
fn mutant_unlock_without_release() {
    rejected!(
        "mutant_unlock_without_release",
        breaks_rule("of the MCS lock: the uncontended unlock is a Release"),
        "Causality violation",
        || {
            two_threads_with(Fault::Relaxed(|op| op.is(Kind::CompareExchange, AcqRel)));
        }
    );
}

/// The swap neither publishes the node (classics::mcs.M2) nor acquires the last section.
#[test]
fn mutant_relaxed_swap() {
    rejected!("mutant_relaxed_swap", breaks("classics::mcs.M2"), "Causality violation", || {
        two_threads_with(Fault::Relaxed(|op| op.is(Kind::Swap, AcqRel)));
    });
}

/// The successor links itself with a node that is not published (classics::mcs.M2): the predecessor's store
/// to it is not ordered.
#[test]
fn mutant_link_without_release() {
    rejected!("mutant_link_without_release", breaks("classics::mcs.M2"), "Causality violation", || {
        two_threads_with(Fault::Relaxed(|op| op.is(Kind::Store, Release) && op.pointer));
    });
}
