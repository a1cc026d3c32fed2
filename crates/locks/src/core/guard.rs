//! The locked queue of a lock, and the service that its holder owes to threads that did not wait for it.

use ::core::ops::{Deref, DerefMut};

use spinpark_platform::Platform;

use super::release::Look;
use super::LockCore;
use crate::queue::QueueGuard;
use crate::word;

/// The locked queue of a lock. Dropping it unlocks, and says whether releases have to look (A1).
pub(crate) struct Guard<'a, P: Platform> {
    pub(super) core: &'a LockCore<P>,
    pub(super) queue: QueueGuard<'a, P>,
    /// Releases have to look, marked or not.
    pub(super) draws_attention: bool,
}

impl<'a, P: Platform> Deref for Guard<'a, P> {
    type Target = QueueGuard<'a, P>;

    fn deref(&self) -> &Self::Target {
        &self.queue
    }
}

impl<P: Platform> DerefMut for Guard<'_, P> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.queue
    }
}

impl<P: Platform> Drop for Guard<'_, P> {
    fn drop(&mut self) {
        if self.queue.unlock(self.attention(), true).is_some() {
            self.serve_and_unlock();
        }
    }
}

impl<P: Platform> Guard<'_, P> {
    /// Whether releases have to look from now on.
    fn attention(&self) -> bool {
        // A foreign word has lost the marks of those that are queued (X2).
        let is_marked = |seen| word::is_marked(seen) || word::is_foreign(seen);
        self.draws_attention || self.queue.had_attention() || is_marked(self.core.peek())
    }

    /// V1: other threads have asked for it.
    #[cold]
    #[inline(never)]
    fn serve_and_unlock(&mut self) {
        let mut look = Look::new();
        loop {
            look.append(self.core.look(&mut self.queue, None));
            if self.queue.unlock(self.attention(), true).is_none() {
                break;
            }
        }
        look.deliver();
    }
}
