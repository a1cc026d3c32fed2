//! The recorder's table of locks, and mutants.

use std::cell::RefCell;
use std::rc::Rc;

use spinpark_sim::{Failure, Sim, here};
use spinpark_verify::breaks;
use spinpark_verify::mutants::slots::{Error, Table};
use spinpark_verify::sim_programs::{Checker, Family, Mortal, Program};

use super::harness::{accepted, rejected};

const KEYS: u32 = 3;
/// Slots, and records: more than any run has steps.
const ROOM: usize = 512;

/// Threads that meet keys, and retire some, in any order.
fn table(program: &mut Program, error: Error) {
    let table = Mortal::new(Table::<Sim, ROOM, ROOM>::new(error));
    program.name("table", &table);
    let told = Rc::new(RefCell::new(Vec::new()));
    for _ in 0..program.threads() {
        let (table, told, rounds) = (table.clone(), Rc::clone(&told), program.rounds());
        program.thread(move || {
            for _ in 0..rounds {
                let key = here::random(u64::from(KEYS)) as u32 + 1;
                if here::random(4) == 0 {
                    table.retire(key);
                } else {
                    let number = table.meet(key);
                    told.borrow_mut().push((key, number));
                }
            }
        });
    }
    program.after(move || table.check(&told.borrow()));
}

fn has_two(failure: &Failure) -> bool {
    matches!(failure, Failure::Check(words) if words.contains("which lives"))
}

#[test]
fn a_table_of_locks() {
    accepted(Family { name: "a_table_of_locks", build: |program| table(program, Error::None) });
}

#[test]
fn the_loser_goes_on() {
    let build = |program: &mut Program| table(program, Error::GoesOn);
    rejected(
        breaks("lock_free_table.T1"),
        Checker::new(Family { name: "the_loser_goes_on", build }),
        has_two,
    );
}

#[test]
fn any_retired_slot_is_taken() {
    let build = |program: &mut Program| table(program, Error::TakesAnyRetired);
    rejected(
        breaks("lock_free_table.T1"),
        Checker::new(Family { name: "any_retired_slot_is_taken", build }),
        has_two,
    );
}

#[test]
fn a_store_and_no_exchange() {
    let build = |program: &mut Program| table(program, Error::Overwrites);
    rejected(
        breaks("lock_free_table.T1"),
        Checker::new(Family { name: "a_store_and_no_exchange", build }),
        has_two,
    );
}
