//! The spin lock of a kernel's lists: a `wait_lock`.
//!
//! Two kinds, by what the machine promises ([`SpinLocks`]):
//!
//! - *Kept*: its holder and its waiters keep their CPUs, as in a kernel; so it is what that kernel had
//!   ([`Order`]).
//! - *Preempted*: as in user space. Test and test-and-set: a ticket lock is at its worst when the next one in
//!   line is preempted; and a brief sleep after many polls, or a preempted holder costs whole time slices.
//!
//! # State
//!
//! Tickets are those of [`TicketLock`]. Test-and-set has one word:
//!
//! | `serving`        | set by                                 |
//! |------------------|----------------------------------------|
//! | 0: free, 1: held | the next holder, by CAS; the release   |
//!
//! # Orderings
//!
//! | operation              | order   | pairs with | because                                                   |
//! |------------------------|---------|------------|-----------------------------------------------------------|
//! | test-and-set: CAS      | Acquire | unlock     | what the last holder did (L2)                             |
//! | test-and-set: load     | Relaxed | –          | only decides when to try again                            |
//! | unlock: store          | Release | lock       | as there                                                  |

use core::marker::PhantomData;

use spinpark_platform::{
    AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, Platform, SpinLocks,
};

use super::poll_budget::PollBudget;
use super::ticket::TicketLock;
use crate::RawLock;

const FREE: u32 = 0;
const HELD: u32 = 1;

/// The order of waiters, in a kernel that keeps its spinners' CPUs.
pub trait Order: Send + Sync + 'static {
    /// Whether waiters are served as they come.
    const IS_FIFO: bool;
}

/// A ticket lock (Linux 2.6.25 to 4.1): first come, first served; all waiters poll one word, so each
/// hand-over goes past all of them (Boyd-Wickizer et al., "Non-scalable locks are dangerous", 2012).
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
    tickets: TicketLock<P>,
    order: PhantomData<O>,
}

impl<P: Platform, O: Order> SpinLock<P, O> {
    /// From two words that hold 0.
    pub const fn from_parts(tail: P::AtomicU32, served: P::AtomicU32) -> Self {
        Self { tickets: TicketLock::from_parts(tail, served), order: PhantomData }
    }

    const HAS_TICKETS: bool = O::IS_FIFO && matches!(P::TUNING.spin_locks, SpinLocks::Kept);

    const fn word(&self) -> &P::AtomicU32 {
        &self.tickets.serving
    }
}

impl<P: Platform, O: Order> RawLock for SpinLock<P, O> {
    fn new() -> Self {
        Self { tickets: TicketLock::new(), order: PhantomData }
    }

    fn lock(&self) {
        if Self::HAS_TICKETS {
            return self.tickets.lock();
        }
        let mut budget = PollBudget::default();
        while self.word().compare_exchange(FREE, HELD, Acquire, Relaxed).is_err() {
            while self.word().load(Relaxed) == HELD {
                budget.poll::<P>();
            }
        }
    }

    fn try_lock(&self) -> bool {
        if Self::HAS_TICKETS {
            return self.tickets.try_lock();
        }
        self.word().compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok()
    }

    fn unlock(&self) {
        if Self::HAS_TICKETS {
            return self.tickets.unlock();
        }
        self.word().store(FREE, Release);
    }
}
