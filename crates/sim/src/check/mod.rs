//! What a run that checks a lock adds to the machine: [`Fault`]s, memory that is gone, names of words, and the order in which
//! threads came ([`Checks`]).
//!
//! The programs that are checked, and what has to hold in them, are in `spinpark-verify`.

mod fault;
mod state;

pub use fault::{Fault, Faults, Kind, Op};
pub use state::{Checks, Field, Named, OnEvent, bury, has_priorities, place_in_order};
pub(crate) use state::{note_event, note_order};
