//! Lock algorithms, written once, generic over the platform traits.
//!
//! | lock           | what it is                                               | bytes |
//! |----------------|----------------------------------------------------------|-------|
//! | [`RawMutex`]   | owner in the word, spins while that pays, parks in order | 16    |
//! | [`RawRwLock`]  | the same word with readers, upgradable read, downgrade   | 24    |
//! | [`RawCondvar`] | FIFO; a signal wakes its waiter, or leaves that to the   | 16    |
//! |                | release of the mutex                                     |       |
//! | [`OnceWord`]   | a state beside a mutex: code that runs once              | 4     |
//!
//! Nothing is allocated, no statics, no thread-locals, no `cfg`: all state is in the lock and on waiters'
//! stacks, but for the queues of spinners, in memory that the platform provides. Zero is unlocked. The
//! blocking locks share one slow path: read [`word`], then [`core`], then [`queue`]; which threads
//! wait awake, and which are left asleep, is up to a [`Policy`].
#![no_std]
#![deny(unsafe_code)]

mod bias;
/// For its models and simulations only.
#[doc(hidden)]
pub mod bits;
mod condvar;
mod core;
mod mutex;
mod once;
mod policy;
// Nodes are pointers: each block cites an invariant of the module.
#[allow(unsafe_code)]
mod queue;
mod rwlock;
mod spin_queue;
mod tries;
mod word;

pub use crate::bias::ReaderBias;
pub use crate::core::LockCore;
pub use condvar::{RawCondvar, WaitResult, Waiter};
pub use mutex::{Locked, RawMutex};
pub use once::{OncePoisoned, OnceState, OnceWord};
pub use policy::{
    Adaptive, Arrival, Asleep, Awake, BeforeQueueing, Choice, Choices, Chosen, EarlyWakes, Few, FirstTry,
    Many, Note, OnRelease, Only, Park, Policy, Polling, Reads, Spin, SpinStats, Spinner, Spinning, Times,
    Timing, TransferCost, Tries, Try, Turn, Usual, WhenWoken, READS_AFTER_WAIT,
};
pub use queue::{WaitNode, WaitQueue, WaiterRefs};
pub use rwlock::{Preference, RawRwLock};
pub use tries::{TryMutex, TryRwLock};
pub use word::{owner, write_hold, GLIBCS_CONTENDED, MAX_COUNT};

/// For its models, simulations and stress tests only.
#[doc(hidden)]
pub use spin_queue::{Behind, Entered, SpinQueue};
