//! Waiting in line.

use spinpark_platform::Platform;

use super::count::{self, ACTIVE, WAITING, WRITE};
use super::grant::Wake;
use super::{Kind, Rwsem, Series};
use crate::wait::{Locked, Node};

impl<P: Platform, S: Series> Rwsem<P, S> {
    #[cold]
    #[inline(never)]
    pub(super) fn read_slow(&self) {
        let node = Node::new(Kind::Reader);
        let mut waiters = self.waiters.lock();
        let is_first = waiters.is_empty();
        let change = if is_first { WAITING - ACTIVE } else { -ACTIVE };
        // SAFETY: L1: the node is in this frame, which does not end before it was taken out and woken.
        unsafe { waiters.push_back(&node) };
        let count = self.add(change); // S1, S2
        let is_idle = count == WAITING;
        let are_readers = count > WAITING && is_first;
        if is_idle || are_readers {
            self.wake_line(&mut waiters, Wake::Any);
        }
        drop(waiters);
        node.schedule(); // S3
    }

    #[cold]
    #[inline(never)]
    pub(super) fn write_slow(&self) {
        if S::SPINS {
            self.add(-WRITE);
            if self.spin() {
                return;
            }
        }
        let node = Node::new(Kind::Writer);
        let mut waiters = self.waiters.lock();
        let is_first = waiters.is_empty();
        let tried = if S::SPINS { 0 } else { -WRITE };
        let change = if is_first { tried + WAITING } else { tried };
        // SAFETY: L1: the node is in this frame, and is removed before its end.
        unsafe { waiters.push_back(&node) };
        let mut count = if change == 0 { self.peek() } else { self.add(change) }; // S1, S2
        if !is_first && count > WAITING {
            // Readers hold it: those in front of this writer may come in as well.
            self.wake_line(&mut waiters, Wake::Readers);
        }
        while !(count::is_idle(count) && self.take_from_line(&waiters)) {
            drop(waiters);
            (count, waiters) = self.sleep(&node);
        }
        // SAFETY: it was pushed above, and writers remove themselves (S3).
        unsafe { waiters.remove(&node) };
        drop(waiters);
        self.note_owner();
    }

    /// Takes the lock, if no thread is active, for a writer in the list (S1: the last one takes the waiting
    /// part along).
    fn take_from_line(&self, waiters: &Locked<'_, P, Kind>) -> bool {
        let new = if waiters.is_single() { WRITE } else { WRITE + WAITING };
        self.exchange(WAITING, new).is_ok()
    }

    /// Sleeps until no thread seems to be active; returns the count with the list's lock.
    fn sleep(&self, node: &Node<P, Kind>) -> (i32, Locked<'_, P, Kind>) {
        loop {
            node.schedule();
            if S::LOOKS_UNDER_LOCK {
                let waiters = self.waiters.lock();
                node.set_sleeping();
                P::full_fence(); // S4
                return (self.peek(), waiters);
            }
            node.set_sleeping();
            P::full_fence(); // a release sees that this thread sleeps, or is seen here
            let count = self.peek();
            if count::is_idle(count) {
                return (count, self.waiters.lock());
            }
        }
    }
}
