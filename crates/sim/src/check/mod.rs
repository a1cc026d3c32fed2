//! What a run that checks a lock adds to the machine: [`Fault`]s, memory that is gone, names of words, and
//! the order in which threads came ([`Checks`]).
//!
//! The programs that are checked, and what has to hold in them, are in `spinpark-verify`. What they call as
//! they run is in [`here`](crate::here).

mod fault;
mod state;

pub use fault::{Fault, Faults, Kind, Op};
pub use state::{Checks, Field, Named, OnEvent};
