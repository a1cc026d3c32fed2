//! References that signalled waiters hold to their condition variable, as glibc's `__wrefs`: destruction
//! waits for them.
//!
//! A waiter that was signalled passes the signal on if it is cancelled, so it touches the variable once more
//! (C4). It counts only if others were still waiting when it was signalled. Eight bytes; zero is none.
//!
//! # Orderings
//!
//! | operation    | order   | pairs with    | because                                                                  |
//! |--------------|---------|---------------|--------------------------------------------------------------------------|
//! | add          | Relaxed | –             | under the queue lock, as the check                                       |
//! | drop         | Release | is there any? | the dropping thread's accesses to the variable come before its end       |
//! | is there any?| Acquire | drop          | as above                                                                 |

use spinpark_platform::{AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, Platform};

/// How many signalled waiters may still touch the condition variable.
#[repr(C)]
pub struct WaiterRefs<P: Platform> {
    count: P::AtomicU32,
    /// The process generation in which `count` counts: a forked child does not have the threads of its
    /// parent. Changed only under the queue lock.
    generation: P::AtomicU32,
}

impl<P: Platform> WaiterRefs<P> {
    /// No references.
    pub fn new() -> Self {
        Self { count: AtomicU32::new(0), generation: AtomicU32::new(0) }
    }

    /// Makes it none, whatever it was. The caller is the only one that uses it.
    pub fn reset(&self) {
        self.count.store(0, Relaxed);
        self.generation.store(0, Relaxed);
    }

    fn is_current(&self) -> bool {
        self.generation.load(Relaxed) == P::generation()
    }

    /// Whether there are references. The caller holds the queue lock.
    pub(crate) fn any(&self) -> bool {
        self.is_current() && self.count.load(Acquire) != 0
    }

    /// Adds one. The caller holds the queue lock.
    pub(crate) fn add(&self) {
        if !self.is_current() {
            self.count.store(0, Relaxed);
            self.generation.store(P::generation(), Relaxed);
        }
        self.count.fetch_add(1, Relaxed);
    }

    /// Drops the caller's: its last access to the condition variable.
    pub(crate) fn drop_one(&self) {
        self.count.fetch_sub(1, Release);
    }
}

impl<P: Platform> Default for WaiterRefs<P> {
    fn default() -> Self {
        Self::new()
    }
}
