//! T1: the ways in that do not wait. None of them does more than one successful compare-exchange of the word.

use spinpark_platform::{AtomicU32, Look, Ordering::Acquire, Ordering::Relaxed, Platform};

use super::spin::has_cpus_to_spare;
use super::LockCore;
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
            // A reader that waits behind all others does so in a try, too.
            let passes = want != Want::ReadBehindWaiters;
            if self.try_acquire(want, token) || passes && self.try_past_promise(want, token) {
                return true;
            }
            if P::generation() == 0 || !self.adopt() {
                return false;
            }
        }
    }

    /// T1 past a promise (T6): the lock is free, and the waiter for which it is kept may not run.
    #[cold]
    #[inline(never)]
    fn try_past_promise(&self, want: Want, token: u32) -> bool {
        let mut seen = self.peek();
        while word::admits_past_promise(seen, want) {
            let taken = word::taken(seen, want, token);
            match self.word().compare_exchange_weak(seen, taken, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
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
            return self.look(|| self.enter_reading(token), token);
        }
        self.enter_free(word::write_hold(token)).is_ok()
    }

    /// T1 by a thread that reads first. It goes on doing that as long as it finds flags: threads wait, or are on their way, and this
    /// one passes them again and again.
    #[inline(never)]
    fn enter_reading(&self, token: u32) -> bool {
        if self.queue.is_uncontended() {
            return self.enter_free(word::write_hold(token)).is_ok();
        }
        // With CPUs to spare, each look counts.
        !has_cpus_to_spare::<P>() && self.enter_past_flags(token)
    }

    /// T1 of a lock that is marked, or was lately.
    #[inline(never)]
    pub(crate) fn enter_past_flags(&self, token: u32) -> bool {
        P::returns_to(self.key());
        let seen = self.peek();
        if !word::admits(seen, Want::Write) {
            return false;
        }
        if seen & word::FLAGS != 0 {
            P::reads_on();
        }
        let taken = word::taken(seen, Want::Write, token);
        self.word().compare_exchange(seen, taken, Acquire, Relaxed).is_ok()
    }

    /// A look at the lock for an exclusive hold, by `acquire`. A thread whose looks have been in vain lately may join the spinners
    /// without one ([`spin_queued`](super::spin_queued)). `false` says nothing.
    #[inline(always)]
    pub(crate) fn look(&self, acquire: impl FnOnce() -> bool, token: u32) -> bool {
        if P::looked_in_vain() {
            self.look_or_join(token)
        } else {
            acquire()
        }
    }

    #[cold]
    #[inline(never)]
    fn look_or_join(&self, token: u32) -> bool {
        P::returns_to(self.key());
        let acquired = !self.joins_unseen() && self.try_acquire(Want::Write, token);
        if acquired {
            P::looked(Look::Free);
        }
        acquired
    }

    /// [`LockCore::enter_uncontended`] for a call that does not wait, and may be made again and again while the lock is held: it
    /// always reads first.
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
