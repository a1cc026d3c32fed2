//! Models of the recorder's table of locks, and mutants.

use std::rc::Rc;

use loom::thread;
use spinpark_platform::Ordering::{Acquire, Release};
use spinpark_verify::mutants::slots::{Error, Table as AnyTable};
use spinpark_verify::platform::{Fault, Kind, Loom};
use spinpark_verify::{Model, breaks, breaks_rule, rejected};

type Table = AnyTable<Loom, 4, 6>;

/// A step of a thread.
#[derive(Clone, Copy)]
enum Step {
    Meet(u32),
    Retire(u32),
}
use Step::{Meet, Retire};

/// Runs `before`, then what the threads do; each number that a thread was told must be the one that is found.
fn run(error: Error, before: &[Step], threads: &[&'static [Step]]) {
    let table = Rc::new(Table::new(error));
    let steps = |table: &Table, steps: &[Step]| {
        let mut told = Vec::new();
        for step in steps {
            match *step {
                Meet(key) => told.push((key, table.meet(key))),
                Retire(key) => table.retire(key),
            }
        }
        told
    };
    steps(&table, before);
    let others: Vec<_> = threads[1..]
        .iter()
        .map(|&mine| {
            let table = Rc::clone(&table);
            thread::spawn(move || steps(&table, mine))
        })
        .collect();
    let mut told = steps(&table, threads[0]);
    for other in others {
        told.extend(other.join().unwrap());
    }
    if let Err(wrong) = table.check(&told) {
        panic!("{wrong}");
    }
}

#[test]
fn two_meet_the_same() {
    Model::new().preemptions(4).check(|| run(Error::None, &[], &[&[Meet(1)], &[Meet(1)]]));
}

#[test]
fn two_meet_both() {
    Model::new().preemptions(4).check(|| run(Error::None, &[], &[&[Meet(1), Meet(2)], &[Meet(2), Meet(1)]]));
}

#[test]
fn three_meet_two() {
    Model::new().preemptions(3).check(|| run(Error::None, &[], &[&[Meet(1)], &[Meet(1)], &[Meet(2)]]));
}

/// One takes the slot again that another one, or both, see retired.
#[test]
fn two_meet_a_retired_one() {
    Model::new().preemptions(4).check(|| {
        run(Error::None, &[Meet(1), Meet(2), Retire(1)], &[&[Meet(1)], &[Meet(1), Meet(2)]]);
    });
}

#[test]
fn retired_while_it_is_met() {
    Model::new().preemptions(4).check(|| {
        run(Error::None, &[Meet(1), Meet(2)], &[&[Retire(1), Meet(1)], &[Meet(1), Meet(1)]]);
    });
    Model::new().preemptions(3).check(|| {
        run(Error::None, &[Meet(1)], &[&[Retire(1), Meet(1)], &[Retire(1), Meet(1)], &[Meet(1)]]);
    });
}

#[test]
fn the_copy_of_the_mutants() {
    Model::new().preemptions(3).check(|| {
        run(Error::Copied, &[Meet(1), Retire(1)], &[&[Meet(1), Meet(2)], &[Retire(1), Meet(1)]]);
    });
}

#[test]
fn mutant_the_loser_does_not_acquire() {
    rejected!(
        "mutant_the_loser_does_not_acquire",
        breaks_rule("of the profiler's table: a failed exchange acquires"),
        "Causality violation",
        || {
            Model::new().preemptions(3).check(|| run(Error::LosesBlindly, &[], &[&[Meet(1)], &[Meet(1)]]));
        }
    );
}

#[test]
fn mutant_the_loser_goes_on() {
    rejected!("mutant_the_loser_goes_on", breaks("lock_free_table.T1"), "which lives", || {
        Model::new().check(|| run(Error::GoesOn, &[], &[&[Meet(1)], &[Meet(1)]]));
    });
}

/// The table as it was when a lock guarded it: without one, two add a key at different places.
#[test]
fn mutant_any_retired_slot_is_taken() {
    rejected!("mutant_any_retired_slot_is_taken", breaks("lock_free_table.T1"), "which lives", || {
        Model::new().preemptions(3).check(|| {
            run(Error::TakesAnyRetired, &[Meet(2)], &[&[Meet(1)], &[Retire(2), Meet(1)]]);
        });
    });
}

#[test]
fn mutant_a_store_and_no_exchange() {
    rejected!("mutant_a_store_and_no_exchange", breaks("lock_free_table.T1"), "which lives", || {
        Model::new().check(|| run(Error::Overwrites, &[], &[&[Meet(1)], &[Meet(1)]]));
    });
}

fn same_with(fault: Fault) {
    Model::new().preemptions(3).fault(fault).check(|| run(Error::None, &[], &[&[Meet(1)], &[Meet(1)]]));
}

/// The number is there before the record.
#[test]
fn mutant_exchange_without_release() {
    rejected!(
        "mutant_exchange_without_release",
        breaks_rule("of the profiler's table: the exchange is a Release"),
        "Causality violation",
        || {
            same_with(Fault::Relaxed(|op| op.is(Kind::CompareExchange, Release)));
        }
    );
}

/// A thread that has the number does not have the record.
#[test]
fn mutant_look_without_acquire() {
    rejected!(
        "mutant_look_without_acquire",
        breaks_rule("of the profiler's table: a look-up acquires"),
        "Causality violation",
        || {
            same_with(Fault::Relaxed(|op| op.is(Kind::Load, Acquire)));
        }
    );
}
