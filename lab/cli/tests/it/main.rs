//! The laboratory's command as its users see it. These tests assert behaviour, never times.
//!
//! Most use a stand-in for the drop-in that passes every lock to glibc and keeps the reporting protocol, so
//! that they test the command alone. `bench locks --preset profiler` has the real recorder.

mod bench;
mod calibrate;
mod command_line;
mod condvar;
mod delays;
mod documents;
mod fixtures;
mod grid;
mod mail;

mod select;
mod shown;
mod sim;
mod sim_replay;
mod sim_shards;
mod traces;
mod width;
mod workloads;
