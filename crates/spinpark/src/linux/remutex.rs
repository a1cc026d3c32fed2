//! [`ReentrantMutex`] and its guards.

use std::num::NonZeroUsize;

use lock_api::GetThreadId;
use spinpark_linux::Linux;
use spinpark_platform::Threads;

use crate::linux::RawMutex;

/// Names the calling thread, for [`ReentrantMutex`].
pub struct RawThreadId;

// SAFETY: a thread token is not 0 and differs from that of every living thread.
unsafe impl GetThreadId for RawThreadId {
    const INIT: Self = Self;

    #[inline]
    fn nonzero_thread_id(&self) -> NonZeroUsize {
        match NonZeroUsize::new(Linux::thread_token() as usize) {
            Some(token) => token,
            None => unreachable!("a thread token is not 0"),
        }
    }
}

/// A mutex that its owner may acquire again; gives shared access, so put a `Cell` inside to change anything.
///
/// # Fairness
/// As a [`Mutex`](crate::Mutex): the release of the last hold is its release.
///
/// # Poisoning
/// None.
///
/// # Panics
/// If one thread holds it more than `usize::MAX` times.
///
/// ```
/// use std::cell::Cell;
/// use spinpark::ReentrantMutex;
///
/// let depth = ReentrantMutex::new(Cell::new(0));
/// let outer = depth.lock();
/// let inner = depth.lock();
/// inner.set(outer.get() + 1);
/// ```
pub type ReentrantMutex<T> = lock_api::ReentrantMutex<RawMutex, RawThreadId, T>;

/// Shared access to the data of a [`ReentrantMutex`].
pub type ReentrantMutexGuard<'a, T> = lock_api::ReentrantMutexGuard<'a, RawMutex, RawThreadId, T>;

/// Shared access to a part of the data of a [`ReentrantMutex`].
pub type MappedReentrantMutexGuard<'a, T> = lock_api::MappedReentrantMutexGuard<'a, RawMutex, RawThreadId, T>;

/// A reentrant mutex around `value`, in a constant.
pub const fn const_reentrant_mutex<T>(value: T) -> ReentrantMutex<T> {
    ReentrantMutex::const_new(<RawMutex as lock_api::RawMutex>::INIT, RawThreadId, value)
}
