//! Saying what was found about locks.

pub mod grid;
pub mod locks;
