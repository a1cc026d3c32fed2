//! Beside a thread that is stopped, or has ended in its call.

use spinpark_sim::check::Fault;
use spinpark_verify::breaks;
use spinpark_verify::sim_programs::{Checker, Family, mutex_without_probes, rwlock_without_probes};

use super::harness::{family, is_unfair, never_ends, rejected};

/// probe.L3: waiters rely on a thread that was woken, and on one that has the queue locked, for as long as it
/// takes.
#[test]
fn waiters_of_a_mutex_do_not_probe() {
    let family = Family { name: "waiters_of_a_mutex_do_not_probe", build: mutex_without_probes };
    rejected(breaks("probe.L3"), Checker::new(family), is_unfair);
}

#[test]
fn waiters_of_a_rwlock_do_not_probe() {
    let family = Family { name: "waiters_of_a_rwlock_do_not_probe", build: rwlock_without_probes };
    rejected(breaks("probe.L3"), Checker::new(family), is_unfair);
}

/// core.T9: its node stays in the queue, or what it has announced in the word.
#[test]
fn a_thread_that_ends_leaves_the_mutex_as_it_is() {
    rejected(breaks("core.T9"), Checker::new(family("mutex_left")).fault(Fault::LeavesAtOnce), |_| true);
}

#[test]
fn a_thread_that_ends_leaves_the_rwlock_as_it_is() {
    rejected(breaks("core.T9"), Checker::new(family("rwlock_left")).fault(Fault::LeavesAtOnce), |_| true);
}

/// V1: the thread that takes the last pin away does not wake the one that has the queue locked, which sleeps
/// until then.
#[test]
fn the_last_pin_wakes_no_thread() {
    rejected(breaks("core.V1"), Checker::new(family("mutex_tight")).fault(Fault::NoCrowdWakes), never_ends);
}
