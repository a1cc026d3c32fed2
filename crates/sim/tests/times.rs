//! Where the time of threads goes.

use std::rc::Rc;

use spinpark_classics::RawLock;
use spinpark_classics::tas::{TasLock, TestAndTestAndSet};
use spinpark_sim::{Sim, Simulation, here, machine::Machine};

/// Spinners that are preempted do not spin meanwhile.
#[test]
fn nobody_spins_without_a_cpu() {
    let lock = Rc::new(TasLock::<Sim, TestAndTestAndSet>::new());
    let mut simulation = Simulation::new(&Machine::plain(2));
    for _ in 0..6 {
        let lock = Rc::clone(&lock);
        simulation.thread(move || {
            for _ in 0..20 {
                lock.lock();
                here::compute(2_000_000);
                lock.unlock();
            }
        });
    }
    let outcome = simulation.run().unwrap();
    assert_eq!(outcome.failure, None);
    assert!(outcome.threads.iter().any(|times| times.spinning_ns > 0 && times.runnable_ns > 0));
    for times in &outcome.threads {
        assert!(times.spinning_ns <= times.on_cpu_ns, "{times:?}");
        let all = times.on_cpu_ns + times.runnable_ns + times.asleep_ns;
        assert!(all <= outcome.elapsed_ns, "{times:?}");
    }
}
