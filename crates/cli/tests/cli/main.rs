//! The command as its users see it. These tests assert behaviour, never times.
//!
//! They use a stand-in for the drop-in that passes every lock to glibc and keeps the reporting protocol, so that they
//! test the command alone.

mod bad_input;
mod bench;
mod calibrate;
mod compare;
mod condvar;
mod demo;
mod documents;
mod fixtures;
mod interrupt;
mod mail;
mod run;
mod select;
mod shown;
mod sim;
mod traces;
mod workloads;
