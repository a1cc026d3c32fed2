//! A waiter: a node on the stack of the thread that waits, and the word that it sleeps on.
//!
//! # State of `task`
//!
//! | value      | meaning                              | set by                                                  |
//! |------------|--------------------------------------|---------------------------------------------------------|
//! | `RUNNING`  | does not sleep, or is about to wake  | the thread that wakes it                                |
//! | `SLEEPING` | sleeps, or is about to               | its thread, before it looks for the last time           |
//!
//! That is the kernel's protocol for sleeping: first say that you sleep, then look whether you have to, then
//! sleep until another thread sets `RUNNING`. A wake-up between those steps is kept.
//!
//! # Orderings
//!
//! | operation              | order   | pairs with    | because                                                       |
//! |------------------------|---------|---------------|---------------------------------------------------------------|
//! | `set_sleeping`: store  | Relaxed | –             | the list's lock, or the caller's full fence, orders it        |
//! | `wake`: swap           | Release | `schedule`    | a waiter taken out of the list returns, and its frame with it |
//! | `schedule`: load       | Acquire | `wake`        | as there                                                      |

use core::ptr;

use spinpark_platform::{
    AtomicU32, Cell, Event, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, Platform,
};

const RUNNING: u32 = 0;
const SLEEPING: u32 = 1;

/// The neighbours in a list (L2).
pub(super) struct Links<P: Platform, K> {
    pub(super) prev: *const Node<P, K>,
    pub(super) next: *const Node<P, K>,
}

impl<P: Platform, K> Clone for Links<P, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Platform, K> Copy for Links<P, K> {}

/// A thread that waits for `kind`.
pub(crate) struct Node<P: Platform, K> {
    task: P::AtomicU32,
    links: P::Cell<Links<P, K>>,
    pub(super) kind: K,
}

impl<P: Platform, K> Node<P, K> {
    /// A node that is in no list, of a thread that is about to sleep.
    pub(crate) fn new(kind: K) -> Self {
        let links = Links { prev: ptr::null(), next: ptr::null() };
        Self { task: AtomicU32::new(SLEEPING), links: Cell::new(links), kind }
    }

    pub(super) fn links(&self) -> Links<P, K> {
        // SAFETY: L2: the caller holds the list's lock.
        self.links.with(|links| unsafe { *links })
    }

    pub(super) fn set_links(&self, new: Links<P, K>) {
        // SAFETY: L2: the caller holds the list's lock.
        self.links.with_mut(|links| unsafe { *links = new });
    }

    /// Announces that this thread is about to sleep. What it looks at before it does comes after that.
    pub(crate) fn set_sleeping(&self) {
        self.task.store(SLEEPING, Relaxed);
    }

    /// Sleeps until another thread wakes this one.
    pub(crate) fn schedule(&self) {
        while self.task.load(Acquire) == SLEEPING {
            P::event(Event::Parked);
            P::futex_wait(&self.task, SLEEPING, None);
        }
    }

    /// Wakes its thread, if that sleeps or is about to.
    ///
    /// # Safety
    ///
    /// `node` is alive until then: it is in the list, whose lock the caller holds, or was taken out of it by
    /// the caller (L1), which does not use it any more (L3).
    pub(super) unsafe fn wake(node: *const Self) {
        // SAFETY: L1: the node is alive.
        let task: *const P::AtomicU32 = unsafe { &raw const (*node).task };
        // SAFETY: L1: the node is alive still; it may be gone right after (L3).
        if unsafe { (*task).swap(RUNNING, Release) } == SLEEPING {
            P::futex_wake(task, 1);
        }
    }
}
