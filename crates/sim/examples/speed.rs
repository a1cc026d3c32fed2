//! How fast the simulator is: events and steps a second.
use std::rc::Rc;
use std::time::Instant;

use spinpark_classics::RawLock;
use spinpark_classics::mutex_2010::{Fixed, Mutex, NoSpin, OldSpin};
use spinpark_locks::RawMutex;
use spinpark_sim::{Object, Sim, Simulation, here, machine::Machine};

fn ladder(
    name: &str,
    cpus: u32,
    threads: u32,
    lock: impl Fn() + Clone + 'static,
    unlock: impl Fn() + Clone + 'static,
) {
    let start = Instant::now();
    let mut simulation = Simulation::new(&Machine::plain(cpus)).until(20_000_000);
    let total = Rc::new(std::cell::Cell::new(0u64));
    for _ in 0..threads {
        let (lock, unlock, total) = (lock.clone(), unlock.clone(), total.clone());
        simulation.thread(move || {
            while !here::is_over() {
                lock();
                here::compute(500);
                unlock();
                here::compute(2_000);
                total.set(total.get() + 1);
            }
        });
    }
    let outcome = simulation.run().unwrap();
    let wall = start.elapsed().as_secs_f64();
    println!(
        "{name:12} {cpus:4} cpus {threads:5} threads: {:>9.0} ops/s, {:6.2} Mevents/s, {:6.2} Msteps/s, {:5.2} s wall, util {:.2}, moves/op {:.1} end {} ms switches/op {:.2} {:?}",
        total.get() as f64 / outcome.elapsed_ns as f64 * 1e9,
        outcome.counts.events as f64 / wall / 1e6,
        outcome.counts.steps as f64 / wall / 1e6,
        wall,
        outcome.utilisation(),
        outcome.counts.moves() as f64 / total.get() as f64,
        outcome.elapsed_ns / 1_000_000,
        outcome.counts.switches as f64 / total.get() as f64,
        outcome.failure,
    );
}

fn classic<L: RawLock + 'static>(name: &str, cpus: u32, threads: u32) {
    let lock = Object::new(L::new());
    let unlock = lock.clone();
    ladder(name, cpus, threads, move || lock.lock(), move || unlock.unlock());
}

fn main() {
    for (cpus, threads) in
        [(1, 1), (1, 4), (2, 2), (4, 4), (16, 16), (64, 64), (64, 256), (512, 512), (512, 4096)]
    {
        let lock = Object::new(RawMutex::<Sim>::new());
        let unlock = lock.clone();
        ladder("ours", cpus, threads, move || lock.lock(), move || unlock.unlock());
        classic::<Mutex<Sim, OldSpin>>("2.6.34", cpus, threads);
        classic::<Mutex<Sim, Fixed>>("fixed", cpus, threads);
        classic::<Mutex<Sim, NoSpin>>("nospin", cpus, threads);
    }
}
