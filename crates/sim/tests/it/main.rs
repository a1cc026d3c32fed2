//! The simulator: its memory, kernel, machines and workloads, and what is said of its runs.

mod awake;
mod by_hand;
mod calibrate;
mod costs;
mod deterministic;
mod documents;
mod figures;
mod follow;
mod idle;
mod kernel;
mod kernel_workloads;
mod litmus;
mod machines;
mod nested;
mod perfetto;
mod replay;
mod reports;
mod sample;
mod seeds;
mod times;
mod wake_ups;
mod writers_first;
