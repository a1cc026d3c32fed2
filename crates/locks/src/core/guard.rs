//! How a lock's queue is unlocked: with the service that its holder owes to threads that did not wait for it.

use spinpark_platform::{AtomicU32, Ordering::Relaxed, Platform};

use super::release::Serviced;
use super::LockCore;
use crate::queue::{LockedQueue, Owner, Told, WaitQueue};
use crate::word;

impl<P: Platform> Owner<P> for LockCore<P> {
    #[inline(always)]
    fn queue(&self) -> &WaitQueue<P> {
        &self.queue
    }

    fn forget_waiters(&self) {
        self.word().fetch_and(!word::FLAGS, Relaxed);
    }

    #[inline(never)] // for the drop-in's size
    fn unlock_queue(&self, queue: &mut LockedQueue<'_, P>) {
        if queue.unlock(self.attention(queue), true).is_some() {
            self.service_asked(queue);
        }
    }
}

impl<P: Platform> LockCore<P> {
    /// Whether releases have to read the word from now on (A1).
    fn attention(&self, queue: &LockedQueue<'_, P>) -> bool {
        // A foreign word has lost the marks of those that are queued (X2).
        let is_marked = |seen| word::is_marked(seen) || word::is_foreign(seen);
        queue.had_attention() || is_marked(self.peek())
    }

    /// V1: other threads have asked for it. Unlocks the queue.
    #[cold]
    #[inline(never)]
    fn service_asked(&self, queue: &mut LockedQueue<'_, P>) {
        let mut serviced = Serviced::new();
        let mut told = None;
        loop {
            serviced.append(self.service(queue, None));
            // Once: a second service, of what was asked for meanwhile, is told below.
            if queue.keeps_alive() && told.is_none() {
                told = Some(serviced.tell());
            }
            if queue.unlock(self.attention(queue), true).is_none() {
                break;
            }
        }
        told.into_iter().flatten().for_each(Told::wake);
        serviced.notify();
    }
}
