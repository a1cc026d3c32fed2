//! The MCS queue lock as a mutex by itself: no node goes from `lock` to `unlock`.
//!
//! Origin: Mellor-Crummey and Scott (1991), with the head of the queue in the lock (Auslander and others,
//! 2003; Scott, *Shared-Memory Synchronization*, 2013): a waiter that gets the lock takes its node out of the
//! queue before `lock` returns. Not one of the four documents' subjects, but the yardstick for a contended
//! lock on many CPUs: each waiter polls a line of its own. Gives: mutual exclusion; order of arrival. Does
//! not give: sleeping, and so any progress past a waiter whose thread does not run.
//!
//! # State
//!
//! | place          | value  | meaning                                     | written by                                          |
//! |----------------|--------|---------------------------------------------|-----------------------------------------------------|
//! | `tail`         | null   | free                                        | the owner, by exchange from `HELD`                  |
//! | `tail`         | `HELD` | held, without waiters                       | the owner: from null, or from its own node          |
//! | `tail`         | a node | the youngest waiter, or the owner's (MX2)   | an arriving thread, by swap                         |
//! | `next`         | null   | the owner knows no waiter                   | the owner, as it takes its node out                 |
//! | `next`         | a node | the oldest waiter; until its node is taken  | that waiter, which came behind `HELD`; or the owner |
//! |                |        | out, the new owner                          |                                                     |
//! | `node.next`    | a node | the waiter behind this one                  | that waiter, once                                   |
//! | `node.granted` | 1      | the node's thread owns the lock             | the owner before it, once                           |
//!
//! # Invariants
//!
//! - **MX1** `next` belongs to the owner, except from when it puts `HELD` in `tail` until it has seen the
//!   link of the waiter that swapped that out: this waiter writes it once, and the owner waits for that
//!   before it releases.
//! - **MX2** A node lives in the frame of `lock_slow`, and no other thread refers to it once that returns:
//!   its thread then has the lock, and has either put `HELD` in the place of its node in `tail`, or has seen
//!   its successor link itself.
//! - **MX3** After `granted` is set the releasing thread does not touch the lock nor the node.
//! - **MX4** While the lock is free, `next` is null.
//!
//! # Orderings
//!
//! | operation                          | order   | pairs with         | because                                           |
//! |------------------------------------|---------|--------------------|---------------------------------------------------|
//! | lock, try: `tail` null → `HELD`    | Acquire | release            | the last critical section                         |
//! | lock: swap of `tail`               | AcqRel  | swap, take out;    | Release: this node is initialised. Acquire: the   |
//! |                                    |         | release            | node behind which this one comes is, and `next`   |
//! |                                    |         |                    | is null behind `HELD`; the last critical section  |
//! | lock: `next` store (both)          | Release | loads of `next`    | this node is initialised (`granted` is 0)         |
//! | wait: `granted` load               | Acquire | `granted` store    | the last critical section                         |
//! | take out: `node.next` load         | Acquire | `next` store       | as there                                          |
//! | take out: `next` store             | Relaxed | –                  | the owner's own (MX1); to null, published by the  |
//! |                                    |         |                    | exchange behind it                                |
//! | take out: `tail` node → `HELD`     | Release | swap               | `next` is null before a waiter writes it          |
//! | release: `next` load               | Acquire | `next` store       | as there                                          |
//! | release: `tail` `HELD` → null      | Release | lock, try, swap    | this critical section                             |
//! | release: `granted` store           | Release | wait               | this critical section                             |
//!
//! A waiter may be preempted, as in no kernel. After each 100 µs awake it sleeps for 50 if the thread before
//! it does not run (after 4 ms, if that is not known); the first waiter behind an owner without a node does
//! so in any case (`wait/poll_budget.rs`).
//!
//! Checked by: `verify` (`tests/it/classics_mcs.rs`), `tests/native/classics_stress.rs`.

use core::ptr::{self, NonNull};

use spinpark_platform::{
    AtomicPtr, AtomicU32, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, Platform,
};

use crate::RawLock;
use crate::wait::{Behind, PollBudget, linked};

/// A waiter's place in the queue.
struct Node<P: Platform> {
    next: P::AtomicPtr<Node<P>>,
    granted: P::AtomicU32,
    /// Whose node it is: the waiter behind it asks whether that thread runs.
    thread: u32,
}

/// The value of `tail` while the lock is held and no thread waits. No node has this address.
fn held<P: Platform>() -> *mut Node<P> {
    ptr::without_provenance_mut(1)
}

/// The lock.
pub struct McsMutex<P: Platform> {
    tail: P::AtomicPtr<Node<P>>,
    next: P::AtomicPtr<Node<P>>,
}

impl<P: Platform> RawLock for McsMutex<P> {
    fn new() -> Self {
        Self { tail: AtomicPtr::new(ptr::null_mut()), next: AtomicPtr::new(ptr::null_mut()) }
    }

    #[inline]
    fn lock(&self) {
        if !self.take() {
            self.lock_slow();
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        self.tail.load(Relaxed).is_null() && self.take()
    }

    #[inline]
    fn unlock(&self) {
        let mut next = self.next.load(Acquire);
        if next.is_null() {
            if self.tail.compare_exchange(held(), ptr::null_mut(), Release, Relaxed).is_ok() {
                return;
            }
            next = linked::<P, _>(&self.next); // MX1
        }
        // SAFETY: MX2: its thread does not return before this store. MX3: it is the last access.
        unsafe { (*next).granted.store(1, Release) };
    }
}

impl<P: Platform> McsMutex<P> {
    #[inline]
    fn take(&self) -> bool {
        self.tail.compare_exchange(ptr::null_mut(), held(), Acquire, Relaxed).is_ok()
    }

    #[cold]
    #[inline(never)]
    fn lock_slow(&self) {
        let node = Node {
            next: AtomicPtr::new(ptr::null_mut()),
            granted: AtomicU32::new(0),
            thread: P::thread_token(),
        };
        let me = NonNull::from(&node).as_ptr();
        let before = self.tail.swap(me, AcqRel);
        if before == held() {
            self.next.store(me, Release); // MX1
            let mut budget = PollBudget::default(); // the owner has no node that names it
            wait_for(&node, || budget.poll::<P>());
        // SAFETY: MX2: that node's thread waits until this one has linked itself.
        } else if let Some(before) = unsafe { before.as_ref() } {
            let mut behind = Behind::new(before.thread);
            before.next.store(me, Release); // from here on it may leave
            wait_for(&node, || behind.poll::<P>());
        }
        self.take_out(&node, me);
    }

    /// The node's thread has the lock: the node leaves the queue (MX2).
    fn take_out(&self, node: &Node<P>, me: *mut Node<P>) {
        let mut behind = node.next.load(Acquire);
        if behind.is_null() {
            self.next.store(ptr::null_mut(), Relaxed); // MX1, MX4
            if self.tail.compare_exchange(me, held(), Release, Relaxed).is_ok() {
                return;
            }
            behind = linked::<P, _>(&node.next);
        }
        self.next.store(behind, Relaxed); // MX1
    }
}

/// Waits until the node's thread has been granted the lock.
fn wait_for<P: Platform>(node: &Node<P>, mut poll: impl FnMut()) {
    while node.granted.load(Acquire) == 0 {
        poll();
    }
}
