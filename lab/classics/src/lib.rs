//! The locks of the four documents as they were: to be run, measured and broken, not to be used.
//!
//! | lock                          | document | what it is                                                            |
//! |-------------------------------|----------|-----------------------------------------------------------------------|
//! | [`mutex_2010::Mutex`]         | 001      | the kernel's mutex, before and after the change of its spinning rule  |
//! | [`rwsem_2013::Rwsem`]         | 002      | the kernel's rwsem, each patch of the series a switch                 |
//! | [`mcs::McsLock`]              | 002      | the queue of spinners, before and after patches 6 and 7               |
//! | [`osq::Osq`]                  | –        | what the kernel put in its place: a spinner may leave the queue       |
//! | [`tas::TasLock`]              | 004      | a spin lock, with and without back-off                                |
//! | [`mcs_mutex::McsMutex`]       | –        | a queue lock, the yardstick on many CPUs                              |
//! | [`TicketLock`]                | –        | a fair spin lock, to compare with                                     |
//! | [`SpinLock`]                  | 001, 002 | what those two keep their waiters under, and 004's mutex              |
//! | [`mtx_2006::Mtx`]             | 004      | FreeBSD's mutex, each ingredient of its profiling a switch            |
//! | [`mutex_2003::Mutex`]         | 003      | glibc's futex mutex of three states                                   |
//! | [`condvar_2003::Condvar`]     | 003      | glibc's condition variable, with each of three ways to signal         |
//!
//! Each has its names, one a variant, in [`designs`]: benchmark, simulator and command ask there.
//!
//! Written from descriptions of the algorithms, over the same [`Platform`](spinpark_platform::Platform) as
//! our own locks, so that benchmarks, models and simulations take either. Nothing is allocated, no statics,
//! no thread-locals, no `cfg`.
//!
//! # What differs from a kernel
//!
//! - A spinner can be preempted, and so can the holder of a spin lock. So a thread that has polled a spin
//!   lock (a lock's own `wait_lock`, a test-and-set lock) for 100 µs sleeps for 50, as often as it takes,
//!   with back-off and without (`wait/poll_budget.rs`). With short sections on running CPUs that is rare; on a
//!   test-and-set lock that is never free it happens, and acts as a back-off. A waiter in an MCS queue sleeps
//!   only if its predecessor does not run either, or has given no sign for a time slice. Linux' spin locks
//!   were ticket locks ([`Order`]). These are that only where a platform promises that no thread is preempted
//!   around one ([`SpinLocks::Kept`](spinpark_platform::SpinLocks)): in a simulated kernel, where no thread
//!   sleeps while it polls either.
//! - "Does the owner run?" costs a system call, not a load. It is asked at a distance (`wait/oracle.rs`).
//! - There are no real-time tasks, and on Linux a thread cannot ask whether the scheduler wants its CPU
//!   ([`need_resched`](spinpark_platform::SpinPolicy::need_resched) is `false`).
//! - A release may touch its lock after another thread has taken it, as it did there: before a classic lock
//!   is freed, all its users must have finished. Our own locks do not ask for that.
#![no_std]
#![deny(unsafe_code)]

#[allow(unsafe_code)] // Cells that the internal lock protects.
pub mod condvar_2003;
mod delay;
pub mod designs;
#[allow(unsafe_code)] // Nodes are pointers.
pub mod mcs;
#[allow(unsafe_code)] // Nodes are pointers.
pub mod mcs_mutex;
#[allow(unsafe_code)] // Nodes are pointers.
pub mod mtx_2006;
pub mod mutex_2003;
#[allow(unsafe_code)] // Nodes are pointers.
pub mod mutex_2010;
pub mod osq;
#[allow(unsafe_code)] // Nodes are pointers.
pub mod rwsem_2013;
pub mod tas;
mod traits;
#[allow(unsafe_code)] // Nodes are pointers.
mod wait;

pub use traits::{RawLock, RawRwLock};
pub use wait::{Barging, Order, SpinLock, TicketLock, Tickets};
