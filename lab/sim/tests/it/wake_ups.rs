//! What a wake-up costs the waker, by where the woken CPU is.

use std::cell::Cell;
use std::rc::Rc;

use spinpark_platform::{AtomicU32 as _, Futex, Wait};
use spinpark_sim::machine::Machine;
use spinpark_sim::{AtomicU32, Object, Simulation, here};

type Sim = spinpark_sim::Sim;

/// What kernel code on CPU `waker` pays to wake a thread that kernel code put to sleep on CPU `sleeper`, ns.
fn wake(machine: &Machine, waker: u32, sleeper: u32) -> f64 {
    let mut simulation = Simulation::new(machine);
    let word = Object::new(AtomicU32::new(0));
    let took = Rc::new(Cell::new(0.0));
    let (theirs, result) = (Rc::clone(&word), took.clone());
    simulation.thread_on(sleeper..sleeper + 1, move || {
        assert_eq!(here::in_kernel(|| Sim::futex_wait(&theirs, 0, None)), Wait::Woken);
    });
    simulation.thread_on(waker..waker + 1, move || {
        here::compute(100_000);
        let start = here::now();
        here::in_kernel(|| Sim::futex_wake(&raw const **word, 1));
        result.set(here::now() - start);
    });
    let outcome = simulation.run().unwrap();
    assert_eq!((outcome.failure, outcome.counts.futex_calls), (None, 0));
    took.get()
}

#[test]
fn kernel_code_sleeps_and_wakes_without_calls() {
    let machine = Machine::plain(2);
    let (took, wanted) = (wake(&machine, 1, 0), machine.kernel.wake_ns + machine.kernel.kick_ns);
    assert!((took - wanted).abs() < 1.0, "{took} ns, not {wanted} ns");
}

#[test]
fn a_wake_up_across_sockets_costs_more_where_the_machine_says_so() {
    let mut machine = Machine::choose("westmere-ex-40").unwrap(); // 4 sockets of 10 CPUs
    (machine.kernel.spread, machine.memory.spread) = (0.0, 0.0);
    let mut with = machine.clone();
    with.kernel.kick_socket_ns = 5_000.0;
    let adds = |waker| wake(&with, waker, 0) - wake(&machine, waker, 0);
    assert!(adds(9).abs() < 1.0, "the same socket: {} ns", adds(9));
    assert!((adds(10) - 5_000.0).abs() < 1.0, "the next socket: {} ns", adds(10));
}
