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
mod chaos;
pub mod check;
mod engine;
#[cfg(feature = "experiments")]
pub mod experiments;
mod failure;
pub mod here;
mod kernel;
pub mod locks;
pub mod machine;
mod memory;
mod object;
pub mod perfetto;
mod platform;
mod report;
mod simulation;
mod slice;
pub mod sweep;
pub mod table;
mod time;
mod trace;
pub mod workload;
mod world;

pub use chaos::{Chaos, Order};
pub use engine::stop::stop;
pub use failure::Failure;
pub use object::Object;
pub use platform::{AtomicPtr, AtomicU32, Cell, LinuxTuning, Sim, Tuned};
pub use report::{Counts, EVENTS, Outcome, ThreadTimes};
pub use simulation::Simulation;
pub use slice::Slice;
pub use world::{Record, ThreadId};
