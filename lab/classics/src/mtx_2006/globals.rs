//! What all mutexes of a machine share: the profile's counters, the delays of an experiment, and the chains
//! that waiters sleep in: not in the mutex, but in a chain that its address selects.
//!
//! The original has a hash table of 128 chains, each with a spin lock and a list of turnstiles, one for each
//! mutex that has waiters. Here a chain is one list of waiters, each with the address of its mutex: the same
//! order, the same lock, and the same memory that a contended mutex does not share with its neighbours. That
//! lock is test-and-set in the kernel, too.

use spinpark_platform::{AtomicU32, Cell, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, Platform};

use super::delays::{Delays, Place};
pub use crate::wait::Ends;
use crate::wait::{Barging, Locked, Node, PollBudget, SpinLock, WaitList};

/// Holds that were recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holds {
    /// How many.
    pub count: u64,
    /// Their length in all, ns.
    pub total_ns: u64,
    /// The longest, ns.
    pub longest_ns: u64,
}

/// One per machine: on cache lines of their own, the counter next to the switch, as two neighbours in a data
/// section; each of the `CHAINS` chains on lines of its own.
///
/// The original has a record per place in the source; here one is enough.
#[repr(align(128))]
pub struct Globals<P: Platform, const CHAINS: usize = 128> {
    enabled: P::AtomicU32,
    acquisitions: P::AtomicU32,
    /// Guards `holds`: one spin lock for all profiles.
    lock: P::AtomicU32,
    holds: P::Cell<Holds>,
    /// Not written once a thread uses them, so no operation is needed to read them.
    delays: Delays,
    chains: [Chain<P>; CHAINS],
}

// SAFETY: `holds` is touched under `lock` only.
unsafe impl<P: Platform, const CHAINS: usize> Send for Globals<P, CHAINS> {}
// SAFETY: as for `Send`.
unsafe impl<P: Platform, const CHAINS: usize> Sync for Globals<P, CHAINS> {}

impl<P: Platform, const CHAINS: usize> Globals<P, CHAINS> {
    /// From three words that hold 0, an empty record and empty chains, for `const` initialisers, which cannot
    /// call the platform's constructors.
    pub const fn from_parts(
        enabled: P::AtomicU32,
        acquisitions: P::AtomicU32,
        lock: P::AtomicU32,
        holds: P::Cell<Holds>,
        chains: [Chain<P>; CHAINS],
    ) -> Self {
        Self { enabled, acquisitions, lock, holds, delays: Delays::NONE, chains }
    }

    /// Not enabled, nothing counted.
    pub fn new() -> Self {
        let word = || AtomicU32::new(0);
        let chains = core::array::from_fn(|_| Chain::new());
        Self::from_parts(word(), word(), word(), Cell::new(Holds::default()), chains)
    }

    /// With these delays, for the locks that have them.
    #[must_use]
    pub fn delayed(self, delays: Delays) -> Self {
        Self { delays, ..self }
    }

    /// Holds up the calling thread at `place`.
    #[inline]
    pub(super) fn delay(&self, place: Place) {
        let ns = self.delays.at(place);
        if ns > 0 {
            P::spin_for(ns.into());
        }
    }

    /// The delay at `place`, in hints of a spinner: at least 0.
    pub(super) fn hints_at(&self, place: Place) -> u32 {
        self.delays.at(place) / crate::delay::HINT_NS as u32
    }

    /// Where threads wait for the mutex at `address`.
    pub(super) fn chain(&self, address: usize) -> &Chain<P> {
        &self.chains[(address >> SHIFT) % CHAINS]
    }

    /// Times and records every hold of a lock that has the code for it, from now on.
    pub fn enable(&self) {
        self.enabled.store(1, Relaxed);
    }

    #[inline]
    pub(super) fn is_enabled(&self) -> bool {
        self.enabled.load(Relaxed) != 0
    }

    /// One more, without an atomic addition: two at the same time may count as one.
    #[inline]
    pub(super) fn count_acquisition(&self) {
        self.acquisitions.store(self.acquisitions.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// Acquisitions of all locks that count them: a lower bound, modulo 2^32.
    pub fn acquisitions(&self) -> u32 {
        self.acquisitions.load(Relaxed)
    }

    /// The holds so far.
    pub fn holds(&self) -> Holds {
        self.update(|holds| *holds)
    }

    pub(super) fn record(&self, ns: u32) {
        self.update(|holds| {
            holds.count += 1;
            holds.total_ns += u64::from(ns);
            holds.longest_ns = holds.longest_ns.max(u64::from(ns));
        });
    }

    fn update<R>(&self, change: impl FnOnce(&mut Holds) -> R) -> R {
        let mut budget = PollBudget::default();
        while self.lock.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
            budget.poll::<P>();
        }
        // SAFETY: the lock is held.
        let result = self.holds.with_mut(|holds| change(unsafe { &mut *holds }));
        self.lock.store(0, Release);
        result
    }
}

impl<P: Platform, const CHAINS: usize> Default for Globals<P, CHAINS> {
    fn default() -> Self {
        Self::new()
    }
}

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
    fn new() -> Self {
        Self(WaitList::new())
    }

    pub(super) fn lock(&self) -> LockedChain<'_, P> {
        self.0.lock()
    }
}
