//! A ticket lock: first come, first served, by a counter of arrivals and a counter of releases.
//!
//! Origin: Reed and Kanodia's sequencer and event count (1979), as a spin lock in Mellor-Crummey and Scott
//! (1991); Linux' spin locks from 2.6.25 to 4.1. Not one of the four documents' subjects, but what their
//! kernels keep their lists under, and the simplest fair lock to compare with. Gives: mutual exclusion; order
//! of arrival. Does not give: sleeping, and so any progress past a waiter whose thread does not run.
//!
//! # State
//!
//! | word      | means                                  | changed by                                 |
//! |-----------|----------------------------------------|--------------------------------------------|
//! | `next`    | the ticket of the next thread to come  | each thread that comes, by adding 1        |
//! | `serving` | the ticket of the owner; `next`: free  | the owner, as it releases, to the next one |
//!
//! Both count modulo 2³².
//!
//! # Invariants
//!
//! - **TK1** `next` − `serving` is the number of threads that hold the lock or wait for it, so less than 2³²:
//!   a ticket is of one of them at most.
//! - **TK2** Only the owner writes `serving`. So its release is a plain store.
//!
//! # Orderings
//!
//! | operation              | order   | pairs with | because                                                        |
//! |------------------------|---------|------------|----------------------------------------------------------------|
//! | lock: `next` + 1       | Relaxed | –          | only hands out a ticket                                        |
//! | lock: `serving` load   | Acquire | release    | the last critical section                                      |
//! | try: `serving` load    | Acquire | release    | the last critical section, if `next` is found equal to it      |
//! | try: `next` exchange   | Relaxed | –          | hands out the ticket; no other thread can have been served     |
//! | release: `serving` + 1 | Release | lock, try  | this critical section                                          |
//!
//! A waiter may be preempted, as in no kernel: after each 100 µs awake it sleeps for 50 (`wait/poll_budget.rs`).
//! With more threads than CPUs each acquisition of such a thread waits for it.
//!
//! Checked by: `verify` (`tests/it/classics.rs`), `tests/native/classics_stress.rs`.

use spinpark_platform::{AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, Platform};

use super::poll_budget::PollBudget;
use crate::RawLock;

/// The lock.
pub struct TicketLock<P: Platform> {
    next: P::AtomicU32,
    /// Of the test-and-set lock in its place, its only word.
    pub(super) serving: P::AtomicU32,
}

impl<P: Platform> TicketLock<P> {
    /// From two words that hold 0.
    pub const fn from_parts(next: P::AtomicU32, serving: P::AtomicU32) -> Self {
        Self { next, serving }
    }
}

impl<P: Platform> RawLock for TicketLock<P> {
    fn new() -> Self {
        Self::from_parts(AtomicU32::new(0), AtomicU32::new(0))
    }

    #[inline]
    fn lock(&self) {
        let ticket = self.next.fetch_add(1, Relaxed);
        if self.serving.load(Acquire) != ticket {
            self.wait_for(ticket);
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        let serving = self.serving.load(Acquire);
        // TK1: if it is still the next ticket, no thread has come since the lock was free.
        self.next.compare_exchange(serving, serving.wrapping_add(1), Relaxed, Relaxed).is_ok()
    }

    #[inline]
    fn unlock(&self) {
        let served = self.serving.load(Relaxed); // TK2: the calling thread's own ticket
        self.serving.store(served.wrapping_add(1), Release);
    }
}

impl<P: Platform> TicketLock<P> {
    #[cold]
    #[inline(never)]
    fn wait_for(&self, ticket: u32) {
        let mut budget = PollBudget::default();
        loop {
            budget.poll::<P>();
            if self.serving.load(Acquire) == ticket {
                return;
            }
        }
    }
}
