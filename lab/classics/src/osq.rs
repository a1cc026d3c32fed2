//! A queue of spinners that may leave: the optimistic spin queue (osq).
//!
//! Origin: `kernel/locking/osq_lock.c`, the answer to document 002's plain MCS queue of spinners
//! ([`mcs`](crate::mcs)), which cannot be left when spinning stops to pay. The kernel's nodes are per CPU and
//! never freed; user-space threads come and go, so here the nodes are `N` slots in the queue, which also
//! bounds the number of spinners. Links are slot numbers, so there is no pointer and no `unsafe`.
//!
//! Gives: FIFO order among spinners; each polls its own slot; leaving at any time. Does not give: mutual
//! exclusion of anything but the head's position; the head then polls the lock itself.
//!
//! # State
//!
//! `tail` is the youngest slot (0: none; slots are numbered from 1). A slot is claimed by one thread at a
//! time; `prev` and `next` are its neighbours, `head` is 1 once the predecessor has passed the position on.
//!
//! # Leaving
//!
//! - **Step A, stabilise prev**: take this slot out of `prev.next`. From then on `prev` can neither pass the
//!   position here nor leave: it waits for a successor to be linked. If the position arrives first, stay.
//! - **Step B, stabilise next**: take the successor out of this slot's `next`, or make `prev` the tail if
//!   there is none. From then on the successor cannot finish its own step A.
//! - **Step C, unlink**: join the two, which sets both free.
//!
//! # Invariants
//!
//! - **O1** A slot in the queue is claimed. A slot is given up only when no neighbour can refer to it any
//!   more: after step C, or after the position was passed on.
//! - **O2** At most one slot is the head.
//!
//! # Orderings
//!
//! | operation                | order   | pairs with          | because                                             |
//! |--------------------------|---------|---------------------|-----------------------------------------------------|
//! | claim: CAS               | Acquire | give up             | the last user's stores to the slot come first       |
//! | give up: store           | Release | claim               | as there                                            |
//! | `tail` swap              | AcqRel  | swap, `tail` CAS    | this slot's init before a successor links itself    |
//! | `prev.next` store        | Release | `next` swap         | this slot's `prev` and `head` before its neighbours |
//! |                          |         |                     | touch it                                            |
//! | step A: CAS              | AcqRel  | `next` store, swap  | a thread that takes a link owns it                  |
//! | step B, unlock: swap, CAS| AcqRel  | `next` store, swap  | a thread that takes a link owns it                  |
//! | step C: `prev`, `next`   | Release | step A loads, swaps | as above                                            |
//! | pass on: `head` store    | Release | wait: load          | what the head did before it left                    |
//! | wait: `head` load        | Acquire | pass on             | as there                                            |
//!
//! Checked by: `verify` (loom: `tests/it/osq.rs`, with mutants; the simulator: program `osq`), native stress.

use spinpark_platform::{
    AtomicU32, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, Platform,
};

const NONE: u32 = 0;

struct Slot<P: Platform> {
    claimed: P::AtomicU32,
    next: P::AtomicU32,
    prev: P::AtomicU32,
    head: P::AtomicU32,
}

/// A spin queue with slots for `N` spinners.
pub struct Osq<P: Platform, const N: usize = 4> {
    tail: P::AtomicU32,
    slots: [Slot<P>; N],
}

/// The head of the queue, held by one spinner; dropping it passes it on.
#[must_use = "dropping it passes the position on"]
pub struct Spot<'a, P: Platform, const N: usize> {
    queue: &'a Osq<P, N>,
    me: u32,
}

impl<P: Platform, const N: usize> Osq<P, N> {
    /// An empty queue.
    pub fn new() -> Self {
        let slot = |_| Slot {
            claimed: AtomicU32::new(0),
            next: AtomicU32::new(NONE),
            prev: AtomicU32::new(NONE),
            head: AtomicU32::new(0),
        };
        Self { tail: AtomicU32::new(NONE), slots: core::array::from_fn(slot) }
    }

    fn slot(&self, number: u32) -> &Slot<P> {
        &self.slots[number as usize - 1]
    }

    /// Whether no thread spins here; a hint.
    pub fn is_empty(&self) -> bool {
        self.tail.load(Relaxed) == NONE
    }

    /// Queues and waits to become the head, for as long as `keep_spinning` says so.
    ///
    /// `None` if every slot is taken, or if it left.
    pub fn enter(&self, mut keep_spinning: impl FnMut() -> bool) -> Option<Spot<'_, P, N>> {
        let me = self.claim()?;
        let slot = self.slot(me);
        slot.next.store(NONE, Relaxed);
        slot.head.store(0, Relaxed);
        let prev = self.tail.swap(me, AcqRel);
        if prev == NONE {
            return Some(Spot { queue: self, me });
        }
        slot.prev.store(prev, Relaxed);
        self.slot(prev).next.store(me, Release);
        while slot.head.load(Acquire) == 0 {
            if !keep_spinning() {
                return self.leave(me);
            }
            P::spin_hint();
        }
        Some(Spot { queue: self, me })
    }

    fn claim(&self) -> Option<u32> {
        let free = |slot: &Slot<P>| {
            slot.claimed.load(Relaxed) == 0 && slot.claimed.compare_exchange(0, 1, Acquire, Relaxed).is_ok()
        };
        self.slots.iter().position(free).map(|index| index as u32 + 1)
    }

    fn give_up(&self, me: u32) {
        self.slot(me).claimed.store(0, Release);
    }

    /// Leaves, unless the position arrives first.
    #[cold]
    fn leave(&self, me: u32) -> Option<Spot<'_, P, N>> {
        let slot = self.slot(me);
        // Step A. `prev` changes when the predecessor itself leaves.
        let prev = loop {
            let prev = slot.prev.load(Acquire);
            if self.slot(prev).next.compare_exchange(me, NONE, AcqRel, Relaxed).is_ok() {
                break prev;
            }
            if slot.head.load(Acquire) != 0 {
                return Some(Spot { queue: self, me });
            }
            P::spin_hint();
        };
        // Steps B and C.
        let next = self.take_next(me, prev);
        if next != NONE {
            self.slot(next).prev.store(prev, Release);
            self.slot(prev).next.store(next, Release);
        }
        self.give_up(me);
        None
    }

    /// Step B: takes the successor out of this slot, or makes `new_tail` the tail if there is none.
    fn take_next(&self, me: u32, new_tail: u32) -> u32 {
        loop {
            if self.tail.load(Relaxed) == me
                && self.tail.compare_exchange(me, new_tail, AcqRel, Relaxed).is_ok()
            {
                return NONE;
            }
            // Read before the swap: it is empty while the successor links itself or stands at its own step B.
            if self.slot(me).next.load(Relaxed) != NONE {
                let next = self.slot(me).next.swap(NONE, AcqRel);
                if next != NONE {
                    return next;
                }
            }
            P::spin_hint();
        }
    }

    fn pass_on(&self, me: u32) {
        let next = self.take_next(me, NONE);
        if next != NONE {
            self.slot(next).head.store(1, Release);
        }
        self.give_up(me);
    }
}

impl<P: Platform, const N: usize> Default for Osq<P, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform, const N: usize> Drop for Spot<'_, P, N> {
    fn drop(&mut self) {
        self.queue.pass_on(self.me);
    }
}
