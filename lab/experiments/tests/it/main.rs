//! What is said of the simulator's runs, and recorded programs as workloads.

mod calibrate;
mod replay;
mod reports;
mod sample;
