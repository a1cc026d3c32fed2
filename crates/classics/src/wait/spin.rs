//! The spin lock of a kernel's lists: a `wait_lock`.
//!
//! Two kinds, by what the machine promises ([`SpinLocks`]):
//!
//! - *Kept*: its holder and its waiters keep their CPUs, as in a kernel; so it is what that kernel had ([`Order`]).
//! - *Preempted*: as in user space. Test and test-and-set: a ticket lock is at its worst when the next one in line is
//!   preempted; and a brief sleep after many polls, or a preempted holder costs whole time slices.
//!
//! # State
//!
//! | kind         | word     | value                   | set by                                 |
//! |--------------|----------|-------------------------|----------------------------------------|
//! | test-and-set | `served` | 0: free, 1: held        | the next holder, by CAS; the release   |
//! | tickets      | `tail`   | the next ticket         | an arriving thread, by an addition     |
//! | tickets      | `served` | whose turn it is        | the release                            |
//!
//! # Invariants
//!
//! - **T1** (tickets) Each ticket is given out once; its owner holds the lock from `served` = its ticket to its own release.
//!   Tickets wrap at 2^32, far more than there are threads.
//!
//! # Orderings
//!
//! | operation              | order   | pairs with | because                                                   |
//! |------------------------|---------|------------|-----------------------------------------------------------|
//! | test-and-set: CAS      | Acquire | unlock     | what the last holder did (L2)                             |
//! | test-and-set: load     | Relaxed | –          | only decides when to try again                            |
//! | tickets: addition      | Relaxed | –          | a ticket is but a number                                  |
//! | tickets: load          | Acquire | unlock     | as the CAS                                                |
//! | unlock: store          | Release | lock       | as there                                                  |

use core::marker::PhantomData;

use spinpark_platform::{
    AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, Platform, SpinLocks,
};

use super::patience::Patience;
use crate::RawLock;

const FREE: u32 = 0;
const HELD: u32 = 1;

/// The order of waiters, in a kernel that keeps its spinners' CPUs.
pub trait Order: Send + Sync + 'static {
    /// Whether waiters are served as they come.
    const IS_FIFO: bool;
}

/// A ticket lock (Linux 2.6.25 to 4.1): first come, first served; all waiters poll one word, so each hand-over goes past all
/// of them (Boyd-Wickizer et al., "Non-scalable locks are dangerous", 2012).
#[derive(Debug)]
pub enum Tickets {}

/// Test and test-and-set (FreeBSD's `mtx` of 2006 that spins): the first thread that finds it free takes it.
#[derive(Debug)]
pub enum Barging {}

impl Order for Tickets {
    const IS_FIFO: bool = true;
}

impl Order for Barging {
    const IS_FIFO: bool = false;
}

/// The lock: eight bytes, zero is free.
pub struct SpinLock<P: Platform, O: Order = Tickets> {
    tail: P::AtomicU32,
    served: P::AtomicU32,
    order: PhantomData<O>,
}

impl<P: Platform, O: Order> SpinLock<P, O> {
    /// From two words that hold 0.
    pub const fn from_parts(tail: P::AtomicU32, served: P::AtomicU32) -> Self {
        Self { tail, served, order: PhantomData }
    }

    const HAS_TICKETS: bool = O::IS_FIFO && matches!(P::TUNING.spin_locks, SpinLocks::Kept);
}

impl<P: Platform, O: Order> RawLock for SpinLock<P, O> {
    fn new() -> Self {
        Self::from_parts(AtomicU32::new(0), AtomicU32::new(FREE))
    }

    fn lock(&self) {
        let mut patience = Patience::default();
        if Self::HAS_TICKETS {
            let ticket = self.tail.fetch_add(1, Relaxed);
            while self.served.load(Acquire) != ticket {
                patience.poll::<P>();
            }
            return;
        }
        while self.served.compare_exchange(FREE, HELD, Acquire, Relaxed).is_err() {
            while self.served.load(Relaxed) == HELD {
                patience.poll::<P>();
            }
        }
    }

    fn try_lock(&self) -> bool {
        if !Self::HAS_TICKETS {
            return self.served.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok();
        }
        // The ticket that would be served at once, if it is not taken.
        let served = self.served.load(Acquire);
        self.tail.compare_exchange(served, served.wrapping_add(1), Acquire, Relaxed).is_ok()
    }

    fn unlock(&self) {
        // T1: no other thread writes it meanwhile.
        let next = if Self::HAS_TICKETS { self.served.load(Relaxed).wrapping_add(1) } else { FREE };
        self.served.store(next, Release);
    }
}
