//! The MCS queue lock: a FIFO spin lock in which each waiter spins on its own node.
//!
//! Origin: Mellor-Crummey and Scott (1991), in the form that document 002 takes out of the kernel's mutex (patch 5),
//! with its two later changes: no store to the node's flag without contention (patch 6), and acquire and release *on
//! the operations that lock and unlock* instead of barriers beside them (what patch 7 became, e72246748ff0).
//!
//! Gives: FIFO order, one cache-line transfer per hand-over. Does not give: sleeping. A waiter whose predecessor is
//! preempted spins for that whole time, so it is for sections that are short and threads that are not more than CPUs.
//!
//! # State
//!
//! | place         | value    | meaning                    | written by                                     |
//! |---------------|----------|----------------------------|------------------------------------------------|
//! | `tail`        | null     | unlocked                   | the last holder, by CAS from its own node      |
//! | `tail`        | a node   | the youngest in line       | an arriving thread, by swap                    |
//! | `node.next`   | null     | no successor known yet     | its thread, before it is in `tail`             |
//! | `node.next`   | a node   | the successor              | the successor, once                            |
//! | `node.locked` | 0 / 1    | must wait / may enter      | its thread 0, before; its predecessor 1, once  |
//!
//! # Invariants
//!
//! - **M1** A node is alive and unmoved from `lock` to the end of `unlock`, and one thread uses it at a time.
//! - **M2** A predecessor does not leave before it has set its successor's `locked`; so the successor's store to
//!   `prev.next` finds `prev` alive, and after setting `locked` the predecessor does not touch the successor's node again.
//!
//! # Orderings
//!
//! | operation             | order   | pairs with        | because                                                    |
//! |-----------------------|---------|-------------------|------------------------------------------------------------|
//! | node init: stores     | Relaxed | –                 | the swap publishes them                                    |
//! | `tail` swap           | AcqRel  | swap; unlock CAS  | Release: the node's init comes before the successor's      |
//! |                       |         |                   | store to `next`. Acquire: the last critical section        |
//! | `prev.next` store     | Release | unlock's load     | this node's `locked = 0` comes before the predecessor's 1  |
//! | wait: `locked` load   | Acquire | `locked` store    | the predecessor's critical section                         |
//! | unlock: `next` load   | Acquire | `prev.next` store | as there                                                   |
//! | unlock: `tail` CAS    | Release | swap              | this critical section; on failure nothing was read         |
//! | unlock: `locked` store| Release | wait              | this critical section. Relaxed here is the bug of the code |
//! |                       |         |                   | before patch 7: the section leaks past the unlock          |
//!
//! Checked by: `verify` (loom, with the barriers before patch 7 as a mutant).

use core::ptr::{self, NonNull};

use spinpark_platform::{
    AtomicPtr, AtomicU32, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, Platform,
};

/// One thread's place in line.
pub struct McsNode<P: Platform> {
    next: P::AtomicPtr<McsNode<P>>,
    locked: P::AtomicU32,
}

impl<P: Platform> McsNode<P> {
    /// A node that is not in line.
    pub fn new() -> Self {
        Self { next: AtomicPtr::new(ptr::null_mut()), locked: AtomicU32::new(0) }
    }
}

impl<P: Platform> Default for McsNode<P> {
    fn default() -> Self {
        Self::new()
    }
}

/// An MCS lock: one pointer, null is unlocked.
pub struct McsLock<P: Platform> {
    tail: P::AtomicPtr<McsNode<P>>,
}

impl<P: Platform> McsLock<P> {
    /// An unlocked lock.
    pub fn new() -> Self {
        Self::from_tail(AtomicPtr::new(ptr::null_mut()))
    }

    /// An unlocked lock from a null pointer, for `const` initialisers.
    pub const fn from_tail(tail: P::AtomicPtr<McsNode<P>>) -> Self {
        Self { tail }
    }

    /// Runs `section` with the lock held, with a node on this thread's stack.
    pub fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        struct Unlock<'a, P: Platform>(&'a McsLock<P>, NonNull<McsNode<P>>);
        impl<P: Platform> Drop for Unlock<'_, P> {
            fn drop(&mut self) {
                // SAFETY: the node was locked just below, and lives in the frame that this guard lives in.
                unsafe { self.0.unlock(self.1) }
            }
        }
        let mut node = McsNode::new();
        let node = NonNull::from(&mut node);
        // SAFETY: M1: the node outlives the guard, which unlocks also when `section` unwinds.
        unsafe { self.lock(node) };
        let _unlock = Unlock(self, node);
        section()
    }

    /// Acquires; spins until it is this node's turn.
    ///
    /// # Safety
    ///
    /// M1: `node` is alive, does not move and is not used for anything else until [`McsLock::unlock`] has returned.
    #[inline]
    pub unsafe fn lock(&self, node: NonNull<McsNode<P>>) {
        // SAFETY: M1.
        let me = unsafe { node.as_ref() };
        me.next.store(ptr::null_mut(), Relaxed);
        me.locked.store(0, Relaxed);
        let prev = self.tail.swap(node.as_ptr(), AcqRel);
        // SAFETY: M2: the predecessor waits for this node to be linked before it leaves.
        if let Some(prev) = unsafe { prev.as_ref() } {
            prev.next.store(node.as_ptr(), Release);
            while me.locked.load(Acquire) == 0 {
                P::spin_hint();
            }
        }
    }

    /// Acquires if the lock is free and has no waiters.
    ///
    /// # Safety
    ///
    /// As for [`McsLock::lock`], if it returns `true`.
    #[inline]
    pub unsafe fn try_lock(&self, node: NonNull<McsNode<P>>) -> bool {
        // SAFETY: M1.
        let me = unsafe { node.as_ref() };
        me.next.store(ptr::null_mut(), Relaxed);
        me.locked.store(0, Relaxed);
        // Read before the compare-exchange, which would take the line exclusive also when it fails (patch 1).
        self.tail.load(Relaxed).is_null()
            && self.tail.compare_exchange(ptr::null_mut(), node.as_ptr(), AcqRel, Relaxed).is_ok()
    }

    /// Releases to the next in line.
    ///
    /// # Safety
    ///
    /// `node` is the one that this thread acquired the lock with.
    #[inline]
    pub unsafe fn unlock(&self, node: NonNull<McsNode<P>>) {
        // SAFETY: M1.
        let me = unsafe { node.as_ref() };
        let mut next = me.next.load(Acquire);
        if next.is_null() {
            if self.tail.compare_exchange(node.as_ptr(), ptr::null_mut(), Release, Relaxed).is_ok() {
                return;
            }
            // A successor is in `tail` and about to link itself.
            loop {
                next = me.next.load(Acquire);
                if !next.is_null() {
                    break;
                }
                P::spin_hint();
            }
        }
        // SAFETY: M2: the successor waits for this very store.
        unsafe { (*next).locked.store(1, Release) };
    }
}

impl<P: Platform> Default for McsLock<P> {
    fn default() -> Self {
        Self::new()
    }
}
