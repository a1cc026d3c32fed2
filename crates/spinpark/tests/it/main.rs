//! The public API. Tests that change their whole process are `tests/profile.rs` and `tests/stress.rs`.

mod as_parking_lot;
mod pins;
mod policy;
mod rwlock_policy;
mod size;
mod unload;
