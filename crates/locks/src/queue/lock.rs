//! The queue lock and what can be done under it.
//!
//! A three-state futex lock (Drepper, "Futexes Are Tricky", mutex 3) that is held for a few dozen instructions. It
//! spins a little and then sleeps, so a preempted or low-priority holder never makes others burn their slice.
//!
//! # State
//!
//! | value of bits 0–1 | name        | held? | sleepers? | who may leave it                                    |
//! |-------------------|-------------|-------|-----------|-----------------------------------------------------|
//! | 0                 | –           | no    | no        | anybody, to `LOCKED`                                |
//! | 1                 | `LOCKED`    | yes   | no        | the holder; anybody, to 3                           |
//! | 3                 | + `QUEUED`  | yes   | perhaps   | the holder, which then wakes one                    |
//!
//! Bit 2, `ATTENTION`, belongs to the owner of the queue, who sets it as the guard is dropped. See A1 in
//! [`core`](crate::core).
//!
//! Bits 3–31 are the process generation of the last holder. A thread that finds an older one lives in a forked child:
//! holder and waiters are threads of the parent, so it takes the lock over and empties the list.
//!
//! # Orderings
//!
//! | operation          | order   | pairs with       | because                                                     |
//! |--------------------|---------|------------------|-------------------------------------------------------------|
//! | lock: CAS          | Acquire | unlock           | the list as the last holder left it                         |
//! | mark `QUEUED`: CAS | Relaxed | –                | only tells the holder to wake; the sleeper checks the value |
//! | unlock: swap       | Release | lock, is current | publishes the list, and the word that goes with it          |
//! | is current: load   | Acquire | unlock           | flags set after it must not be wiped by the adoption        |
//!
//! Checked by: `verify` (every model of a lock runs through it; its own model has the mutant that re-locks with
//! `LOCKED` after a sleep), native stress with 256 threads.

use core::marker::PhantomData;

use spinpark_platform::{AtomicU32, Cell, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, Platform};

use super::node::{Chain, Links, Popped, WaitNode};
use super::WaitQueue;

const LOCKED: u32 = 1;
const QUEUED: u32 = 2;
const ATTENTION: u32 = 4;
const GENERATION_SHIFT: u32 = 3;
const STATE: u32 = LOCKED | QUEUED | ATTENTION;
/// Either says that the queue is or may be somebody's business.
pub(crate) const BUSY: u32 = LOCKED | ATTENTION;

/// The locked queue. Dropping it unlocks.
pub(crate) struct QueueGuard<'a, P: Platform> {
    queue: &'a WaitQueue<P>,
    inherited: bool,
    /// Whether `ATTENTION` was set when the queue was locked.
    had_attention: bool,
    /// Whether to leave `ATTENTION` set.
    attention: bool,
    /// The guard stays on its thread.
    not_send: PhantomData<*const ()>,
}

impl<P: Platform> WaitQueue<P> {
    /// Whether the queue is known to be this process' own, not its parent's from before a fork.
    ///
    /// In a forked child a locked queue is not known to be: its holder may be the thread that is about to make the
    /// owner's word right. `false` is always safe; who gets it locks the queue once.
    #[inline]
    pub(crate) fn is_current(&self) -> bool {
        let generation = P::generation();
        let seen = self.lock.load(Acquire);
        seen >> GENERATION_SHIFT == generation && (generation == 0 || seen & LOCKED == 0)
    }

    /// The word whose bits [`BUSY`] say that the queue is or may be somebody's business.
    #[inline]
    pub(crate) fn guard_word(&self) -> &P::AtomicU32 {
        &self.lock
    }

    /// Whether the queue is nobody's business; a hint.
    #[inline]
    pub(crate) fn is_calm(&self) -> bool {
        self.lock.load(Relaxed) & BUSY == 0
    }

    /// Sees to it that `ATTENTION` is set, for the holder of the lock, whose release can be no plain store under way. Returns
    /// whether it was not set before; `None`: the queue is locked just now, and nothing was done.
    pub(crate) fn begin_attention(&self) -> Option<bool> {
        let seen = self.lock.load(Relaxed);
        if seen & (LOCKED | QUEUED) != 0 {
            return None;
        }
        if seen & ATTENTION != 0 {
            return Some(false);
        }
        // Relaxed: this thread's own release reads it; a holder of the queue learns it from the compare-exchange that locks.
        self.lock.compare_exchange(seen, seen | ATTENTION, Relaxed, Relaxed).ok().map(|_| true)
    }

    /// Clears `ATTENTION`, if the queue is not locked. The caller then looks (with a read-modify-write) whether what it
    /// stood for has really ended.
    pub(crate) fn end_attention(&self) {
        let seen = self.lock.load(Relaxed);
        if seen & (LOCKED | QUEUED) == 0 && seen & ATTENTION != 0 {
            // Acquire: what the last holder of the queue wrote comes before that look.
            let _ = self.lock.compare_exchange(seen, seen & !ATTENTION, Acquire, Relaxed);
        }
    }

    /// Locks the queue.
    pub(crate) fn lock(&self) -> QueueGuard<'_, P> {
        let generation = P::generation() << GENERATION_SHIFT;
        let mut mine = generation | LOCKED;
        let mut polls = P::TUNING.queue_polls;
        let mut seen = self.lock.load(Relaxed);
        loop {
            let inherited = seen & !STATE != generation;
            if seen & LOCKED == 0 || inherited {
                match self.lock.compare_exchange_weak(seen, mine, Acquire, Relaxed) {
                    Ok(_) => return self.enter(seen, inherited),
                    Err(now) => seen = now,
                }
            } else if polls > 0 {
                polls -= 1;
                P::spin_hint();
                seen = self.lock.load(Relaxed);
            } else {
                seen = self.sleep(seen);
                // Others may sleep beside us: whoever has slept owes them a wake (a woken waiter that re-locks with
                // the uncontended value loses one).
                mine = generation | LOCKED | QUEUED;
            }
        }
    }

    /// Sleeps until the holder has unlocked; returns the value to go on with.
    #[cold]
    #[inline(never)]
    fn sleep(&self, seen: u32) -> u32 {
        let marked = seen | QUEUED;
        if seen == marked || self.lock.compare_exchange(seen, marked, Relaxed, Relaxed).is_ok() {
            P::futex_wait(&self.lock, marked, None);
        }
        self.lock.load(Relaxed)
    }

    /// The guard of a queue whose lock word held `seen` before it was locked.
    fn enter(&self, seen: u32, inherited: bool) -> QueueGuard<'_, P> {
        let had_attention = seen & ATTENTION != 0 && !inherited;
        let guard =
            QueueGuard { queue: self, inherited, had_attention, attention: false, not_send: PhantomData };
        if inherited {
            guard.set_head(core::ptr::null()); // Q5
        }
        guard
    }
}

impl<P: Platform> Drop for QueueGuard<'_, P> {
    fn drop(&mut self) {
        let key: *const P::AtomicU32 = &self.queue.lock; // taken before the unlock: the queue may die after it
        let attention = if self.attention { ATTENTION } else { 0 };
        let free = P::generation() << GENERATION_SHIFT | attention;
        if self.queue.lock.swap(free, Release) & QUEUED != 0 {
            wake_one::<P>(key);
        }
    }
}

#[cold]
#[inline(never)]
fn wake_one<P: Platform>(key: *const P::AtomicU32) {
    P::futex_wake(key, 1);
}

impl<'a, P: Platform> QueueGuard<'a, P> {
    /// Whether this process found the queue as its parent had left it at the fork: the list was emptied just now, and
    /// what the owner's word says about waiters is wrong.
    pub(crate) fn was_inherited(&self) -> bool {
        self.inherited
    }

    /// Whether `ATTENTION` was set when the queue was locked: no release by a plain store has begun since (A1).
    pub(crate) fn had_attention(&self) -> bool {
        self.had_attention
    }

    /// Says whether `ATTENTION` is to be set when the queue is unlocked. Not, if nobody says so.
    pub(crate) fn set_attention(&mut self, attention: bool) {
        self.attention = attention;
    }

    fn head_ptr(&self) -> *const WaitNode<P> {
        // SAFETY: Q1: this guard holds the queue lock.
        self.queue.head.with(|head| unsafe { *head })
    }

    fn set_head(&self, node: *const WaitNode<P>) {
        // SAFETY: Q1: this guard holds the queue lock.
        self.queue.head.with_mut(|head| unsafe { *head = node });
    }

    /// The first waiter.
    pub(crate) fn head(&self) -> Option<&WaitNode<P>> {
        // SAFETY: Q3: a linked node is alive, and only this guard can unlink it.
        unsafe { self.head_ptr().as_ref() }
    }

    /// Every waiter, in the order in which they are served.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &WaitNode<P>> + '_ {
        let first = self.head_ptr();
        let mut next = first;
        core::iter::from_fn(move || {
            // SAFETY: Q3, as in `head`.
            let node = unsafe { next.as_ref() }?;
            let after = node.links().next;
            next = if after == first { core::ptr::null() } else { after };
            Some(node)
        })
    }

    /// Links `node` behind all of its rank.
    pub(crate) fn push(&mut self, node: &WaitNode<P>) {
        // Without a walk, if it has none: those of no rank come last.
        let next = if node.rank == 0 { None } else { self.iter().find(|other| other.rank < node.rank) };
        self.link(node, next);
    }

    /// Links `node`, which was woken and lost, before all of its rank.
    pub(crate) fn push_again(&mut self, node: &WaitNode<P>) {
        self.link(node, self.iter().find(|other| other.rank <= node.rank));
    }

    /// Whether [`QueueGuard::push_again`] would make `node` the head.
    pub(crate) fn would_lead(&self, node: &WaitNode<P>) -> bool {
        self.head().is_none_or(|head| head.rank <= node.rank)
    }

    /// Links `node` before `next`; at the end if that is `None`.
    fn link(&self, node: &WaitNode<P>, next: Option<&WaitNode<P>>) {
        debug_assert!(!node.is_linked(), "Q2: a node is in one list at most");
        node.set_linked(true);
        let me: *const WaitNode<P> = node;
        let Some(head) = self.head() else {
            node.set_links(Links { next: me, prev: me });
            self.set_head(me);
            return;
        };
        let after = next.unwrap_or(head); // the list is circular: its end is one step before its head
        let last = after.links().prev;
        node.set_links(Links { next: after, prev: last });
        // SAFETY: Q3: `last` is linked (it may be `after` itself), so it is alive.
        let before = unsafe { &*last };
        before.update_links(|links| links.next = me);
        after.update_links(|links| links.prev = me);
        if next.is_some_and(|next| core::ptr::eq(next, head)) {
            self.set_head(me);
        }
    }

    /// Whether `node` is in the list; if not, it is out or popped.
    pub(crate) fn is_linked(&self, node: &WaitNode<P>) -> bool {
        node.is_linked()
    }

    /// Takes `node` out; `false` if it is not linked (somebody has popped it and will notify it).
    pub(crate) fn remove(&mut self, node: &WaitNode<P>) -> bool {
        if !node.is_linked() {
            return false;
        }
        node.set_linked(false);
        let links = node.links();
        let me: *const WaitNode<P> = node;
        if links.next == me {
            self.set_head(core::ptr::null());
        } else {
            // SAFETY: Q3: the neighbours of a linked node are linked, so they are alive.
            let next = unsafe { &*links.next };
            // SAFETY: as above.
            let prev = unsafe { &*links.prev };
            next.update_links(|it| it.prev = links.prev);
            prev.update_links(|it| it.next = links.next);
            if self.head_ptr() == me {
                self.set_head(links.next);
            }
        }
        node.set_links(Links::OUT);
        true
    }

    /// Takes up to `count` nodes that are `wanted` out of the list, in its order, for the caller to notify (Q2). One walk.
    #[inline(never)]
    pub(crate) fn pop_some(&mut self, count: u32, wanted: impl Fn(&WaitNode<P>) -> bool) -> Chain<P> {
        let mut popped = Chain::new();
        let Some(last) = self.head().map(|head| head.links().prev) else { return popped };
        let mut at = self.head_ptr();
        let mut left = count;
        while left > 0 {
            // SAFETY: Q3: `at` is linked: it was the head, or the next of a linked node, and has not been popped.
            let node = unsafe { &*at };
            let (next, done) = (node.links().next, at == last);
            if wanted(node) {
                popped.push(self.pop(at));
                left -= 1;
            }
            if done {
                break;
            }
            at = next;
        }
        popped
    }

    /// Takes `node`, which is linked, out of the list for the caller to notify (Q2).
    pub(crate) fn pop(&mut self, node: *const WaitNode<P>) -> Popped<P> {
        // SAFETY: Q3: the caller found `node` in this list under this guard.
        let found = unsafe { &*node };
        let was_linked = self.remove(found);
        debug_assert!(was_linked, "Q2: only a linked node can be popped");
        Popped::new(node)
    }
}
