//! The MCS queue of spinners as the kernel's mutex had it in 2013, before and after document 002's patches 6
//! and 7.
//!
//! Origin: `kernel/mutex.c` of Linux 3.10, moved to a header of its own by patch 5; the lock is that of
//! Mellor-Crummey and Scott (1991).
//!
//! | patch | before                                                   | after                                             |
//! |-------|----------------------------------------------------------|---------------------------------------------------|
//! | 6     | a thread that finds the lock free sets its own `locked`  | that store is gone: it is never read              |
//! | 7     | a barrier *behind* the store that hands the lock over,   | a barrier *before* that store,                    |
//! |       | none behind the wait                                     | one behind the wait                               |
//!
//! The barriers are orderings here: a barrier behind the hand-over orders nothing for it, so the store is
//! Relaxed; a barrier before it is Release. Patch 7 as sent has a read barrier behind the wait, which does
//! not order the section's stores; what was merged (e72246748ff0) is Acquire, and that is what stands here.
//!
//! # State
//!
//! | place         | value    | meaning                    | written by                                     |
//! |---------------|----------|----------------------------|------------------------------------------------|
//! | `tail`        | null     | unlocked                   | the last holder, by CAS from its own node      |
//! | `tail`        | a node   | the youngest in line       | an arriving thread, by swap                    |
//! | `node.next`   | null     | no successor known yet     | its thread, before it is in `tail`             |
//! | `node.next`   | a node   | the successor              | the successor, once                            |
//! | `node.locked` | 0        | must wait, if not alone    | its thread, before it is in `tail`             |
//! | `node.locked` | 1        | may enter                  | its predecessor, once; in [`Before`], and      |
//! |               |          |                            | whatever else lacks patch 6, also its own      |
//! |               |          |                            | thread, if it has no predecessor               |
//! | `node.thread` | a token  | whose node it is           | its thread, before it is in `tail`             |
//!
//! # Invariants
//!
//! - **M1** A node lives in the frame of [`McsLock::with`], from before it is in line until it has left it.
//! - **M2** A predecessor does not leave before it has set its successor's `locked`, and never looks at it
//!   again.
//!
//! # What differs from the kernel
//!
//! A waiter spins, as there, for as long as its predecessor runs, however long that takes. It does not run if
//! it was preempted, or sleeps for that reason itself: then the waiter sleeps briefly (`wait/poll_budget.rs`).
//! So the queue behind a preempted head goes to sleep from the front, a tenth of a millisecond for each
//! place, and does not hold the CPUs that the head needs.
//!
//! # Orderings
//!
//! | operation               | order                  | pairs with        | because                                      |
//! |-------------------------|------------------------|-------------------|----------------------------------------------|
//! | node init: stores       | Relaxed                | –                 | the swap publishes them                      |
//! | `tail` swap             | AcqRel                 | swap; unlock CAS  | an exchange is a full barrier there          |
//! | try: `tail` CAS         | AcqRel                 | as the swap       | as the swap; on failure nothing was read     |
//! | `prev.next` store       | Release                | unlock's load     | the node's init, before the predecessor's 1  |
//! | wait: `locked` load     | [`Shape::WAIT`]        | hand-over         | the predecessor's section                    |
//! | unlock: `next` load     | Acquire                | `prev.next` store | as there (an address dependency, there)      |
//! | unlock: `tail` CAS      | AcqRel                 | swap              | a full barrier there                         |
//! | hand-over: `locked` = 1 | [`Shape::HAND_OVER`]   | wait              | this section                                 |
//!
//! Checked by: `verify` (`tests/it/mcs.rs`): [`Corrected`] is accepted; [`Before`], either half of patch 7
//! and three relaxed orderings are not. The simulator: programs `queues` and those of mutexes. Native stress.

use core::marker::PhantomData;
use core::ptr;

use spinpark_platform::{
    AtomicPtr, AtomicU32, Ordering, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
    Ordering::Release, Platform,
};

use crate::wait::{Behind, linked};

/// Which patches are in.
pub trait Shape: Send + Sync + 'static {
    /// Without patch 6: a thread that need not wait says so in its own node.
    const NEEDLESS_STORE: bool;
    /// The order of the load that ends the wait.
    const WAIT: Ordering;
    /// The order of the store that hands the lock over.
    const HAND_OVER: Ordering;
}

/// Patch 6, and the two halves of patch 7, one by one.
#[derive(Debug)]
pub enum Patches<const P6: bool, const P7_WAIT: bool, const P7_HAND_OVER: bool> {}

impl<const P6: bool, const P7_WAIT: bool, const P7_HAND_OVER: bool> Shape
    for Patches<P6, P7_WAIT, P7_HAND_OVER>
{
    const NEEDLESS_STORE: bool = !P6;
    const WAIT: Ordering = if P7_WAIT { Acquire } else { Relaxed };
    const HAND_OVER: Ordering = if P7_HAND_OVER { Release } else { Relaxed };
}

/// As the mutex had it. Wrong on machines that reorder; kept to be rejected.
pub type Before = Patches<false, false, false>;

/// With patches 6 and 7.
pub type Corrected = Patches<true, true, true>;

struct Node<P: Platform> {
    next: P::AtomicPtr<Node<P>>,
    locked: P::AtomicU32,
    /// Whose node it is: its successor asks whether that thread runs.
    thread: u32,
}

impl<P: Platform> Node<P> {
    fn new() -> Self {
        Self { next: AtomicPtr::new(ptr::null_mut()), locked: AtomicU32::new(0), thread: P::thread_token() }
    }
}

/// The lock: one pointer, null is unlocked.
pub struct McsLock<P: Platform, S: Shape = Corrected> {
    tail: P::AtomicPtr<Node<P>>,
    shape: PhantomData<S>,
}

impl<P: Platform, S: Shape> McsLock<P, S> {
    /// An unlocked lock.
    pub fn new() -> Self {
        Self { tail: AtomicPtr::new(ptr::null_mut()), shape: PhantomData }
    }

    /// Runs `section` with the lock held.
    pub fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        let node = Node::new();
        self.lock(&node);
        let _leave = Leave(self, &node); // M1: also if the section unwinds
        section()
    }

    /// Runs `section` with the lock held, if it is free and has no waiters.
    pub fn try_with<R>(&self, section: impl FnOnce() -> R) -> Option<R> {
        let node = Node::new();
        self.try_lock(&node).then(|| {
            let _leave = Leave(self, &node);
            section()
        })
    }

    /// M1 is the caller's.
    fn try_lock(&self, me: &Node<P>) -> bool {
        let node = ptr::from_ref(me).cast_mut();
        // Read first: a compare-exchange that fails takes the line, too (patch 1).
        self.tail.load(Relaxed).is_null()
            && self.tail.compare_exchange(ptr::null_mut(), node, AcqRel, Relaxed).is_ok()
    }

    /// M1 is the caller's.
    fn lock(&self, me: &Node<P>) {
        let prev = self.tail.swap(ptr::from_ref(me).cast_mut(), AcqRel);
        // SAFETY: M2: the predecessor waits for this node to be linked before it leaves.
        let Some(prev) = (unsafe { prev.as_ref() }) else {
            if S::NEEDLESS_STORE {
                me.locked.store(1, Relaxed);
            }
            return;
        };
        let mut budget = Behind::new(prev.thread);
        prev.next.store(ptr::from_ref(me).cast_mut(), Release); // from here on it may leave
        while me.locked.load(S::WAIT) == 0 {
            budget.poll::<P>();
        }
    }

    fn unlock(&self, me: &Node<P>) {
        let mut next = me.next.load(Acquire);
        if next.is_null() {
            let tail = ptr::from_ref(me).cast_mut();
            if self.tail.compare_exchange(tail, ptr::null_mut(), AcqRel, Relaxed).is_ok() {
                return;
            }
            next = linked::<P, _>(&me.next);
        }
        // SAFETY: M2: the successor waits for this very store.
        unsafe { (*next).locked.store(1, S::HAND_OVER) };
    }
}

impl<P: Platform, S: Shape> Default for McsLock<P, S> {
    fn default() -> Self {
        Self::new()
    }
}

struct Leave<'a, P: Platform, S: Shape>(&'a McsLock<P, S>, &'a Node<P>);

impl<P: Platform, S: Shape> Drop for Leave<'_, P, S> {
    fn drop(&mut self) {
        self.0.unlock(self.1);
    }
}
