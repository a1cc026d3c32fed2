//! Copies of functions with one line wrong, where a fault in the machine cannot express the error.
//!
//! Each copy takes its error as a value and is right without one; the models run it both ways, so that what
//! they reject is the error and not the copy.

pub mod barging;
pub mod condvar_2003;
pub mod dormant;
pub mod mcs_mutex;
pub mod monitor;
pub mod osq;
pub mod queue_lock;
pub mod slots;
pub mod spin_queue;
