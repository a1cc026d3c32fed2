//! Locks for Linux that spin while that pays, park in order and hand over to a waiter that has waited for
//! long.
//!
//! Drop-in for [`parking_lot`](https://docs.rs/parking_lot) 0.12: the types are [`lock_api`]'s, so their names
//! and methods are the same, with the features `arc_lock`, `serde` and `owning_ref`. Missing are the features
//! `send_guard` (the thread that holds a lock releases it: waiters ask whether it runs) and `deadlock_detection`
//! (`spinpark why PID` and `spinpark profile` find deadlocks). Nothing is allocated; a read-write lock is 24 bytes, a
//! mutex or condition variable 16; constructors are `const`.
//!
//! Where this crate is linked, a function of its own runs **before `main`** (in `.init_array`): it asks the kernel what
//! locks need to know (restartable sequences, CPUs) while the process has one thread.
//!
//! x86-64 is measured; aarch64 passes the tests under qemu, with releases by compare-exchange, and records no profiles.
//! On other systems and processors, and under Miri, the locks *are* `parking_lot`'s (feature `portable`, on by default),
//! and there are no profiles: what uses this crate builds and runs everywhere. Without that feature, a crate named
//! `parking_lot` that re-exports this one can take its place in all of a program's dependencies (`[patch]`);
//! `ci/parking-lot.sh` tries it with moka, prometheus and tokio, and runs `parking_lot`'s own tests.
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
//! | [`Once`]           | the thread that runs its closure       | as `Mutex`                                              |
//!
//! [`policy`] has mutexes and read-write locks with a fixed policy, for locks that are better off with one.
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

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_pointer_width = "64",
    not(miri)
)))]
mod elsewhere;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_pointer_width = "64",
    not(miri)
))]
mod linux;

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_pointer_width = "64",
    not(miri)
)))]
pub use elsewhere::*;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_pointer_width = "64",
    not(miri)
))]
pub use linux::*;

pub use lock_api;

#[cfg(feature = "arc_lock")]
pub use lock_api::{
    ArcMutexGuard, ArcReentrantMutexGuard, ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard,
    ArcRwLockWriteGuard,
};
