//! The parts that only spin: the MCS lock and the queue of spinners, each for its own.

use core::ptr;
use core::sync::atomic::AtomicPtr;

use spinpark_linux::Linux;
use spinpark_locks as locks;

/// A queue of up to `N` spinners that may leave (the kernel's osq): one of them at a time is the head and polls
/// whatever they all wait for.
///
/// ```
/// use spinpark::SpinnerQueue;
///
/// let queue: SpinnerQueue<4> = SpinnerQueue::new();
/// let mut patience = 1_000;
/// let head = queue.enter(|| { patience -= 1; patience > 0 });
/// assert!(head.is_some(), "alone, so at the head at once");
/// ```
pub type SpinnerQueue<const N: usize = 4> = locks::Osq<Linux, N>;

/// A FIFO spin lock in which each waiter spins on its own cache line (Mellor-Crummey and Scott).
///
/// For short sections and no more threads than CPUs: it never sleeps.
///
/// ```
/// use spinpark::McsLock;
///
/// static LINE: McsLock = McsLock::new();
/// assert_eq!(LINE.with(|| 6 * 7), 42);
/// ```
pub struct McsLock {
    raw: locks::McsLock<Linux>,
}

impl McsLock {
    /// An unlocked lock.
    pub const fn new() -> Self {
        Self { raw: locks::McsLock::from_tail(AtomicPtr::new(ptr::null_mut())) }
    }

    /// Runs `section` with the lock held. Acquire ordering before it, Release after it.
    pub fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        self.raw.with(section)
    }
}

impl Default for McsLock {
    fn default() -> Self {
        Self::new()
    }
}
