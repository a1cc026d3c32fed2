//! A simulated many-core NUMA machine on which the very same lock sources run.
//!
//! Locks are generic over a [`Platform`](spinpark_platform::Platform); here it is [`Sim`]: its words cost
//! what the machine's cache lines cost, its futexes have a scheduler, and its time is virtual. One seed gives
//! one run, whatever it was compiled with and wherever it runs.
//!
//! ```
//! use std::rc::Rc;
//! use spinpark_locks::RawMutex;
//! use spinpark_sim::{Object, Sim, Simulation, here, machine::Machine};
//!
//! let lock = Object::new(RawMutex::<Sim>::new());
//! let mut simulation = Simulation::new(&Machine::plain(4));
//! for _ in 0..8 {
//!     let lock = Rc::clone(&lock);
//!     simulation.thread(move || {
//!         for _ in 0..100 {
//!             lock.lock();
//!             here::compute(200);
//!             lock.unlock();
//!             here::compute(1_000);
//!         }
//!     });
//! }
//! let outcome = simulation.run().unwrap();
//! assert_eq!(outcome.failure, None);
//! assert!(outcome.elapsed_ns >= 8 * 100 * 200);
//! ```

mod access;
pub mod check;
mod engine;
mod failure;
pub mod here;
pub mod locks;
pub mod machine;
mod outcome;
pub mod parallel;
pub mod perfetto;
mod platform;
mod simulation;
pub mod table;
mod time;
pub mod workload;
mod world;

pub use engine::stop;
pub use failure::Failure;
pub use outcome::{Counts, EVENTS, SimulationResult, Slice, ThreadTimes};
pub use platform::{AtomicPtr, AtomicU32, Cell, LinuxTuning, Sim, Tuned};
pub use simulation::Simulation;
pub use world::chaos::{Chaos, Order};
pub use world::memory::object::Object;
pub use world::{Record, ThreadId};
