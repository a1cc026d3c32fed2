//! The machines that the contract is checked on. A new one: a type here, and a line in `main.rs`.

use std::marker::PhantomData;
use std::time::Duration;

use spinpark_linux::Linux;
use spinpark_locks::Adaptive;
use spinpark_platform::{Memory, Platform};
use spinpark_sim::machine::Machine as SimulatedMachine;
use spinpark_sim::{Chaos, Order, Sim, Simulation, ThreadId, here};
use spinpark_verify::Model;
use spinpark_verify::platform::{Loom, advance};

/// How to run threads on a platform.
pub(crate) trait Machine: 'static {
    type P: Platform + Adaptive;
    type Handle;
    /// Runs `test`, once or in every order.
    fn run(test: fn());
    fn spawn(body: impl FnOnce() + Send + 'static) -> Self::Handle;
    fn join(handle: Self::Handle);
    fn yield_now();
    /// Lets at least `ns` pass.
    fn pass(ns: u64);
}

pub(crate) struct OnLinux;

impl Machine for OnLinux {
    type P = Linux;
    type Handle = std::thread::JoinHandle<()>;
    fn run(test: fn()) {
        for _ in 0..20 {
            test();
        }
    }
    fn spawn(body: impl FnOnce() + Send + 'static) -> Self::Handle {
        std::thread::spawn(body)
    }
    fn join(handle: Self::Handle) {
        handle.join().unwrap();
    }
    fn yield_now() {
        std::thread::yield_now();
    }
    fn pass(ns: u64) {
        std::thread::sleep(Duration::from_nanos(ns));
    }
}

pub(crate) struct OnLoom;

impl Machine for OnLoom {
    type P = Loom;
    type Handle = loom::thread::JoinHandle<()>;
    fn run(test: fn()) {
        Model::new().moving_clock().check(test);
    }
    fn spawn(body: impl FnOnce() + Send + 'static) -> Self::Handle {
        loom::thread::spawn(body)
    }
    fn join(handle: Self::Handle) {
        handle.join().unwrap();
    }
    fn yield_now() {
        loom::thread::yield_now();
    }
    fn pass(ns: u64) {
        advance(ns);
    }
}

/// Loom without restartable steps: what a release is where the kernel or the user does not have them.
pub(crate) struct OnLoomWithoutSteps;

impl Machine for OnLoomWithoutSteps {
    type P = Loom;
    type Handle = loom::thread::JoinHandle<()>;
    fn run(test: fn()) {
        Model::new().moving_clock().without_steps().check(test);
    }
    fn spawn(body: impl FnOnce() + Send + 'static) -> Self::Handle {
        OnLoom::spawn(body)
    }
    fn join(handle: Self::Handle) {
        OnLoom::join(handle);
    }
    fn yield_now() {
        OnLoom::yield_now();
    }
    fn pass(ns: u64) {
        OnLoom::pass(ns);
    }
}

/// The simulated machine: on one CPU and on several, in order of time and of rank, undisturbed and with all
/// that may go wrong.
pub(crate) struct OnSim;

/// The same without restartable steps.
pub(crate) struct OnSimWithoutSteps;

fn simulate(test: fn(), set_up: fn(Simulation) -> Simulation) {
    for seed in 0..60 {
        let trouble = if seed % 3 == 2 { 0.1 } else { 0.0 };
        let chaos = Chaos {
            order: if seed % 2 == 1 { Order::Rank } else { Order::Time },
            steps_between_changes: 8,
            delay: trouble,
            delay_ns: 500.0,
            preempt: trouble,
            spurious: trouble,
            interrupt: trouble,
            late: trouble,
            wrong_oracle: trouble,
            abort: trouble,
            weak: trouble,
            buffered: trouble,
        };
        let machine = &SimulatedMachine::plain([1, 2, 4, 64][seed as usize % 4]);
        let mut simulation = set_up(Simulation::new(machine).seed(seed).chaos(chaos).most_steps(1_000_000));
        simulation.thread(test);
        let outcome = simulation.run().expect("there is memory for a few stacks");
        assert_eq!(outcome.failure, None, "seed {seed}");
    }
}

impl Machine for OnSim {
    type P = Sim;
    type Handle = ThreadId;
    fn run(test: fn()) {
        simulate(test, |simulation| simulation);
    }
    fn spawn(body: impl FnOnce() + Send + 'static) -> Self::Handle {
        here::spawn(body)
    }
    fn join(handle: Self::Handle) {
        here::join(handle);
    }
    fn yield_now() {
        here::yield_now();
    }
    fn pass(ns: u64) {
        here::sleep(ns);
    }
}

impl Machine for OnSimWithoutSteps {
    type P = Sim;
    type Handle = ThreadId;
    fn run(test: fn()) {
        simulate(test, Simulation::without_steps);
    }
    fn spawn(body: impl FnOnce() + Send + 'static) -> Self::Handle {
        OnSim::spawn(body)
    }
    fn join(handle: Self::Handle) {
        OnSim::join(handle);
    }
    fn yield_now() {
        OnSim::yield_now();
    }
    fn pass(ns: u64) {
        OnSim::pass(ns);
    }
}

/// The contract of a machine, item by item: each is a test of its own. The items are in the files beside this
/// one.
pub(crate) struct Contract<M>(PhantomData<M>);

/// A word of a machine.
pub(crate) type Word<M> = <<M as Machine>::P as Memory>::AtomicU32;
