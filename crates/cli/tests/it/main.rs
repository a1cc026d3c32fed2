//! The command as its users see it. These tests assert behaviour, never times.
//!
//! Most use a stand-in for the drop-in that passes every lock to glibc and keeps the reporting protocol, so
//! that they test the command alone. `profile` and `top` have the real recorder: what they show is what it
//! wrote.

mod attach;
mod attach_truth;
mod bad_input;
mod compare;
mod core;
mod demo;
mod dormant;
mod export;
mod fixtures;
mod gate;
mod interrupt;
mod java;
mod libraries;
mod merge;
mod node;
mod policy;
mod profile;
mod profile_stuck;
mod python;
mod run;
mod shown;
mod signals;
mod top;
mod tune;
mod whatif;
mod why;
mod width;
mod wrapper;
