//! The platform: what a lock needs from a machine, and nothing else.
//!
//! Lock algorithms are written once, generic over a zero-sized [`Platform`], and run on several machines:
//! Linux, a loom model (every interleaving under weak memory) and a simulated many-core machine. [`Platform`]
//! is the sum of small traits, each a *contract*; one conformance test
//! (`lab/verify/tests/it/platform`) runs against every implementation. Traits, and plain data
//! ([`Tuning`]): no dependency, no `unsafe`. What threads learn about locks is kept for each thread by the
//! platform, too, but is a matter of the policies: `Adaptive` in `locks`.
//!
//! | trait | file | contract | without it |
//! |---|---|---|---|
//! | [`Memory`] | `memory.rs` | atomics, cells, the full fence | no lock |
//! | [`Layout`] | `memory.rs` | padding in a lock for an interface's fields | empty |
//! | [`Clocks`] | `clocks.rs` | the time | no deadline |
//! | [`Futex`] | `futex.rs` | sleeping on words, waking, moving sleepers | no lock |
//! | [`AsymmetricBarrier`] | `barrier.rs` | releases by a plain store; the process-wide fence | compare-exchanges |
//! | [`Threads`] | `threads.rs` | token, fork generation, priority | no lock; priority 0 |
//! | [`Owners`] | `threads.rs` | whether a lock's owner runs | "unknown": spins have a time budget |
//! | [`SpinPolicy`] | `spin_policy.rs` | polling, the number of CPUs | one CPU |
//! | [`ReadHolds`] | `readers.rs` | the read locks that a thread holds | "perhaps": starved writers wait longer |
//! | [`ReaderSlots`] | `readers.rs` | readers that write no shared line | readers count in the lock |
//! | [`Events`] | `events.rs` | what slow paths did, for counters | not reported |
//!
//! Code that is generic over `P: Platform` calls all of them as `P::…`; code that names a machine imports the
//! small trait whose method it calls.
//!
//! Units: time is in nanoseconds, as `u64`; an absolute point in time is a [`Deadline`].
#![no_std]
#![forbid(unsafe_code)]

mod barrier;
mod clocks;
mod events;
mod futex;
mod memory;
mod native;
mod readers;
mod spin_policy;
mod threads;
mod tuning;
mod wake_op;

pub use barrier::AsymmetricBarrier;
pub use clocks::{as_timespec, Clock, Clocks, Deadline, NS_PER_MS, NS_PER_SEC, NS_PER_US};
pub use core::sync::atomic::Ordering;
pub use events::{Event, Events};
pub use futex::{Futex, Wait};
pub use memory::{AtomicPtr, AtomicU32, Cell, Layout, Memory};
pub use readers::{Bias, ClosingCost, ReadHolds, Reader, ReaderSlots, SlotLeft};
pub use spin_policy::{SpinLine, SpinPolicy, SpinnerSlots};
pub use threads::{OnCpu, Owners, Threads, HIGHEST_PRIORITY};
pub use tuning::{SpinLocks, Tuning};
pub use wake_op::{Comparison, Operand, WakeOp, WordOp};

/// A machine that locks run on. All methods are static: a lock carries no platform state.
pub trait Platform:
    Memory
    + Layout
    + Clocks
    + Futex
    + AsymmetricBarrier
    + Threads
    + Owners
    + SpinPolicy
    + ReadHolds
    + ReaderSlots
    + Events
{
    /// The constants of this machine.
    const TUNING: Tuning;

    /// The lock at `lock` holds what none of its own steps writes: other code has written to it, or it was
    /// freed. Ends the process: otherwise two threads could hold the lock, or invalid pointers be followed.
    fn overwritten(lock: usize) -> ! {
        panic!("the lock at {lock:#x} was overwritten by other code")
    }
}
