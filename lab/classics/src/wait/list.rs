//! A FIFO list of waiters under a spin lock: a kernel's `wait_lock` and `wait_list`. A waiter is a node on
//! the stack of the thread that waits, with the word that it sleeps on.
//!
//! # State of `task`
//!
//! | value      | meaning                              | set by                                                  |
//! |------------|--------------------------------------|---------------------------------------------------------|
//! | `RUNNING`  | does not sleep, or is about to wake  | the thread that wakes it                                |
//! | `SLEEPING` | sleeps, or is about to               | its thread, before it looks for the last time           |
//!
//! That is the kernel's protocol for sleeping: first say that you sleep, then check whether you have to, then
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

use super::spin::{Order, SpinLock, Tickets};
use crate::RawLock;

const RUNNING: u32 = 0;
const SLEEPING: u32 = 1;

/// The neighbours in a list (L2).
struct Links<P: Platform, K> {
    prev: *const Node<P, K>,
    next: *const Node<P, K>,
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
    kind: K,
}

impl<P: Platform, K> Node<P, K> {
    /// A node that is in no list, of a thread that is about to sleep.
    pub(crate) fn new(kind: K) -> Self {
        let links = Links { prev: ptr::null(), next: ptr::null() };
        Self { task: AtomicU32::new(SLEEPING), links: Cell::new(links), kind }
    }

    fn links(&self) -> Links<P, K> {
        // SAFETY: L2: the caller holds the list's lock.
        self.links.with(|links| unsafe { *links })
    }

    fn set_links(&self, new: Links<P, K>) {
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
    unsafe fn wake(node: *const Self) {
        // SAFETY: L1: the node is alive.
        let task: *const P::AtomicU32 = unsafe { &raw const (*node).task };
        // SAFETY: L1: the node is alive still; it may be gone right after (L3).
        if unsafe { (*task).swap(RUNNING, Release) } == SLEEPING {
            P::futex_wake(task, 1);
        }
    }
}

/// The oldest and the youngest waiter, or null (L2).
pub struct Ends<P: Platform, K> {
    first: *const Node<P, K>,
    last: *const Node<P, K>,
}

impl<P: Platform, K> Clone for Ends<P, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Platform, K> Copy for Ends<P, K> {}

impl<P: Platform, K> Ends<P, K> {
    /// Of a list without waiters.
    pub const EMPTY: Self = Self { first: ptr::null(), last: ptr::null() };
}

/// The list and its lock.
pub(crate) struct WaitList<P: Platform, K, O: Order = Tickets> {
    lock: SpinLock<P, O>,
    ends: P::Cell<Ends<P, K>>,
}

// SAFETY: L2: the ends, and what they point to, are touched under the lock only; L1: what they point to is
// alive.
unsafe impl<P: Platform, K: Send, O: Order> Send for WaitList<P, K, O> {}
// SAFETY: as for `Send`.
unsafe impl<P: Platform, K: Send, O: Order> Sync for WaitList<P, K, O> {}

/// The list, locked until this is dropped.
pub(crate) struct Locked<'a, P: Platform, K, O: Order = Tickets>(&'a WaitList<P, K, O>);

impl<P: Platform, K, O: Order> WaitList<P, K, O> {
    /// From a free lock and [`Ends::EMPTY`].
    pub(crate) const fn from_parts(lock: SpinLock<P, O>, ends: P::Cell<Ends<P, K>>) -> Self {
        Self { lock, ends }
    }
}

impl<P: Platform, K: Copy, O: Order> WaitList<P, K, O> {
    /// Empty and unlocked.
    pub(crate) fn new() -> Self {
        Self::from_parts(SpinLock::new(), Cell::new(Ends::EMPTY))
    }

    /// Locks.
    pub(crate) fn lock(&self) -> Locked<'_, P, K, O> {
        self.lock.lock();
        Locked(self)
    }
}

impl<P: Platform, K, O: Order> Drop for Locked<'_, P, K, O> {
    fn drop(&mut self) {
        self.0.lock.unlock();
    }
}

impl<P: Platform, K: Copy, O: Order> Locked<'_, P, K, O> {
    fn ends(&self) -> Ends<P, K> {
        // SAFETY: L2: this is the lock.
        self.0.ends.with(|ends| unsafe { *ends })
    }

    fn set_ends(&mut self, new: Ends<P, K>) {
        // SAFETY: L2: this is the lock.
        self.0.ends.with_mut(|ends| unsafe { *ends = new });
    }

    fn first_node(&self) -> Option<&Node<P, K>> {
        // SAFETY: L1: nodes in the list are alive.
        unsafe { self.ends().first.as_ref() }
    }

    /// Whether there are no waiters.
    pub(crate) fn is_empty(&self) -> bool {
        self.ends().first.is_null()
    }

    /// Whether one thread waits.
    pub(crate) fn is_single(&self) -> bool {
        let ends = self.ends();
        !ends.first.is_null() && ptr::eq(ends.first, ends.last)
    }

    /// What the oldest one waits for.
    pub(crate) fn first(&self) -> Option<K> {
        self.first_node().map(|node| node.kind)
    }

    /// How many of the oldest are of a kind for which `is_meant` holds, and whether those are all.
    pub(crate) fn leading(&self, is_meant: impl Fn(K) -> bool) -> (u32, bool) {
        let mut count = 0;
        let mut next = self.first_node();
        while let Some(node) = next.filter(|node| is_meant(node.kind)) {
            count += 1;
            // SAFETY: L1: nodes in the list are alive.
            next = unsafe { node.links().next.as_ref() };
        }
        (count, next.is_none())
    }

    /// The oldest one for which `is_meant` holds, or null.
    fn find(&self, is_meant: impl Fn(K) -> bool) -> *const Node<P, K> {
        let mut next = self.first_node();
        while let Some(node) = next.filter(|node| !is_meant(node.kind)) {
            // SAFETY: L1: nodes in the list are alive.
            next = unsafe { node.links().next.as_ref() };
        }
        next.map_or(ptr::null(), ptr::from_ref)
    }

    /// Whether `is_meant` holds for a waiter.
    pub(crate) fn has(&self, is_meant: impl Fn(K) -> bool) -> bool {
        !self.find(is_meant).is_null()
    }

    /// Appends `node`.
    ///
    /// # Safety
    ///
    /// L1: `node` is in no list, and stays where it is until it is removed or its thread was woken by
    /// [`Self::pop_wake`].
    pub(crate) unsafe fn push_back(&mut self, node: &Node<P, K>) {
        let Ends { first, last } = self.ends();
        node.set_links(Links { prev: last, next: ptr::null() });
        // SAFETY: L1: nodes in the list are alive.
        if let Some(last) = unsafe { last.as_ref() } {
            last.set_links(Links { next: node, ..last.links() });
        }
        self.set_ends(Ends { first: if first.is_null() { node } else { first }, last: node });
    }

    /// Takes out `node`.
    ///
    /// # Safety
    ///
    /// `node` is in this list.
    pub(crate) unsafe fn remove(&mut self, node: &Node<P, K>) {
        let Links { prev, next } = node.links();
        let Ends { mut first, mut last } = self.ends();
        // SAFETY: L1: nodes in the list are alive.
        match unsafe { prev.as_ref() } {
            Some(prev) => prev.set_links(Links { next, ..prev.links() }),
            None => first = next,
        }
        // SAFETY: L1, as for `prev`.
        match unsafe { next.as_ref() } {
            Some(next) => next.set_links(Links { prev, ..next.links() }),
            None => last = prev,
        }
        self.set_ends(Ends { first, last });
    }

    /// Wakes the oldest one, if there is one; it stays in the list.
    pub(crate) fn wake_first(&mut self) {
        let first = self.ends().first;
        if !first.is_null() {
            // SAFETY: L1: it is in the list, and this is the lock.
            unsafe { Node::wake(first) };
        }
    }

    /// Takes out the oldest one, if there is one, and wakes it.
    pub(crate) fn pop_wake(&mut self) {
        if let Some(dequeued) = self.pop(|_| true) {
            dequeued.wake();
        }
    }

    /// Takes out the oldest one for which `is_meant` holds.
    pub(crate) fn pop(&mut self, is_meant: impl Fn(K) -> bool) -> Option<Dequeued<P, K>> {
        let found = self.find(is_meant);
        // SAFETY: L1: nodes in the list are alive.
        let node = unsafe { found.as_ref() }?;
        // SAFETY: it is in this list.
        unsafe { self.remove(node) };
        Some(Dequeued(found))
    }
}

/// A waiter that was taken out: it sleeps until this wakes it.
#[must_use]
pub(crate) struct Dequeued<P: Platform, K>(*const Node<P, K>);

impl<P: Platform, K> Dequeued<P, K> {
    /// Wakes it.
    pub(crate) fn wake(self) {
        // SAFETY: L1: its thread waits for this. L3: it is not used any more.
        unsafe { Node::wake(self.0) };
    }
}
