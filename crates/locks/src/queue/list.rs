//! The list of waiters: what can be done under the queue lock.

use spinpark_platform::{Cell, Platform};

use super::lock::LockedQueue;
use super::node::{Chain, Dequeued, Links, WaitNode};

impl<P: Platform> LockedQueue<'_, P> {
    fn head_ptr(&self) -> *const WaitNode<P> {
        // SAFETY: Q1: the caller holds the queue lock.
        self.queue.head.with(|head| unsafe { *head })
    }

    pub(super) fn set_head(&self, node: *const WaitNode<P>) {
        // SAFETY: Q1: the caller holds the queue lock.
        self.queue.head.with_mut(|head| unsafe { *head = node });
    }

    /// The first waiter.
    pub(crate) fn head(&self) -> Option<&WaitNode<P>> {
        // SAFETY: Q3: a linked node is alive, and only the holder of the queue lock can unlink it.
        unsafe { self.head_ptr().as_ref() }
    }

    /// The last waiter.
    fn tail(&self) -> Option<&WaitNode<P>> {
        let head = self.head()?;
        // SAFETY: Q3: the neighbour of a linked node is linked, so it is alive.
        Some(unsafe { &*head.links().prev })
    }

    /// Whether `node`, which is linked, is the first or the last one.
    pub(crate) fn is_at_an_end(&self, node: &WaitNode<P>) -> bool {
        let is = |other: Option<&WaitNode<P>>| other.is_some_and(|other| core::ptr::eq(other, node));
        is(self.head()) || is(self.tail())
    }

    /// The waiter to appoint (L3 in `core`): the last one, if neither that nor the first one has a timer. If
    /// `pops`, of those behind the head, which is about to be dequeued. If the others rely `on_head`, only the
    /// last one counts, and none is needed if the head is alone.
    pub(crate) fn lacks_timer(&self, pops: bool, on_head: bool) -> Option<&WaitNode<P>> {
        let head = self.head()?;
        // SAFETY: Q3: the neighbour of a linked node is linked, so it is alive.
        let second = unsafe { &*head.links().next };
        let tail = self.tail()?;
        let is_alone = core::ptr::eq(head, tail) && (pops || on_head);
        let first = if pops { second } else { head };
        let has_timer = is_alone || !on_head && first.has_timer() || tail.has_timer();
        (!has_timer).then_some(tail)
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

    /// Links `node`, which was woken and lost, before all of its rank but those that have starved (L4 in
    /// `core`); if the first of its rank has `requested` the lock, behind that as well.
    pub(crate) fn push_behind_owed(&mut self, node: &WaitNode<P>, requested: bool) {
        let mut requested = requested;
        let next = self.iter().find(|other| {
            let is_owed = other.rank == node.rank && (core::mem::take(&mut requested) || other.has_starved());
            other.rank <= node.rank && !is_owed
        });
        self.link(node, next);
    }

    /// Whether [`LockedQueue::push_again`] would make `node` the head.
    pub(crate) fn would_lead(&self, node: &WaitNode<P>) -> bool {
        self.head().is_none_or(|head| head.rank <= node.rank)
    }

    /// How many waiters may come in alongside readers. Without a walk: the waiters' stacks are in no cache.
    pub(crate) fn joiners(&self) -> u32 {
        self.head().map_or(0, WaitNode::joiners)
    }

    /// Links `node` before `next`; at the end if that is `None`.
    fn link(&self, node: &WaitNode<P>, next: Option<&WaitNode<P>>) {
        node.set_linked(true);
        let me: *const WaitNode<P> = node;
        let own = node.joins();
        let Some(head) = self.head() else {
            node.set_joiners(own);
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
            node.set_joiners(head.take_joiners() + own);
            self.set_head(me);
        } else if own > 0 {
            head.set_joiners(head.joiners() + own);
        }
    }

    /// Whether `node` is in the list; if not, it is out or dequeued.
    pub(crate) fn is_linked(&self, node: &WaitNode<P>) -> bool {
        node.is_linked()
    }

    /// Takes `node` out; `false` if it is not linked (another thread has dequeued it and will notify it).
    pub(crate) fn remove(&mut self, node: &WaitNode<P>) -> bool {
        if !node.is_linked() {
            return false;
        }
        node.set_linked(false);
        let links = node.links();
        let me: *const WaitNode<P> = node;
        // In a forked child, a waiter of the parent is in no count.
        let others = self.joiners().saturating_sub(node.joins());
        if links.next == me {
            node.take_joiners();
            self.set_head(core::ptr::null());
        } else {
            // SAFETY: Q3: the neighbours of a linked node are linked, so they are alive.
            let next = unsafe { &*links.next };
            // SAFETY: as above.
            let prev = unsafe { &*links.prev };
            next.update_links(|it| it.prev = links.prev);
            prev.update_links(|it| it.next = links.next);
            if self.head_ptr() == me {
                node.take_joiners();
                self.set_head(links.next);
            }
            if let Some(head) = self.head() {
                head.set_joiners(others);
            }
        }
        node.set_links(Links::OUT);
        true
    }

    /// Takes up to `count` nodes that are `wanted` out of the list, in its order, for the caller to notify
    /// (Q2). One walk.
    #[inline(never)]
    pub(crate) fn pop_some(&mut self, count: u32, wanted: impl Fn(&WaitNode<P>) -> bool) -> Chain<P> {
        let mut dequeued = Chain::new();
        let Some(last) = self.head().map(|head| head.links().prev) else { return dequeued };
        let mut at = self.head_ptr();
        let mut left = count;
        while left > 0 {
            // SAFETY: Q3: `at` is linked: it was the head, or the next of a linked node, and has not been
            // dequeued.
            let node = unsafe { &*at };
            let (next, done) = (node.links().next, at == last);
            if wanted(node) {
                dequeued.push(self.pop(at));
                left -= 1;
            }
            if done {
                break;
            }
            at = next;
        }
        dequeued
    }

    /// Takes `node`, which is linked, out of the list for the caller to notify (Q2).
    pub(crate) fn pop(&mut self, node: *const WaitNode<P>) -> Dequeued<P> {
        // SAFETY: Q3: the caller found `node` in this list under the queue lock.
        let found = unsafe { &*node };
        let was_linked = self.remove(found);
        debug_assert!(was_linked, "Q2: only a linked node can be dequeued");
        Dequeued::new(node)
    }
}
