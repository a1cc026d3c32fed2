//! Workloads whose lock is the kernel's: what the four documents ran, with the work around the lock as a
//! model.
//!
//! The lock is a [`Mode::Kernel`](super::Mode::Kernel) one. Everything else of a system call is computation
//! and a few cache lines that all CPUs write; each constant of it says where it comes from.

mod creat;
mod fserver;
mod select;
mod shared;

use super::Workload;

/// All of them.
pub(super) const WORKLOADS: &[Workload] = &[creat::CREAT, fserver::FSERVER, select::SELECT];
