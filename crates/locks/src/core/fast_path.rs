//! The fast path: in and out of a lock in one step, without a wait.
//!
//! In (T1): at most one successful compare-exchange of the word; what cannot be had at once goes on as
//! [`acquire_slow`](super::slow_path). Out (T5): a plain store by restartable step (A1), or a
//! compare-exchange; what a waiter needs to know goes on as `release_slow` ([`wake_pass`](super::wake_pass)).
//!
//! # A release that is a plain store
//!
//! - **A1** (asymmetric release) `WAITERS` and `WAKING` are *marks*. A writer releases by a plain store if the queue
//!   lock's word shows neither a locked queue nor `CONTENDED`. The store wipes out what others write to the lock word
//!   between the check and the store. So a thread that *marks* the lock (sets the first of `WAITERS` and `WAKING`)
//!   while a writer holds it does that under the queue lock, ends all such releases by
//!   [`Platform::asymmetric_barrier`], and checks whether its mark is there. From then on each release sees `LOCKED`
//!   or `CONTENDED` and is a read-modify-write: the queue is unlocked with `CONTENDED`. (`WAKING` is only ever set
//!   while `WAITERS` is.)
//! - **A2** A spinner sets `SPINNER` without a fence, and only along with `WAITERS` or readers: with an empty queue
//!   there is no waiter that a release would wake. A writer's release may wipe it out (A1), and then others may set and
//!   clear it: it is a hint; a thread that clears it without acquiring makes a wake pass (L1).
//! - **A3** A writer that finds `CONTENDED` but no flags may clear it (the policy says when), then releases by a
//!   read-modify-write, which fails if a waiter marked the lock meanwhile; the writer then restores it before it
//!   releases, unless the queue is locked: its holder does so as it unlocks. (The slow release need not lock the queue:
//!   it may leave a `TIMED` waiter asleep.) No other thread can release in between.
//! - **A4** (the bit stays) `CONTENDED` (`LOCKED` in its place while the queue is locked) stays when the marks have
//!   gone, until A3 clears it: a lock that was contended is so again soon, and the fence costs as much as thousands of
//!   dearer releases. So a thread that finds `CONTENDED` set as it locks the queue needs no fence: since the fence of
//!   A1, or since the lock's holder set it (`begin_contended`, `force_slow_release`, or the mark of `absorb`: no other
//!   thread can have been releasing then), no plain store has been under way. A queue inherited in a fork counts as
//!   one without it.

use spinpark_platform::{
    AtomicU32, Deadline, Ordering::Acquire, Ordering::Relaxed, Ordering::Release as ReleaseOrder, Platform,
};

use super::{LockCore, NoWait, Outcome};
use crate::policy::{FirstTry, Note, OnRelease, Policy, Try};
use crate::queue::LOCKED_OR_CONTENDED;
use crate::word::{self, Release, Want};

// ---- in

impl<P: Platform, Q: Policy<P>> LockCore<P, Q> {
    /// T1 for an exclusive hold, guessing the word. `false` does not mean that the lock is held.
    ///
    /// A compare-exchange that fails takes the line from the owner. So a thread that has waited lately reads
    /// first whether the queue is contended. To read always would cost a second transfer of each line that
    /// another CPU has written.
    #[inline]
    pub(crate) fn enter_uncontended(&self, token: u32) -> bool {
        if Q::first_try(self.key(), FirstTry::Reads) {
            return self.attempt(|| self.enter_reading(token), token);
        }
        self.enter_free(word::write_hold(token)).is_ok()
    }

    /// T1 on a lock without holders and waiters. A compare-exchange with no load before it: the load would
    /// have to wait for the store of the release before, 5 cycles or more of a pair's 40.
    #[inline]
    pub(crate) fn enter_free(&self, new: u32) -> Result<u32, u32> {
        self.word().compare_exchange(0, new, Acquire, Relaxed)
    }

    /// T1 by a thread that reads first. It goes on doing that as long as it finds flags: threads wait, or are
    /// on their way, and this one passes them again and again.
    #[inline(never)]
    fn enter_reading(&self, token: u32) -> bool {
        if self.queue.is_uncontended() {
            return self.enter_free(word::write_hold(token)).is_ok();
        }
        // Tries of a contended lock are noted by `acquire`, if they are.
        !Q::first_try(self.key(), FirstTry::IsNoted) && self.enter_past_flags(token)
    }

    /// T1 of a lock that has waiters, or had some lately.
    #[inline(never)]
    pub(crate) fn enter_past_flags(&self, token: u32) -> bool {
        Q::learns(self.key(), Note::Returns);
        let seen = self.peek();
        if !word::admits(seen, Want::Write) {
            return false;
        }
        if seen & word::FLAGS != 0 {
            Q::learns(self.key(), Note::PassesWaiters);
        }
        let taken = word::taken(seen, Want::Write, token);
        self.word().compare_exchange(seen, taken, Acquire, Relaxed).is_ok()
    }

    /// A try for an exclusive hold, by `acquire`. A thread whose latest tries have failed may skip it:
    /// [`acquire`](LockCore::acquire) then joins the spinners ([`midpath`](super::midpath)). `false` does not
    /// mean that the lock is held.
    #[inline(always)]
    pub(crate) fn attempt(&self, acquire: impl FnOnce() -> bool, token: u32) -> bool {
        if Q::first_try(self.key(), FirstTry::HasFailed) {
            self.try_or_skip(token)
        } else {
            acquire()
        }
    }

    #[cold]
    #[inline(never)]
    fn try_or_skip(&self, token: u32) -> bool {
        Q::learns(self.key(), Note::Returns);
        let acquired = !self.skips_fast_path() && self.try_acquire(Want::Write, token);
        if acquired {
            Q::learns(self.key(), Note::Tried(Try::Free));
        }
        acquired
    }

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

    /// T1 for a reader, unless a writer waits awake for the readers to go: how many there are then, itself
    /// included. `None` says nothing.
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

    /// [`LockCore::enter_uncontended`] for a call that does not wait, and may be made again and again while
    /// the lock is held: it always reads first.
    #[inline]
    pub(crate) fn try_uncontended(&self, token: u32) -> bool {
        self.queue.is_uncontended() && self.enter_free(word::write_hold(token)).is_ok()
    }

    /// T1 for a call that does not wait. In a forked child, the parent's waiters keep no thread out.
    #[inline(always)]
    pub(crate) fn try_once(&self, want: Want, token: u32, _: impl NoWait) -> bool {
        self.try_past_promise(want, token)
    }

    /// T1 past a promise (T6): the lock is free, and the waiter for which it is kept may not run.
    #[inline(never)] // for the drop-in's size
    fn try_past_promise(&self, want: Want, token: u32) -> bool {
        loop {
            // A reader that waits behind all others does so in a try, too.
            let passes = want != Want::ReadBehindWaiters;
            if self.try_acquire(want, token) || passes && self.try_free(want, token) {
                return true;
            }
            if P::generation() == 0 || !self.adopt() {
                return false;
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn try_free(&self, want: Want, token: u32) -> bool {
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

    /// Acquires, or gives up. Takes part in spinning and queueing.
    #[inline(never)] // for the drop-in's size
    pub(crate) fn acquire(&self, want: Want, token: u32, deadline: Option<Deadline>) -> Outcome {
        if want.is_write() {
            Q::learns(self.key(), Note::Returns);
            if Q::first_try(self.key(), FirstTry::HasFailed) && self.skips_fast_path() {
                Q::learns(self.key(), Note::Tried(Try::Skipped));
                return self.acquire_slow(want, deadline);
            }
        }
        let acquired = self.try_acquire(want, token);
        if want.is_write() {
            Q::learns(self.key(), Note::Tried(if acquired { Try::Free } else { Try::Taken }));
        }
        if acquired {
            Outcome::Acquired
        } else {
            self.acquire_slow(want, deadline)
        }
    }
}

// ---- out

impl<P: Platform, Q: Policy<P>> LockCore<P, Q> {
    /// T5: gives up the hold `release`.
    #[inline]
    pub(crate) fn release(&self, release: Release) {
        if !self.release_uncontended(release) {
            self.release_contended(release);
        }
    }

    /// T5 if no other thread needs to know; of a writer, probably the calling thread, if the queue is
    /// uncontended (A1). On `false` nothing was done, and [`LockCore::release_contended`] remains.
    #[inline(always)]
    pub(crate) fn release_uncontended(&self, release: Release) -> bool {
        match release {
            Release::Write | Release::WriteToWait => {
                P::release_unless::<LOCKED_OR_CONTENDED>(self.queue.guard_word(), self.word(), || {
                    word::write_hold(P::thread_token())
                })
            }
            Release::Read | Release::Upgradable => self.release_in_one_step(release, self.peek()),
        }
    }

    /// T5 of a lock that has, or lately had, waiters, or whose restartable step was aborted.
    #[cold]
    #[inline(never)]
    pub(crate) fn release_contended(&self, release: Release) {
        if matches!(release, Release::Read | Release::Upgradable) {
            return self.release_slow(release);
        }
        let seen = self.peek();
        let key = self.key();
        if word::is_mere_hold(seen, release) && Q::on_release(key, OnRelease::EndsContended) {
            self.queue.end_contended();
            if !self.release_in_one_step(release, seen) {
                // A3: a waiter has marked the lock meanwhile, and this release may leave it asleep.
                self.queue.restore_contended();
                self.release_slow(release);
            }
            return;
        }
        if !self.release_in_one_step(release, seen) {
            self.release_slow(release);
        }
        Q::learns(key, Note::Released);
    }

    /// T5, to the longest waiter if there is one and the lock becomes free: requests the hand-off on its
    /// behalf.
    #[inline]
    pub(crate) fn release_fair(&self, release: Release) {
        let seen = self.peek();
        let frees = word::has_waiters(seen) && !word::is_held(word::released(seen, release));
        if !frees || !self.release_to_head(release) {
            self.release(release);
        }
    }

    /// T5 from a word that was just seen, if no other thread needs to know; on `false` nothing was done.
    #[inline]
    fn release_in_one_step(&self, release: Release, seen: u32) -> bool {
        let after = word::released(seen, release);
        // A forked child may have inherited flags that mean nothing here; the slow path knows.
        let uncontended = word::is_mere_hold(seen, release)
            || (!word::is_glibc_owned(seen)
                && !word::needs_wake_pass(seen, after, release, self.comes_back(seen, release))
                && P::generation() == 0);
        uncontended && {
            // H4: running threads have passed the woken waiter for long. It may be waiting for the CPU of one
            // of them.
            let promises = word::is_waking(seen)
                && word::is_write_held(seen)
                && Q::on_release(self.key(), OnRelease::Promises);
            let after = if promises { after | word::HANDOFF } else { after };
            self.word().compare_exchange(seen, after, ReleaseOrder, Relaxed).is_ok()
        }
    }

    /// Whether the releasing thread is about to come back for the lock, so that a head that keeps its own
    /// time is better left asleep.
    pub(super) fn comes_back(&self, seen: u32, release: Release) -> bool {
        release == Release::Write && word::is_timed(seen) && Q::on_release(self.key(), OnRelease::LeavesHead)
    }
}
