//! What a wake-up costs the waker, by where the woken CPU is.

use std::cell::Cell;
use std::rc::Rc;

use spinpark_platform::{AtomicU32 as _, Futex, Wait};
use spinpark_sim::machine::Machine;
use spinpark_sim::{AtomicU32, Simulation, here};

type Sim = spinpark_sim::Sim;

/// What a waker on CPU `from` pays for a sleeper on CPU 0 of 4 sockets of 10, ns.
fn wake_from(from: u32, kick_socket_ns: f64) -> f64 {
    let mut machine = Machine::choose("westmere-ex-40").unwrap();
    machine.kernel.spread = 0.0;
    machine.memory.spread = 0.0;
    machine.kernel.kick_socket_ns = kick_socket_ns;
    let mut simulation = Simulation::new(&machine);
    let word = Rc::new(AtomicU32::new(0));
    let took = Rc::new(Cell::new(0.0));
    let (sleeper, result) = (Rc::clone(&word), took.clone());
    simulation.thread_on(0..1, move || {
        assert_eq!(here::in_kernel(|| Sim::futex_wait(&sleeper, 0, None)), Wait::Woken);
    });
    simulation.thread_on(from..from + 1, move || {
        here::compute(100_000);
        let start = here::now();
        here::in_kernel(|| Sim::futex_wake(&raw const *word, 1));
        result.set(here::now() - start);
    });
    assert_eq!(simulation.run().unwrap().failure, None);
    took.get()
}

#[test]
fn a_wake_up_across_sockets_costs_more_where_the_machine_says_so() {
    let adds = |from| wake_from(from, 5_000.0) - wake_from(from, 0.0);
    assert!(adds(9).abs() < 1.0, "the same socket: {} ns", adds(9));
    assert!((adds(10) - 5_000.0).abs() < 1.0, "the next socket: {} ns", adds(10));
}
