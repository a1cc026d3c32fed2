//! T1: the ways in that do not wait. None of them does more than one successful compare-exchange of the word.

use spinpark_platform::{AtomicU32, Look, Ordering::Acquire, Ordering::Relaxed, Platform};

use super::{has_cpus_to_spare, LockCore};
use crate::word::{self, Want};

impl<P: Platform> LockCore<P> {
    /// T1: takes the lock if it can be had at once.
    #[inline]
    pub(crate) fn try_acquire(&self, want: Want, token: u32) -> bool {
        let mut seen = self.peek();
        while word::admits(seen, want) {
            match self.word().compare_exchange_weak(seen, word::taken(seen, want, token), Acquire, Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// T1 for a call that does not wait. In a forked child, the parent's waiters keep no thread out.
    #[inline]
    pub(crate) fn try_once(&self, want: Want, token: u32) -> bool {
        loop {
            if self.try_acquire(want, token) {
                return true;
            }
            if !self.adopt() {
                return false;
            }
        }
    }

    /// T1 for a reader, unless a writer waits awake for the readers to go: how many there are then, itself included. `None`
    /// says nothing.
    #[inline]
    pub(crate) fn enter_invited(&self, want: Want) -> Option<u32> {
        let mut seen = self.peek();
        while word::invites(seen, want) {
            let taken = word::taken(seen, want, 0);
            match self.word().compare_exchange_weak(seen, taken, Acquire, Relaxed) {
                Ok(_) => return Some(word::readers(taken)),
                Err(now) => seen = now,
            }
        }
        None
    }

    /// T1 for an exclusive hold, guessing the word. `false` says nothing.
    ///
    /// A compare-exchange that fails takes the line from the owner. So a thread that has waited lately reads first whether the
    /// queue is contended. To read always would cost a second transfer of each line that another CPU has written.
    #[inline]
    pub(crate) fn enter_uncontended(&self, token: u32) -> bool {
        if P::reads_first() {
            return self.look(|| self.try_uncontended(token));
        }
        self.enter_free(word::write_hold(token)).is_ok()
    }

    /// A look at the lock, for an exclusive hold, by a thread that may have looked in vain lately: perhaps it joins the spinners without
    /// one ([`spin_queued`](super::spin_queued)). `false` says nothing.
    #[inline(always)]
    pub(crate) fn look(&self, acquire: impl Fn() -> bool) -> bool {
        if !P::looked_in_vain() {
            return acquire();
        }
        if self.joins_unseen() {
            return false;
        }
        let acquired = acquire();
        if acquired {
            self.note_look(Want::Write, Look::Free);
        }
        acquired
    }

    /// Notes what a writer's look has found, where that counts.
    #[inline(never)] // for the drop-in's size
    pub(super) fn note_look(&self, want: Want, look: Look) {
        if want == Want::Write && has_cpus_to_spare::<P>() {
            P::looked(look);
        }
    }

    /// The same for a call that does not wait, and may be made again and again while the lock is held: it always reads first.
    #[inline]
    pub(crate) fn try_uncontended(&self, token: u32) -> bool {
        self.queue.is_uncontended() && self.enter_free(word::write_hold(token)).is_ok()
    }

    /// T1 on a lock without holders and waiters. A compare-exchange with no load before it: the load would have to
    /// wait for the read-modify-write of the release before, 5 cycles or more of a pair's 40.
    #[inline]
    pub(crate) fn enter_free(&self, new: u32) -> Result<u32, u32> {
        self.word().compare_exchange(0, new, Acquire, Relaxed)
    }
}
