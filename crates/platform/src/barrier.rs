//! The asymmetric barrier: releases without an atomic read-modify-write, and the process-wide fence that ends
//! them.

use crate::Memory;

/// A release that is a plain store, and the fence that makes it safe: releasing threads save an atomic
/// operation, a thread that is about to sleep pays for the ordering.
pub trait AsymmetricBarrier: Memory {
    /// Stores 0 to `word` (Release ordering) unless `guard` holds a bit of `MASK`; returns whether it did.
    /// `likely` is what `word` holds if no other thread uses it. `false` is always a safe answer.
    ///
    /// Reading the guard and storing need not be one step: the store may wipe out what others wrote to `word`
    /// in between. It is *restartable*: the [barrier](AsymmetricBarrier::asymmetric_barrier) comes after the
    /// store, or aborts it: then the call returns `false`, or reads the guard again. So a thread sets a bit
    /// of `MASK`, writes to `word` something that must last, calls the fence, and checks whether it is still
    /// there. The store is the last access to either.
    fn release_unless<const MASK: u32>(
        guard: &Self::AtomicU32,
        word: &Self::AtomicU32,
        likely: impl FnOnce() -> u32,
    ) -> bool;

    /// Orders memory among all threads of the process, and ends their restartable steps: each has happened,
    /// and is seen by the caller, or is aborted; one that begins later sees what the caller wrote before.
    /// Costs a system call and an interrupt of every CPU on which the process runs: for threads that are
    /// about to sleep.
    fn asymmetric_barrier();
}
