//! The locked queue of a condition variable, with the signals that other threads leave to its holder.

use ::core::ops::{Deref, DerefMut};

use spinpark_platform::Platform;

use super::RawCondvar;
use crate::queue::{Chain, QueueGuard, RELEASED};

/// The locked queue of a condition variable. Dropping it unlocks, after the signals that other threads have left to the calling
/// thread (C6).
pub(super) struct Guard<'a, P: Platform> {
    pub(super) condvar: &'a RawCondvar<P>,
    pub(super) queue: QueueGuard<'a, P>,
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
    #[inline(never)] // for the drop-in's size
    fn drop(&mut self) {
        let mut waiters = Chain::new();
        while let Some(asked) = self.queue.unlock(false, false) {
            let signals = asked.signals();
            let all = signals == u32::MAX;
            for _ in 0..if all { 1 } else { signals } {
                waiters.append(self.condvar.claim(&mut self.queue, all).0);
            }
        }
        waiters.notify_all(RELEASED);
    }
}
