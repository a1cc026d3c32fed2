//! The locks on 64-bit Linux.

mod condvar;
mod deadline;
mod fair_mutex;
mod mutex;
mod once;
pub mod policy;
pub mod profile;
mod raw_mutex;
mod raw_rwlock;
mod remutex;
mod rwlock;
mod slow;
mod slow_rwlock;

pub use condvar::{Condvar, WaitTimeoutResult};
pub use fair_mutex::{const_fair_mutex, FairMutex, FairMutexGuard, MappedFairMutexGuard, RawFairMutex};
pub use mutex::{const_mutex, MappedMutexGuard, Mutex, MutexGuard};
pub use once::{Once, OnceState};
pub use raw_mutex::RawMutex;
pub use raw_rwlock::RawRwLock;
pub use remutex::{
    const_reentrant_mutex, MappedReentrantMutexGuard, RawThreadId, ReentrantMutex, ReentrantMutexGuard,
};
pub use rwlock::{
    const_rwlock, MappedRwLockReadGuard, MappedRwLockWriteGuard, RwLock, RwLockReadGuard,
    RwLockUpgradableReadGuard, RwLockWriteGuard,
};
pub use spinpark_linux::before_filter;

use core::sync::atomic::AtomicU32;
use spinpark_linux::{Cell, Linux};
use spinpark_locks::WaitQueue;

/// Keeps a library that these locks are in loaded, and starts restartable sequences while the process has one
/// thread: see `permanent` in `spinpark-linux`.
#[used]
#[link_section = ".init_array"]
static INITIALISE: extern "C" fn() = spinpark_linux::initialise;

/// The initial state of every lock's queue, as a constant.
const fn empty_queue() -> WaitQueue<Linux> {
    WaitQueue::from_parts(AtomicU32::new(0), AtomicU32::new(0), Cell::new(core::ptr::null()), (), ())
}
