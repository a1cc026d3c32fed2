//! The simulator as a checker of lock protocols: random programs.
//!
//! A *program* is a few threads that use a lock in every way it has. Everything in a run of it comes from one
//! number, the seed: how many threads, on which machine, with which constants, what each thread does, and how
//! the machine disturbs them ([`Chaos`](spinpark_sim::Chaos)). Ten thousand seeds are ten thousand different
//! runs. A run fails if
//!
//! - two threads are inside where one has to be alone ([`Guard`]),
//! - threads sleep, and nothing is left to happen: a lost wake-up, or a deadlock,
//! - it takes far more steps than it should: a livelock,
//! - a thread accesses memory that was given back: the lock's ([`Mortal`]), or a node on another thread's
//!   stack,
//! - a thread is passed that must not be: after it requested the lock, or in a lock that promises order
//!   ([`Line`]),
//! - a flag is left behind in an unused lock, a signal is not consumed, a thread panics.
//!
//! The memory is x86's (`spinpark_sim`'s `memory::stores`): other wrong memory orders are for the loom models
//! to find. Here there are more threads, longer programs, preemption anywhere, time, and CPUs that are too
//! few.
//!
//! [`families()`] are the programs. [`Checker`] runs them; [`Failing`] shows one that failed: its last steps,
//! and the command that runs it again. [`Fault`](spinpark_sim::check::Fault)s in the machine show that the
//! checker would find an error.

mod case;
mod checker;
mod decode;
mod families;
mod guard;
mod line;
mod memory;
mod program;
mod replay;

pub use case::Limits;
pub use checker::{Checker, Failing, Family, Swept, Verdict};
pub use families::{
    Monitor, dependent_with, families, first_with, mutex_without_probes, order_of, patience_with,
    rwlock_without_probes, tokens_of_2003, tries_with,
};
pub use guard::{Guard, Hold};
pub use line::Line;
pub use memory::Mortal;
pub use program::Program;
pub use replay::seeds;
