//! The two open claims about document 002, decided by model.

use std::sync::Arc;

use loom::thread;
use spinpark_verify::documents::rwsem::{Clear, Flag, Recheck, Rwsem};
use spinpark_verify::{Guarded, Model, Mortal, rejected};

/// Polls before a spinner's time slice ends.
const POLLS: u32 = 2;

const A: u32 = 1;
const W: u32 = 2;
const B: u32 = 3;

/// A holds the semaphore and releases it, W comes and sleeps, and B spins or steals, if `b_queues` until it gets in.
fn two_writers_and_a_holder(preemptions: usize, b_queues: bool, clear: Clear, flag: Flag, recheck: Recheck) {
    Model::new().preemptions(preemptions).check(move || {
        let shared = Arc::new((Rwsem::held_by(A, clear, flag, recheck), Guarded::new()));
        let sleeper = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (rwsem, data) = &*shared;
                rwsem.down_write(W, 0);
                data.add();
                rwsem.up_write();
            })
        };
        let thief = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (rwsem, data) = &*shared;
                if b_queues {
                    rwsem.down_write(B, POLLS);
                } else if !rwsem.steal(B) {
                    return;
                }
                data.add();
                rwsem.up_write();
            })
        };
        shared.1.add();
        shared.0.up_write();
        sleeper.join().unwrap();
        thief.join().unwrap();
    });
}

/// Patch 8, first half of the verdict: whenever the owner is cleared, writers exclude each other, and all come in.
#[test]
fn patch_8_is_safe_and_live_either_way() {
    for clear in [Clear::Before, Clear::After] {
        two_writers_and_a_holder(3, false, clear, Flag::None, Recheck::WithoutLock);
        two_writers_and_a_holder(2, true, clear, Flag::None, Recheck::WithoutLock);
    }
}

/// A writer asks who owns what it holds.
fn the_holder_is_the_owner(clear: Clear) {
    Model::new().preemptions(3).check(move || {
        let rwsem = Arc::new(Rwsem::held_by(A, clear, Flag::None, Recheck::WithoutLock));
        let thief = {
            let rwsem = Arc::clone(&rwsem);
            thread::spawn(move || {
                if rwsem.steal(B) {
                    assert_eq!(rwsem.owner(), B, "the owner is not who holds it");
                    rwsem.up_write();
                }
            })
        };
        rwsem.up_write();
        thief.join().unwrap();
    });
}

/// Second half: cleared before the release, the owner is right for as long as a writer holds the semaphore.
#[test]
fn patch_8_cleared_before_the_release_the_owner_is_right() {
    the_holder_is_the_owner(Clear::Before);
}

/// Cleared after it, the next writer's owner is erased, and nobody spins on that writer: the price in speed.
#[test]
fn patch_8_as_sent_erases_the_next_owner() {
    rejected("patch_8_as_sent_erases_the_next_owner", "the owner is not who holds it", || {
        the_holder_is_the_owner(Clear::After);
    });
}

/// The next writer frees what the semaphore is part of.
fn freed_by_the_next_writer(clear: Clear) {
    Model::new().preemptions(3).check(move || {
        let rwsem = Mortal::new(Rwsem::held_by(A, clear, Flag::None, Recheck::WithoutLock));
        let thief = thread::spawn(move || {
            if rwsem.steal(B) {
                rwsem.destroy();
            }
        });
        rwsem.up_write();
        thief.join().unwrap();
    });
}

#[test]
fn patch_8_cleared_before_the_release_it_may_be_freed() {
    freed_by_the_next_writer(Clear::Before);
}

/// A limit of the verdict: the late store is an access after the release, which the next writer must allow for.
#[test]
fn patch_8_as_sent_touches_what_may_be_gone() {
    rejected("patch_8_as_sent_touches_what_may_be_gone", "Causality violation", || {
        freed_by_the_next_writer(Clear::After);
    });
}

/// Patch 9 as sent loses a wake-up: W sleeps, the semaphore is free, and nobody is left to wake it.
#[test]
fn patch_9_as_sent_loses_a_wake_up() {
    rejected("patch_9_as_sent_loses_a_wake_up", "deadlock", || {
        two_writers_and_a_holder(2, false, Clear::Before, Flag::Wakeup, Recheck::WithoutLock);
    });
}

/// What its comment takes for granted, that the woken writer does nothing before `wait_lock` is free, would save it.
#[test]
fn patch_9_with_the_recheck_under_the_lock() {
    two_writers_and_a_holder(3, false, Clear::Before, Flag::Wakeup, Recheck::UnderLock);
}
