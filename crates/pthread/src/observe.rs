//! `spinpark_recorder`, not pthread's: how a profiler learns what these locks do.

use core::ffi::c_int;

use spinpark_linux::Observer;

use crate::mode;

/// Installs an observer of slow paths, or none; returns 1 if the locks of this process are ours, else 0.
///
/// The observer gets the number of a `spinpark_platform::Event`.
///
/// # Safety
///
/// The observer stays, uses no lock, and returns.
pub unsafe fn observe(observer: Option<Observer>) -> c_int {
    spinpark_linux::observe(observer);
    c_int::from(mode::ours())
}
