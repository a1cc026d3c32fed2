//! The guard of a locked queue: whatever the queue belongs to, dropping it does what other threads have asked
//! for, and unlocks.

use core::ops::{Deref, DerefMut};

use spinpark_platform::Platform;

use super::lock::{Ask, LockedQueue};
use super::WaitQueue;

/// What a wait queue belongs to, with the word that says something about its waiters: a lock, or a condition
/// variable.
pub(crate) trait Owner<P: Platform>: Sized {
    fn queue(&self) -> &WaitQueue<P>;

    /// Q5: makes the word say that there are no waiters. The queue, which is locked, was the parent's.
    fn forget_waiters(&self);

    /// Does what other threads have asked for, and unlocks.
    fn unlock_queue(&self, queue: &mut LockedQueue<'_, P>);

    /// Locks the queue, and makes the word agree with it if it was the parent's.
    fn lock_queue(&self) -> QueueGuard<'_, P, Self> {
        QueueGuard::new(self, self.queue().lock())
    }

    /// As [`Owner::lock_queue`], unless another thread has the queue locked while this one sleeps for `span`
    /// ns: [`WaitQueue::lock_within`].
    fn lock_queue_within(&self, span: &dyn Fn() -> u64) -> Option<QueueGuard<'_, P, Self>> {
        self.queue().lock_within(span).map(|queue| QueueGuard::new(self, queue))
    }

    /// As [`Owner::lock_queue`]; or leaves `ask` to the thread that has the queue locked.
    fn lock_queue_or(&self, ask: Ask) -> Option<QueueGuard<'_, P, Self>> {
        self.queue().lock_or(ask).map(|queue| QueueGuard::new(self, queue))
    }
}

/// The locked queue of `owner`.
pub(crate) struct QueueGuard<'a, P: Platform, O: Owner<P>> {
    owner: &'a O,
    queue: LockedQueue<'a, P>,
}

impl<'a, P: Platform, O: Owner<P>> QueueGuard<'a, P, O> {
    /// The guard again, for a thread that has left its call by unwinding with the queue locked.
    ///
    /// # Safety
    ///
    /// `self` is not used again, and not dropped.
    #[allow(unsafe_code)] // the frame that owns the guard does not go on
    pub(crate) unsafe fn taken_over(&self) -> Self {
        // SAFETY: the caller vouches for there being one guard in use.
        unsafe { core::ptr::read(self) }
    }

    fn new(owner: &'a O, queue: LockedQueue<'a, P>) -> Self {
        if queue.was_inherited() {
            owner.forget_waiters();
        }
        Self { owner, queue }
    }
}

impl<'a, P: Platform, O: Owner<P>> Deref for QueueGuard<'a, P, O> {
    type Target = LockedQueue<'a, P>;

    fn deref(&self) -> &Self::Target {
        &self.queue
    }
}

impl<P: Platform, O: Owner<P>> DerefMut for QueueGuard<'_, P, O> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.queue
    }
}

impl<P: Platform, O: Owner<P>> Drop for QueueGuard<'_, P, O> {
    fn drop(&mut self) {
        self.owner.unlock_queue(&mut self.queue);
    }
}
