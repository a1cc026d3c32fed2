//! A spin lock: one word, test and set.
//!
//! Origin: document 004's `_mtx_lock_spin` of 2006 (try, then read until it is free: test and test-and-set),
//! the simpler form without the reads, and the form with the exponential back-off that the message measures.
//! Gives: mutual exclusion. Does not give: order, sleeping, a bound on waiting.
//!
//! # State
//!
//! | value | meaning | set by                          |
//! |-------|---------|---------------------------------|
//! | 0     | free    | the release                     |
//! | 1     | held    | whose exchange found it free    |
//!
//! # Orderings
//!
//! | operation   | order   | pairs with | because                                  |
//! |-------------|---------|------------|------------------------------------------|
//! | lock: swap  | Acquire | release    | the last critical section                |
//! | wait: load  | Relaxed | –          | only decides when to try again           |
//! | release     | Release | lock       | this critical section                    |
//!
//! The holder may be preempted, as in no kernel: after each 100 µs awake a waiter sleeps for 50, whichever
//! way it waits.
//!
//! Checked by: `verify` (`tests/it/classics.rs`), `tests/native/classics_stress.rs`.

use core::marker::PhantomData;

use spinpark_platform::{AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, Platform};

use crate::RawLock;
use crate::delay::Delay;
use crate::wait::PollBudget;

const FREE: u32 = 0;
const HELD: u32 = 1;

/// How a thread waits.
pub trait Waiting: Send + Sync + 'static {
    /// Whether it reads until the lock is free before it tries again.
    const READS: bool;
    /// Whether it stays away for longer and longer.
    const BACKS_OFF: bool;
    /// CPUs of the machine that the longest delay is for.
    const CPUS: u32;
}

/// All of these, one by one.
#[derive(Debug)]
pub enum PollStrategy<const READS: bool, const BACKS_OFF: bool, const CPUS: u32> {}

impl<const READS: bool, const BACKS_OFF: bool, const CPUS: u32> Waiting
    for PollStrategy<READS, BACKS_OFF, CPUS>
{
    const READS: bool = READS;
    const BACKS_OFF: bool = BACKS_OFF;
    const CPUS: u32 = CPUS;
}

/// Tries and tries.
pub type TestAndSet = PollStrategy<false, false, 2>;

/// Reads until it is free, then tries: FreeBSD's spin mutex.
pub type TestAndTestAndSet = PollStrategy<true, false, 2>;

/// The same, with exponential back-off on a machine of `CPUS` CPUs.
pub type BackOff<const CPUS: u32 = 2> = PollStrategy<true, true, CPUS>;

/// The lock.
pub struct TasLock<P: Platform, W: Waiting> {
    word: P::AtomicU32,
    waiting: PhantomData<W>,
}

impl<P: Platform, W: Waiting> RawLock for TasLock<P, W> {
    fn new() -> Self {
        Self { word: AtomicU32::new(FREE), waiting: PhantomData }
    }

    #[inline]
    fn lock(&self) {
        if !self.take() {
            self.lock_slow();
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        self.word.load(Relaxed) == FREE && self.take()
    }

    #[inline]
    fn unlock(&self) {
        self.word.store(FREE, Release);
    }
}

impl<P: Platform, W: Waiting> TasLock<P, W> {
    #[inline]
    fn take(&self) -> bool {
        self.word.swap(HELD, Acquire) == FREE
    }

    #[cold]
    #[inline(never)]
    fn lock_slow(&self) {
        let mut budget = PollBudget::default();
        let mut delay = Delay::new(W::CPUS);
        loop {
            loop {
                if W::BACKS_OFF {
                    budget.count::<P>(delay.pause::<P>());
                } else {
                    budget.poll::<P>();
                }
                if !W::READS || self.word.load(Relaxed) == FREE {
                    break;
                }
            }
            if self.take() {
                return;
            }
        }
    }
}
