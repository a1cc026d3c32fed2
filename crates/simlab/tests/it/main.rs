//! What is said of simulated runs, and how machine files are measured.

mod calibrate;
mod replay;
mod sample;
mod sim;
