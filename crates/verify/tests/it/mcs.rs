//! Models of the MCS lock, and mutants. A node is destroyed (and checked) as soon as its thread is through.

use std::ptr::NonNull;
use std::sync::Arc;

use loom::thread;
use spinpark_locks::{McsLock, McsNode};
use spinpark_platform::Ordering::{AcqRel, Acquire, Release};
use spinpark_verify::platform::{Fault, Kind, Loom};
use spinpark_verify::{Guarded, Model, rejected};

struct Shared {
    lock: McsLock<Loom>,
    data: Guarded,
}

fn sections(threads: u32) {
    let shared = Arc::new(Shared { lock: McsLock::new(), data: Guarded::new() });
    let others: Vec<_> = (1..threads)
        .map(|_| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.lock.with(|| shared.data.add());
            })
        })
        .collect();
    shared.lock.with(|| shared.data.add());
    for other in others {
        other.join().unwrap();
    }
    assert_eq!(shared.lock.with(|| shared.data.get()), threads);
}

#[test]
fn two_threads() {
    Model::new().preemptions(4).check(|| sections(2));
}

#[test]
fn three_threads() {
    Model::new().two_may_spin().check(|| sections(3));
}

#[test]
fn try_lock_beside_lock() {
    Model::new().preemptions(3).check(|| {
        let shared = Arc::new(Shared { lock: McsLock::new(), data: Guarded::new() });
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let mut node = McsNode::new();
                let node = NonNull::from(&mut node);
                // SAFETY: locks::mcs.M1: the node lives in this frame, and is unlocked in it if it was locked.
                if unsafe { shared.lock.try_lock(node) } {
                    shared.data.add();
                    // SAFETY: the node is the one that was locked above.
                    unsafe { shared.lock.unlock(node) };
                }
            })
        };
        shared.lock.with(|| shared.data.add());
        other.join().unwrap();
    });
}

fn two_threads_with(fault: Fault) {
    Model::new().preemptions(3).fault(fault).check(|| sections(2));
}

/// Document 002 before patch 7: the barrier stands after the store to `locked`, so the section leaks past the unlock.
#[test]
fn mutant_barrier_after_the_hand_over() {
    rejected!("mutant_barrier_after_the_hand_over", "Causality violation", || {
        two_threads_with(Fault::Relaxed(|op| op.is(Kind::Store, Release) && !op.pointer));
    });
}

/// Document 002 before patch 7, the other side: nothing orders the section after the wait loop.
#[test]
fn mutant_wait_without_acquire() {
    rejected!("mutant_wait_without_acquire", "Causality violation", || {
        two_threads_with(Fault::Relaxed(|op| op.is(Kind::Load, Acquire) && !op.pointer));
    });
}

/// The uncontended unlock does not publish the section.
#[test]
fn mutant_unlock_without_release() {
    rejected!("mutant_unlock_without_release", "Causality violation", || {
        two_threads_with(Fault::Relaxed(|op| op.is(Kind::CompareExchange, Release)));
    });
}

/// The swap neither publishes the node (locks::mcs.M2) nor acquires the last section.
#[test]
fn mutant_relaxed_swap() {
    rejected!("mutant_relaxed_swap", "Causality violation", || {
        two_threads_with(Fault::Relaxed(|op| op.is(Kind::Swap, AcqRel)));
    });
}

/// The successor links itself with a node that is not published (locks::mcs.M2): the predecessor's store to it is not
/// ordered.
#[test]
fn mutant_link_without_release() {
    rejected!("mutant_link_without_release", "Causality violation", || {
        two_threads_with(Fault::Relaxed(|op| op.is(Kind::Store, Release) && op.pointer));
    });
}
