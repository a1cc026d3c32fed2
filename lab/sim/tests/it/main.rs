//! The simulator: its memory, kernel, machines and workloads.

mod awake;
mod by_hand;
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
mod seeds;
mod times;
mod wake_ups;
mod writers_first;
