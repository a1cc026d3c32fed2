//! Locks for Linux that spin while that pays, park in order and hand over to a waiter that has waited for
//! long.
//!
//! Drop-in for [`parking_lot`](https://docs.rs/parking_lot) 0.12: the types are [`lock_api`]'s, so their names
//! and methods are the same, with the features `arc_lock`, `serde` and `owning_ref`. Missing are `Once` (std has
//! one), and the features `send_guard` (the thread that holds a lock releases it) and `deadlock_detection`
//! (`spinpark profile` finds deadlocks). Nothing is allocated; a read-write lock is 24 bytes, a mutex or
//! condition variable 16; constructors are `const`.
//!
//! ```
//! use spinpark::{Condvar, Mutex};
//!
//! static QUEUE: Mutex<Vec<u32>> = Mutex::new(Vec::new());
//! static FILLED: Condvar = Condvar::new();
//!
//! std::thread::scope(|scope| {
//!     scope.spawn(|| {
//!         let mut queue = QUEUE.lock();
//!         FILLED.wait_while(&mut queue, |queue| queue.is_empty());
//!         assert_eq!(queue.pop(), Some(7));
//!     });
//!     QUEUE.lock().push(7);
//!     FILLED.notify_one();
//! });
//! ```
//!
//! # Which lock
//!
//! | type               | holds                                  | waits by                                                |
//! |--------------------|----------------------------------------|---------------------------------------------------------|
//! | [`Mutex`]          | one thread                             | spinning for a bounded time while a holder runs, then   |
//! |                    |                                        | parking                                                 |
//! | [`FairMutex`]      | one thread                             | as `Mutex`; a release hands it to the oldest waiter     |
//! | [`ReentrantMutex`] | one thread, several times              | as `Mutex`                                              |
//! | [`RwLock`]         | readers, or one writer, or readers and | as `Mutex`; readers may recurse while a writer waits    |
//! |                    | one upgradable reader                  |                                                         |
//! | [`Condvar`]        | –                                      | parking, FIFO; a notification under the lock may leave  |
//! |                    |                                        | the wake-up to the release of the mutex                 |
//!
//! # Guarantees
//!
//! *Ordering*: acquiring has Acquire semantics, releasing Release. *Fairness*: a running thread may take a
//! lock before a sleeping one, but the next release keeps the lock for a waiter that has waited for 0.5 ms,
//! and found the lock taken when it was woken. *Panics*: no poisoning, as in `parking_lot`. *Fork*: locks
//! work in a forked child; those that other threads held stay held, as with any lock.
//!
//! # Profiles
//!
//! [`profile`] records which lock the program's threads wait for, where, and behind which holder. It costs
//! nothing until it is started.
//!
//! # Minimum Rust version
//!
//! 1.82, for constants as operands of inline assembly.

mod condvar;
mod deadline;
mod fair_mutex;
mod mutex;
pub mod profile;
mod raw_mutex;
mod raw_rwlock;
mod remutex;
mod rwlock;
mod slow;
mod slow_rwlock;

pub use lock_api;

pub use condvar::{Condvar, WaitTimeoutResult};
pub use fair_mutex::{const_fair_mutex, FairMutex, FairMutexGuard, MappedFairMutexGuard, RawFairMutex};
pub use mutex::{const_mutex, MappedMutexGuard, Mutex, MutexGuard};
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

#[cfg(feature = "arc_lock")]
pub use lock_api::{
    ArcMutexGuard, ArcReentrantMutexGuard, ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard,
    ArcRwLockWriteGuard,
};

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
