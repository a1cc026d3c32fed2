//! Forks: without generations, a child takes the waiters of its parent for its own.

use spinpark_sim::check::Fault;
use spinpark_verify::breaks;
use spinpark_verify::sim_programs::Checker;

use super::harness::{family, never_ends, rejected};

#[test]
fn a_child_hands_its_mutex_to_a_thread_of_the_parent() {
    rejected(
        breaks("queue.Q5"),
        Checker::new(family("mutex_forked")).fault(Fault::SameGeneration),
        never_ends,
    );
}

#[test]
fn a_child_hands_its_read_write_lock_to_a_thread_of_the_parent() {
    rejected(
        breaks("queue.Q5"),
        Checker::new(family("rwlock_forked")).fault(Fault::SameGeneration),
        never_ends,
    );
}

#[test]
fn a_child_hands_its_condition_variables_mutex_to_a_thread_of_the_parent() {
    rejected(
        breaks("queue.Q5"),
        Checker::new(family("condvar_forked")).fault(Fault::SameGeneration),
        never_ends,
    );
}
