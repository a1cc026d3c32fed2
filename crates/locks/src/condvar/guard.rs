//! How a condition variable's queue is unlocked: after the signals that other threads leave to its holder.

use spinpark_platform::{AtomicU32, Ordering::Relaxed, Platform};

use super::RawCondvar;
use crate::queue::{Chain, LockedQueue, Owner, WaitQueue, RELEASED};

impl<P: Platform> Owner<P> for RawCondvar<P> {
    #[inline(always)]
    fn queue(&self) -> &WaitQueue<P> {
        &self.queue
    }

    fn forget_waiters(&self) {
        self.queue.word.store(0, Relaxed);
    }

    /// C6.
    #[inline(never)] // for the drop-in's size
    fn unlock_queue(&self, queue: &mut LockedQueue<'_, P>) {
        let mut waiters = Chain::new();
        while let Some(asked) = queue.unlock(false, false) {
            let signals = asked.signals();
            let all = signals == u32::MAX;
            for _ in 0..if all { 1 } else { signals } {
                waiters.append(self.claim(queue, all).0);
            }
        }
        waiters.notify_all(RELEASED);
    }
}
