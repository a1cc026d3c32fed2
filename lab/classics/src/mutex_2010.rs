//! The kernel's mutex of 2010: a count, an owner, a FIFO list; spinning on the owner before and after
//! document 001.
//!
//! Origin: `kernel/mutex.c` of Linux 2.6.34, and 9d0f4dcc (document 001). Gives: mutual exclusion; sleeping.
//! A running thread may take a released lock before the waiter that was woken for it (no hand-off), so
//! waiting has no bound.
//!
//! # State
//!
//! | word    | value       | meaning                        | set by                                                   |
//! |---------|-------------|--------------------------------|----------------------------------------------------------|
//! | `count` | 1           | free                           | the release                                              |
//! | `count` | 0           | held, no waiters; or, for a    | the thread that takes it; the last waiter, once it holds; |
//! |         |             | moment, a slow release is on   | a release that finds −1 and adds 1, before it sets 1     |
//! |         |             | its way from −1 to 1           | under the list's lock                                    |
//! | `count` | below 0     | held, perhaps waiters; or a    | a thread that finds it 0 or less, −1; a waiter in the list |
//! |         |             | slow release on its way to 1   | (−1); a release that finds less than −1 and adds 1       |
//! | `owner` | 0           | free, or in one of two windows | the release, before it                                   |
//! | `owner` | a token     | a guess: the owner             | the owner, after it has taken the lock                   |
//!
//! # Transitions
//!
//! ```text
//! lock:    count −1 → 0: done        else spin, then in the list: count ⇄ −1 until it was 1, asleep in between
//! unlock:  owner = 0; count +1 → 1: done   else (0 or less, and no owner) under the list's lock: count = 1, wake the oldest
//! ```
//!
//! # Invariants
//!
//! - **K1** Only the thread that changes `count` from 1 to something else acquires; only the holder's release
//!   sets it to 1. On the slow way no thread can take the lock between its addition and its store: the count
//!   is 0 or less.
//! - **K2** A thread that sleeps in the list has set `count` to −1 after it was queued, and the holder since
//!   then finds it below 0, or took the lock from a release that found it so and wakes the oldest.
//!
//! # The spinning rule
//!
//! A spinner polls `owner` for as long as that runs, and tries when it changes. [`OldSpin`] (2.6.34): any
//! change of the owner ends the poll, so a spinner that lost to another one spins on that, for ever.
//! [`Fixed`] (document 001): if the lock went to another thread, that is heavy contention, and the spinner
//! queues. [`NoSpin`]: it queues at once.
//!
//! # What differs from the kernel
//!
//! Preemption cannot be disabled, so an owner may be preempted in a window, where it is not named. A spinner
//! polls such a lock a thousand times, then queues; the kernel's spins until it has to be rescheduled. A
//! spinner queues, too, if an answer whether the owner runs is soon out of date. The rest is in the [crate's
//! page](crate).
//!
//! # Orderings
//!
//! | operation                 | order   | pairs with          | because                                              |
//! |---------------------------|---------|---------------------|------------------------------------------------------|
//! | lock, spin: `count` RMW   | Acquire | release             | the last critical section                            |
//! | in the list: `count` swap | Acquire | release             | as there                                             |
//! | release: `count` add      | Release | all of these        | this critical section                                |
//! | release: `count` store    | Release | all of these        | as there; no thread took the lock by the add before  |
//! | last waiter: `count` = 0  | Relaxed | –                   | by the holder; others only made it smaller           |
//! | `owner`: all              | Relaxed | –                   | a guess; only the holder writes, so it is in order   |
//!
//! Checked by: `verify` (`tests/it/classics_mutex.rs`), `tests/native/classics_stress.rs`.

use core::marker::PhantomData;

use spinpark_platform::{
    AtomicU32, Event, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, Platform,
};

use crate::RawLock;
use crate::wait::{Node, Oracle, WaitList, window_polls};

const FREE: u32 = 1;
const HELD: u32 = 0;
/// −1.
const WAITERS: u32 = u32::MAX;

const NO_OWNER: u32 = 0;

/// When a spinner goes on.
pub trait Spinning: Send + Sync + 'static {
    /// Whether there is a spinning phase.
    const SPINS: bool;
    /// Whether a spinner queues when the lock went to another thread.
    const LEAVES: bool;
}

/// Both, one by one.
#[derive(Debug)]
pub enum Rule<const SPINS: bool, const LEAVES: bool> {}

impl<const SPINS: bool, const LEAVES: bool> Spinning for Rule<SPINS, LEAVES> {
    const SPINS: bool = SPINS;
    const LEAVES: bool = LEAVES;
}

/// 2.6.34: spins on over changes of owner.
pub type OldSpin = Rule<true, false>;

/// Document 001: leaves when the owner has changed.
pub type Fixed = Rule<true, true>;

/// Sleeps at once.
pub type NoSpin = Rule<false, false>;

/// The mutex.
pub struct Mutex<P: Platform, S: Spinning> {
    count: P::AtomicU32,
    owner: P::AtomicU32,
    waiters: WaitList<P, ()>,
    rule: PhantomData<S>,
}

impl<P: Platform, S: Spinning> RawLock for Mutex<P, S> {
    fn new() -> Self {
        Self {
            count: AtomicU32::new(FREE),
            owner: AtomicU32::new(NO_OWNER),
            waiters: WaitList::new(),
            rule: PhantomData,
        }
    }

    #[inline]
    fn lock(&self) {
        if self.count.fetch_sub(1, Acquire) == FREE {
            self.owner.store(P::thread_token(), Relaxed);
        } else {
            self.lock_slow();
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        self.take(P::thread_token())
    }

    #[inline]
    fn unlock(&self) {
        self.owner.store(NO_OWNER, Relaxed);
        if self.count.fetch_add(1, Release) != HELD {
            self.unlock_slow();
        }
    }
}

impl<P: Platform, S: Spinning> Mutex<P, S> {
    /// Takes the lock if it is free.
    #[inline]
    fn take(&self, me: u32) -> bool {
        let taken = self.count.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok();
        if taken {
            self.owner.store(me, Relaxed);
        }
        taken
    }

    #[cold]
    #[inline(never)]
    fn lock_slow(&self) {
        let me = P::thread_token();
        if S::SPINS && self.spin(me) {
            P::event(Event::SpinAcquired);
        } else {
            self.sleep(me);
        }
    }

    /// Spins while that may pay; returns whether it has the lock.
    fn spin(&self, me: u32) -> bool {
        let mut oracle = Oracle::new();
        let mut window = 0;
        loop {
            let owner = self.owner.load(Relaxed);
            if owner != NO_OWNER && !self.spin_on(owner, &mut oracle) {
                return false;
            }
            if self.take(me) {
                return true;
            }
            if owner == NO_OWNER && (P::need_resched() || window >= window_polls::<P>()) {
                return false;
            }
            let polls = P::spin_hint();
            window = if owner == NO_OWNER { window.saturating_add(polls) } else { 0 };
        }
    }

    /// Polls while `owner` holds the lock and runs; returns whether to try.
    fn spin_on(&self, owner: u32, oracle: &mut Oracle) -> bool {
        loop {
            let now = self.owner.load(Relaxed);
            if now != owner {
                let leaves = S::LEAVES && now != NO_OWNER;
                if leaves {
                    P::event(Event::SpinLeftOwnerChanged);
                }
                return !leaves;
            }
            if P::need_resched() {
                return false;
            }
            if !oracle.may_run::<P>(owner) {
                P::event(Event::SpinLeftOffCpu);
                return false;
            }
            oracle.poll::<P>();
        }
    }

    fn sleep(&self, me: u32) {
        let node = Node::new(());
        let mut waiters = self.waiters.lock();
        // SAFETY: L1: the node is in this frame, and is removed before its end.
        unsafe { waiters.push_back(&node) };
        // K2: queued first, then −1.
        while self.count.swap(WAITERS, Acquire) != FREE {
            node.set_sleeping();
            drop(waiters);
            node.schedule();
            waiters = self.waiters.lock();
        }
        // SAFETY: it was pushed above, and no other thread removes nodes.
        unsafe { waiters.remove(&node) };
        self.owner.store(me, Relaxed);
        if waiters.is_empty() {
            self.count.store(HELD, Relaxed);
        }
    }

    /// The count was below 0, and is not 1 yet.
    #[cold]
    #[inline(never)]
    fn unlock_slow(&self) {
        let mut waiters = self.waiters.lock();
        self.count.store(FREE, Release);
        waiters.wake_first();
    }
}
