//! Locks whose word other code has written: glibc's functions, on an object that the drop-in has, too (X1 in
//! [`word`](crate::word)).
//!
//! - **X2** If waiters of ours are queued in a lock whose word other code has overwritten, a thread of ours ends their
//!   waits: each wake pass at a glibc-owned word notifies all, and they find [`Outcome::GlibcOwned`]. As the word was
//!   overwritten, a writer of ours held the lock, whose release makes a wake pass (X3: the word is glibc-owned, and
//!   `CONTENDED` is set); or a waiter that was woken was on its way, or a spinner, or the head was `TIMED`, and that
//!   one makes a wake pass as it finds the word glibc-owned (L1). No thread queues at a glibc-owned word, so a wake
//!   pass leaves the queue empty.
//! - **X3** A writer that finds its word overwritten notifies the waiters, then releases as the other code does: swap
//!   0, wake one by address. It may wait for the queue lock for that. A release by a plain store does not see the
//!   word: see A1.

use spinpark_platform::{AtomicU32, Deadline, Ordering::Release as ReleaseOrder, Platform};

use super::{LockCore, Outcome};
use crate::policy::Policy;
use crate::queue::HasQueue;
use crate::word::{self, Want};

impl<P: Platform, Q: Policy<P>> LockCore<P, Q> {
    /// [`LockCore::acquire`] of a lock that no other code may write to; `false` once `deadline` has passed.
    pub(crate) fn acquire_ours(&self, want: Want, token: u32, deadline: Option<Deadline>) -> bool {
        let outcome = self.acquire(want, token, deadline);
        if outcome == Outcome::GlibcOwned {
            P::overwritten(self.key());
        }
        outcome == Outcome::Acquired
    }

    /// X3: gives up a writer's hold over which other code has written, as that does it: its sleepers are
    /// woken by address. Ours are notified before that, and try again; no thread queues here meanwhile.
    #[cold]
    #[inline(never)]
    pub(super) fn release_glibc_owned(&self, seen: u32) {
        if seen > word::GLIBCS_CONTENDED {
            P::overwritten(self.key()); // no mutex of glibc's; a read-write lock, perhaps
        }
        self.give_to_glibc();
        let key: *const P::AtomicU32 = self.word();
        self.word().swap(0, ReleaseOrder); // the last access
        P::futex_wake(key, 1);
    }

    /// The word of a lock that the calling thread holds is glibc-owned, and no thread waits here (X2).
    pub(crate) fn give_to_glibc(&self) {
        self.word().swap(word::GLIBCS_CONTENDED, ReleaseOrder);
        self.wake_pass_and_unlock(self.lock_queue());
    }
}
