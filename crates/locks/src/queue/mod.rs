//! The wait queue: a list of waiters, by real-time priority and then FIFO, on the waiters' own stacks, under
//! a small lock of its own.
//!
//! Origin: the intrusive lists of `kernel/locking` and nsync; nothing is allocated. Sixteen bytes: a word
//! that belongs to the queue's owner (a lock, a condition variable), the queue lock, the head. Zero is empty
//! and unlocked.
//!
//! ```text
//!  WaitQueue (in the lock)          nodes, each on its waiter's stack: a circle, in the order in which they are served (Q6)
//! ┌──────────────┐
//! │ word         │                 ┌────────────┐  next   ┌────────────┐  next   ┌────────────┐
//! │ queue lock   │            ┌──► │ rank 50    │ ──────► │ rank 0     │ ──────► │ rank 0     │ ──► to the head
//! │ head ────────┼────────────┘    │ token want │ ◄────── │ token want │ ◄────── │ token want │
//! └──────────────┘                 │ state      │  prev   │ state      │  prev   │ state      │
//!                                  └────────────┘         └────────────┘         └────────────┘
//! ```
//!
//! Each waiter sleeps on the `state` of its own node, so that a release wakes exactly the waiters that it
//! dequeued.
//!
//! # Invariants
//!
//! - **Q1** `head` and the links of every node in the list are touched only under the queue lock.
//! - **Q2** A node is in exactly one of these places: *out* (its thread owns it), *linked* (the list owns
//!   it), *dequeued* (the thread that took it from the list owns it, as a [`Dequeued`], until it notifies).
//! - **Q3** A thread whose node is linked or dequeued does not return from its wait: it first unlinks the
//!   node itself, under the queue lock, or it is notified. So a linked or dequeued node is alive.
//! - **Q4** A notification is the popper's last access to the node; the wake that follows uses its address as
//!   a key.
//! - **Q5** In a forked child the list and the lock are those of threads that do not exist there: a thread
//!   that locks the queue and finds an older generation empties it (see [`lock`]).
//! - **Q6** The list is sorted by rank (the real-time priority, [`Platform::priority`], of the thread as it
//!   queued; an upgrade is before all): higher first. Within a rank, it is FIFO, but for a waiter that was
//!   woken and lost: that is the first again.

mod list;
pub(crate) mod lock;
pub(crate) mod node;

pub(crate) use lock::{Ask, HasQueue, LockedQueue, QueueGuard, LOCKED_OR_CONTENDED};
pub(crate) use node::{Chain, EarlyWake, Notice, Slept, GRANTED, RELEASED, UNMARKED, WOKEN};
pub use node::{WaitNode, WaiterRefs};

use core::mem::offset_of;

use spinpark_platform::{AtomicU32, Cell, Platform};

/// Sixteen bytes: the owner's word, the queue lock, the head of the list; and the platform's padding.
#[repr(C)]
pub struct WaitQueue<P: Platform> {
    /// Belongs to the owner of the queue, not to the queue.
    pub(crate) word: P::AtomicU32,
    padding: P::Padding,
    lock: P::AtomicU32,
    gap: P::Gap,
    /// The first waiter, or null. The list is circular: the tail is `head.prev`.
    head: P::Cell<*const WaitNode<P>>,
}

// SAFETY: Q1: `head` and what it points to are touched only under the queue lock; Q3: what it points to is
// alive.
unsafe impl<P: Platform> Send for WaitQueue<P> {}
// SAFETY: as above.
unsafe impl<P: Platform> Sync for WaitQueue<P> {}

impl<P: Platform> WaitQueue<P> {
    /// An empty queue, from its parts: two words that hold 0, a null head, and the padding. For `const`
    /// initialisers, which cannot call the platform's constructors.
    pub const fn from_parts(
        word: P::AtomicU32,
        lock: P::AtomicU32,
        head: P::Cell<*const WaitNode<P>>,
        padding: P::Padding,
        gap: P::Gap,
    ) -> Self {
        Self { word, padding, lock, gap, head }
    }

    /// An empty queue.
    pub fn new() -> Self {
        let (word, lock) = (AtomicU32::new(0), AtomicU32::new(0));
        Self::from_parts(word, lock, Cell::new(core::ptr::null()), P::Padding::default(), P::Gap::default())
    }

    /// The owner's word.
    #[inline(always)]
    pub fn word(&self) -> &P::AtomicU32 {
        &self.word
    }

    /// The padding behind the word.
    #[inline(always)]
    pub fn padding(&self) -> &P::Padding {
        &self.padding
    }

    /// The padding before the head.
    #[inline(always)]
    pub fn gap(&self) -> &P::Gap {
        &self.gap
    }

    /// Where the queue lock and the head are, in bytes.
    #[must_use]
    pub const fn layout() -> [usize; 2] {
        [offset_of!(Self, lock), offset_of!(Self, head)]
    }
}

impl<P: Platform> Default for WaitQueue<P> {
    fn default() -> Self {
        Self::new()
    }
}
