//! Beside a thread that is stopped.

use spinpark_verify::sim_programs::{Checker, Family, mutex_without_looks, rwlock_without_looks};

use super::harness::{is_unfair, rejected};

/// core.L3: waiters rely on a thread that was woken, and on one that has the queue locked, for as long as it takes.
#[test]
fn waiters_of_a_mutex_do_not_look() {
    let family = Family { name: "waiters_of_a_mutex_do_not_look", build: mutex_without_looks };
    rejected(Checker::new(family), is_unfair);
}

#[test]
fn waiters_of_a_rwlock_do_not_look() {
    let family = Family { name: "waiters_of_a_rwlock_do_not_look", build: rwlock_without_looks };
    rejected(Checker::new(family), is_unfair);
}
