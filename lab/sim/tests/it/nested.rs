//! Locks within locks: a thread that left waiters of one lock asleep goes to sleep at another one, which one
//! of those may hold.

use std::cell::Cell;
use std::rc::Rc;

use spinpark_locks::RawMutex;
use spinpark_sim::check::{Applied, Checks, Fault, Faults, breaks};
use spinpark_sim::machine::Machine;
use spinpark_sim::{Object, Sim, Simulation, here};

const THREADS: u64 = 4;
const ROUNDS: u64 = 20_000;
const RECORDS: u64 = 64;
const STEP_NS: u64 = 20;
const STEPS_PER_YIELD: u64 = 4;
/// 2,500 to 2,800; 600 to 750 where no thread rouses another, and all sleep until timers end.
const LEAST: f64 = 1_500.0;

/// Rounds in a millisecond, of threads that lock one of many records, and a lock for all within that, and may
/// yield their CPUs between any two steps.
fn rounds_in_a_ms(seed: u64, fault: Fault) -> f64 {
    let machine = Machine::plain(2);
    let mut faults = Faults::default();
    faults.add(fault);
    let mut simulation = Simulation::new(&machine).seed(seed).checks(Checks::new(faults));
    let lock = || Object::new(RawMutex::<Sim>::new());
    let records: Rc<Vec<_>> = Rc::new((0..RECORDS).map(|_| lock()).collect());
    let all = lock();
    let end = Rc::new(Cell::new(0.0));
    for _ in 0..THREADS {
        let (records, all, end) = (Rc::clone(&records), Rc::clone(&all), Rc::clone(&end));
        simulation.thread(move || {
            let step = || {
                here::compute(STEP_NS);
                if here::random(STEPS_PER_YIELD) == 0 {
                    here::yield_now();
                }
            };
            for _ in 0..ROUNDS {
                let record = &records[here::random(RECORDS) as usize];
                record.lock();
                step();
                all.lock();
                step();
                all.unlock();
                step();
                record.unlock();
            }
            end.set(here::now());
        });
    }
    let outcome = simulation.run().expect("it can be run");
    assert_eq!(outcome.failure, None);
    (THREADS * ROUNDS) as f64 / (end.get() / 1e6)
}

#[test]
fn a_thread_that_sleeps_elsewhere_rouses_the_waiter_that_it_has_left() {
    for seed in 0..4 {
        let rounds = rounds_in_a_ms(seed, Fault::None);
        println!("seed {seed}: {rounds:.0} rounds a millisecond");
        assert!(rounds > LEAST, "seed {seed}: {rounds:.0} rounds a millisecond, not {LEAST}");
    }
}

/// A mutant: the thread goes to sleep, and the waiter that it has left asleep sleeps on until its timer ends.
#[test]
fn a_thread_that_sleeps_elsewhere_rouses_no_waiter() {
    let mutant = breaks("early.E2");
    for seed in 0..4 {
        let rounds = rounds_in_a_ms(seed, Fault::NoSleepNotes);
        let applied = Applied::in_run();
        println!("seed {seed}: {rounds:.0} rounds a millisecond; {applied}");
        assert!(applied.is_complete(), "the mutant, which breaks {mutant}, was not applied");
        assert!(rounds < LEAST, "the mutant, which breaks {mutant}, was accepted: {rounds:.0} rounds");
    }
}
