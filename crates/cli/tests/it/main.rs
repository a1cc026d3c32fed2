//! The command as its users see it. These tests assert behaviour, never times.
//!
//! Most use a stand-in for the drop-in that passes every lock to glibc and keeps the reporting protocol, so
//! that they test the command alone. `profile`, `top` and `bench locks --preset profiler` have the real
//! recorder: what they show is what it wrote.

mod bad_input;
mod bench;
mod calibrate;
mod compare;
mod condvar;
mod demo;
mod documents;
mod fixtures;
mod grid;
mod interrupt;
mod libraries;
mod mail;
mod profile;
mod profile_stuck;
mod run;
mod select;
mod shown;
mod signals;
mod sim;
mod sim_replay;
mod sim_shards;
mod top;
mod traces;
mod width;
mod workloads;
mod wrapper;
