//! Designs of others, as their documents describe them, generic over the platform seam: to be measured, modelled and
//! learned from, not to be used.
//!
//! | design            | what it is                                                                             |
//! |-------------------|----------------------------------------------------------------------------------------|
//! | [`Mutex2003`]     | glibc's futex mutex of 2003, of three states                                           |
//! | [`Condvar2003`]   | glibc's condition variable of 2003, with three ways to signal (document 003)           |
#![no_std]

mod condvar_2003;
mod mutex_2003;

pub use condvar_2003::{Condvar2003, Orig, Requeue, Signalling, WaitResult, WakeByOp};
pub use mutex_2003::Mutex2003;
