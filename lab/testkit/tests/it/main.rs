//! The drop-in and the recorder on programs. Recordings whose times are checked are in
//! `tests/profile_truth.rs`, a process of its own: it shares its CPUs with no other test.

mod abi;
mod allocators;
mod clocks;
mod detectors;
mod posix;
mod profile_corpus;
mod profile_cost;
mod profile_forks;
mod profile_holders;
mod profile_library;
mod profile_life;
mod profile_posix;
mod profile_programs;
mod profile_safe;
mod profile_stale;
mod programs;
mod waits;
