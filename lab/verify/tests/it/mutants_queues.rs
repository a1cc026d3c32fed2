//! Known-bad queue locks and spinner queues, which the checker must reject.

use std::sync::Arc;

use loom::thread;
use spinpark_classics::osq::Osq as RightOsq;
use spinpark_platform::Ordering::{AcqRel, Acquire, Release};
use spinpark_verify::mutants::osq::{self, Osq};
use spinpark_verify::mutants::queue_lock::{self, QueueLock};
use spinpark_verify::platform::{Fault, Kind, Loom};
use spinpark_verify::{Guarded, Model, breaks, breaks_rule, rejected};

/// `threads` threads with one section each.
fn queue_lock(error: queue_lock::Error, threads: u32, preemptions: usize, fault: Fault) {
    Model::new().preemptions(preemptions).fault(fault).check(move || {
        let shared = Arc::new((QueueLock::<Loom>::new(error), Guarded::new()));
        let section = |(lock, data): &(QueueLock<Loom>, Guarded)| {
            lock.lock();
            data.add();
            lock.unlock();
        };
        let others: Vec<_> = (1..threads)
            .map(|_| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || section(&shared))
            })
            .collect();
        section(&shared);
        for other in others {
            other.join().unwrap();
        }
    });
}

#[test]
fn the_copied_queue_lock_is_right() {
    queue_lock(queue_lock::Error::None, 2, 4, Fault::None);
    queue_lock(queue_lock::Error::None, 3, 2, Fault::None);
}

/// A lost wake-up between two sleepers: the first one woken forgets the second.
#[test]
fn mutant_relocks_uncontended() {
    rejected!(
        "mutant_relocks_uncontended",
        breaks_rule("of the queue lock: a thread that has slept leaves `SLEEPERS` set"),
        "deadlock",
        || {
            queue_lock(queue_lock::Error::RelocksUncontended, 3, 2, Fault::None);
        }
    );
}

#[test]
fn mutant_sleeps_unmarked() {
    rejected!(
        "mutant_sleeps_unmarked",
        breaks_rule("of the queue lock: a sleeper has set `SLEEPERS`"),
        "deadlock",
        || {
            queue_lock(queue_lock::Error::SleepsUnmarked, 2, 2, Fault::None);
        }
    );
}

#[test]
fn mutant_wakes_before_it_unlocks() {
    rejected!(
        "mutant_wakes_before_it_unlocks",
        breaks_rule("of the queue lock: the wake comes after the unlock"),
        "deadlock",
        || {
            queue_lock(queue_lock::Error::WakesBeforeUnlock, 2, 2, Fault::None);
        }
    );
}

/// One has two sections, one has one, and one gives up after its first sleep.
fn one_gives_up(error: queue_lock::Error) {
    Model::new().preemptions(3).check(move || {
        let shared = Arc::new((QueueLock::<Loom>::new(error), Guarded::new()));
        let section = |(lock, data): &(QueueLock<Loom>, Guarded), sleeps: u32| {
            if lock.lock_within(sleeps) {
                data.add();
                lock.unlock();
            }
        };
        let others = [u32::MAX, 1].map(|sleeps| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || section(&shared, sleeps))
        });
        section(&shared, u32::MAX);
        section(&shared, u32::MAX);
        for other in others {
            other.join().unwrap();
        }
    });
}

#[test]
fn the_copied_queue_lock_can_be_given_up() {
    one_gives_up(queue_lock::Error::None);
}

/// The one that gives up was woken, and another one sleeps on.
#[test]
fn mutant_keeps_a_wake_up() {
    rejected!(
        "mutant_keeps_a_wake_up",
        breaks_rule("of the queue lock: a thread that gives up passes its wake-up on"),
        "deadlock",
        || one_gives_up(queue_lock::Error::KeepsWakeUp)
    );
}

/// Q1: the list is not published by the unlock.
#[test]
fn mutant_queue_unlock_without_release() {
    rejected!("mutant_queue_unlock_without_release", breaks("queue.Q1"), "Causality violation", || {
        let unlock = Fault::Relaxed(|op| op.is(Kind::CompareExchange, Release) && op.value == 0);
        queue_lock(queue_lock::Error::None, 2, 2, unlock);
    });
}

/// The first stays, the second leaves at its first poll, the third stays.
fn osq(error: osq::Error) {
    Model::new().check(move || {
        let shared = Arc::new((Osq::<Loom>::new(error), Guarded::new()));
        let enter = |(queue, data): &(Osq<Loom>, Guarded), stays: bool| {
            queue.enter(
                || stays,
                || {
                    data.add();
                },
            );
        };
        let others = [false, true].map(|stays| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || enter(&shared, stays))
        });
        enter(&shared, true);
        for other in others {
            other.join().unwrap();
        }
    });
}

#[test]
fn the_copied_osq_is_right() {
    osq(osq::Error::None);
}

/// The position was passed on to a spinner that only wants to leave: it waits for ever.
#[test]
fn mutant_step_a_without_head() {
    rejected!("mutant_step_a_without_head", breaks("osq.O1"), "exceeded maximum number of branches", || {
        osq(osq::Error::StepAWithoutHead);
    });
}

/// A successor that links itself late is never told.
#[test]
fn mutant_step_b_without_wait() {
    rejected!("mutant_step_b_without_wait", breaks("osq.O1"), "exceeded maximum number of branches", || {
        osq(osq::Error::StepBWithoutWait);
    });
}

/// O1: the predecessor passes the position on to a slot that was given up.
#[test]
fn mutant_no_step_a() {
    rejected!("mutant_no_step_a", breaks("osq.O1"), "exceeded maximum number of branches", || osq(
        osq::Error::NoStepA
    ));
}

fn right_osq(fault: Fault) {
    Model::new().preemptions(3).fault(fault).check(|| {
        let shared = Arc::new((RightOsq::<Loom, 2>::new(), Guarded::new()));
        let enter = |(queue, data): &(RightOsq<Loom, 2>, Guarded)| {
            queue.enter(|| true).map(|_spot| data.add());
        };
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || enter(&shared))
        };
        enter(&shared);
        other.join().unwrap();
    });
}

/// What the head did is not published with the position.
#[test]
fn mutant_pass_on_without_release() {
    rejected!(
        "mutant_pass_on_without_release",
        breaks_rule("of the osq: the position is passed on by a Release"),
        "Causality violation",
        || {
            right_osq(Fault::Relaxed(|op| op.is(Kind::Store, Release) && op.value == 1));
        }
    );
}

#[test]
fn mutant_wait_without_acquire() {
    rejected!(
        "mutant_wait_without_acquire",
        breaks_rule("of the osq: the wait acquires"),
        "Causality violation",
        || {
            right_osq(Fault::Relaxed(|op| op.is(Kind::Load, Acquire)));
        }
    );
}

/// An uncontended head leaves without publishing anything: the next one comes through `tail`.
#[test]
fn mutant_relaxed_tail() {
    rejected!(
        "mutant_relaxed_tail",
        breaks_rule("of the osq: the tail is AcqRel"),
        "Causality violation",
        || {
            right_osq(Fault::Relaxed(|op| op.order == AcqRel));
        }
    );
}
