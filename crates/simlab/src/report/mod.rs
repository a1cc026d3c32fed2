//! Saying what was simulated.

pub mod sim;
