//! Where waiters sleep: not in the mutex, but in a chain that its address selects.
//!
//! The original has a hash table of 128 chains, each with a spin lock and a list of turnstiles, one for each
//! mutex that has waiters. Here a chain is one list of waiters, each with the address of its mutex: the same
//! order, the same lock, and the same memory that a contended mutex does not share with its neighbours. That
//! lock is test-and-set in the kernel, too.

use spinpark_platform::Platform;

pub use crate::wait::Ends;
use crate::wait::{Barging, Locked, Node, SpinLock, WaitList};

/// Mutexes within 2^8 bytes of each other share a chain.
const SHIFT: u32 = 8;

/// The waiters of all mutexes that fall here, oldest first, under a spin lock; on cache lines of its own.
#[repr(align(128))]
pub struct Chain<P: Platform>(WaitList<P, usize, Barging>);

/// A waiter for the mutex at an address.
pub(super) type Waiter<P> = Node<P, usize>;

/// A chain, locked.
pub(super) type LockedChain<'a, P> = Locked<'a, P, usize, Barging>;

impl<P: Platform> Chain<P> {
    /// From a free lock and [`Ends::EMPTY`], for `const` initialisers, which cannot call the platform's
    /// constructors.
    pub const fn from_parts(lock: SpinLock<P, Barging>, waiters: P::Cell<Ends<P, usize>>) -> Self {
        Self(WaitList::from_parts(lock, waiters))
    }

    /// No waiters.
    pub(super) fn new() -> Self {
        Self(WaitList::new())
    }

    pub(super) fn lock(&self) -> LockedChain<'_, P> {
        self.0.lock()
    }
}

/// Which of `chains` waiters for the mutex at `address` are in.
pub(super) const fn index(address: usize, chains: usize) -> usize {
    (address >> SHIFT) % chains
}
