//! The public API. What changes its whole process is in `tests/profile.rs` and `tests/stress.rs`.

mod pins;
mod rwlock_policy;
mod size;
mod unload;
