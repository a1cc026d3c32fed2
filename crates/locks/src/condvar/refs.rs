//! The references of signalled waiters (C4), and how they end where no other waiter is left (C5).

use spinpark_platform::{AtomicU32, Ordering::Relaxed, Platform};

use super::{RawCondvar, SIGNALLED, SIGNALLED_REF};
use crate::core::LockCore;
use crate::queue::{LockedQueue, Owner, WaitNode, WaiterRefs};

impl<P: Platform> RawCondvar<P> {
    #[allow(unsafe_code)] // waiters remember where references are counted as a pointer
    pub(super) fn refs_of<'a>(waiter: &WaitNode<P>) -> Option<&'a WaiterRefs<P>> {
        // SAFETY: null or from `cancellable`. The callers hold the queue lock of the condition variable, or a
        // reference.
        unsafe { waiter.refs.as_ref() }
    }

    /// Makes the waiter's reference, if there is still one, the caller's to drop.
    pub(super) fn end_reference<'a>(waiter: &WaitNode<P>) -> Option<&'a WaiterRefs<P>> {
        let ended = waiter.claim.compare_exchange(SIGNALLED_REF, SIGNALLED, Relaxed, Relaxed).is_ok();
        if ended {
            Self::refs_of(waiter)
        } else {
            None
        }
    }

    /// C5: of the waiters in a mutex' queue. The caller has it locked, and this one, which has no waiter.
    pub(super) fn end_references(theirs: &LockedQueue<'_, P>, refs: &WaiterRefs<P>) {
        for node in theirs.iter().filter(|node| core::ptr::eq(node.refs, refs)) {
            Self::end_reference(node).inspect(|refs| refs.drop_one());
        }
    }

    /// C5: by the last waiter, awake and out of this queue, which takes its mutex back later, and has a
    /// reference until now.
    #[cold]
    #[inline(never)]
    pub(super) fn end_others(&self, last: &WaitNode<P>, refs: &WaiterRefs<P>) {
        let theirs = Self::mutex_of(last).map(LockCore::lock_queue);
        let queue = self.lock_queue();
        if let Some(theirs) = theirs.as_ref().filter(|_| !self.has_waiters()) {
            Self::end_references(theirs, refs);
        }
        drop(queue);
        drop(theirs);
        refs.drop_one();
    }
}
