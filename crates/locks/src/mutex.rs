//! A mutual-exclusion lock with its owner in the word: [`LockCore`] used for writing only.
//!
//! Origin: Linux' mutex since 3ca0ff57 (owner and flags in one word), document 001 (spin while the owner
//! runs). State, transitions, invariants and orderings: [`core`](crate::core) and [`word`](crate::word).
//!
//! Fast paths: `lock` is one compare-exchange (Acquire) of 0; `unlock` is a plain store (Release) after a
//! check of the queue lock's word. The store is the last access (R1), and the waiters make it safe (A1).
//! Where these fail, the slower paths read the word anew, and make no compare-exchange that is known to fail
//! (document 002).

use core::num::NonZeroU32;

use spinpark_platform::{AtomicU32, Deadline, Ordering::Relaxed, Platform};

use crate::core::{LockCore, Outcome};
use crate::policy::{Adaptive, Note, Policy, Usual};
use crate::queue::{HasQueue, WaitQueue};
use crate::word::{self, Release, Want};

/// How [`RawMutex::lock_or_glibc`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locked {
    /// The mutex is held.
    Acquired,
    /// The deadline passed.
    TimedOut,
    /// Other code has locked the mutex. It is not held, and the calling thread is not in its queue.
    GlibcOwned,
}

/// A mutex: 16 bytes, zero is unlocked.
#[repr(transparent)]
pub struct RawMutex<P: Platform, Q: Policy<P> = Usual> {
    core: LockCore<P, Q>,
}

impl<P: Platform + Adaptive> RawMutex<P> {
    /// An unlocked mutex.
    pub fn new() -> Self {
        Self::from_core(LockCore::default())
    }
}

impl<P: Platform, Q: Policy<P>> RawMutex<P, Q> {
    /// An unlocked mutex from an unlocked core, for `const` initialisers.
    pub const fn from_core(core: LockCore<P, Q>) -> Self {
        Self { core }
    }

    pub(crate) fn core(&self) -> &LockCore<P, Q> {
        &self.core
    }

    /// The queue, for the padding in it.
    #[inline(always)]
    pub fn queue(&self) -> &WaitQueue<P> {
        self.core.queue()
    }

    /// Acquires; waits as long as it takes. Acquire ordering.
    #[inline]
    pub fn lock(&self) {
        let token = P::thread_token();
        if !self.core.enter_uncontended(token) {
            self.lock_contended(token);
        }
    }

    #[inline(never)]
    fn lock_contended(&self, token: u32) {
        self.core.acquire_ours(Want::Lock, token, None);
    }

    /// Acquires, or gives up, or finds that other code has locked the mutex (glibc's functions, past a
    /// drop-in).
    pub fn lock_or_glibc(&self, deadline: Option<Deadline>) -> Locked {
        match self.core.acquire(Want::Lock, P::thread_token(), deadline) {
            Outcome::Acquired => Locked::Acquired,
            Outcome::TimedOut => Locked::TimedOut,
            Outcome::Biased | Outcome::GlibcOwned => Locked::GlibcOwned, // a mutex has no bias
        }
    }

    /// Whether a thread holds the mutex through these functions, or waits for it; not whether other code has
    /// locked it.
    pub fn is_in_use(&self) -> bool {
        let seen = self.core.peek();
        seen != 0 && !word::is_glibc_owned(seen)
    }

    /// Makes the mutex, which the calling thread holds, look locked by other code: waiters find
    /// [`Locked::GlibcOwned`].
    #[cold]
    pub fn give_to_glibc(&self) {
        self.core.give_to_glibc();
    }

    /// Acquires, or returns `false` once `deadline` has passed. A free mutex is acquired whatever the
    /// deadline.
    #[inline]
    pub fn lock_until(&self, deadline: Deadline) -> bool {
        self.lock_contended_until(Some(deadline))
    }

    /// What remains of [`RawMutex::lock`] after [`RawMutex::try_lock_uncontended`]; `false` once `deadline`
    /// has passed, if there is one.
    pub fn lock_contended_until(&self, deadline: Option<Deadline>) -> bool {
        self.core.acquire_ours(Want::Lock, P::thread_token(), deadline)
    }

    /// The owner's token, or 0; a hint as soon as it is returned.
    pub fn owner(&self) -> u32 {
        word::owner(self.core.peek())
    }

    /// Makes the calling thread, which holds the mutex, release it by [`RawMutex::unlock_contended`], for an
    /// observer. A hint: a waiter that leaves at its deadline may end it.
    pub fn force_slow_release(&self) {
        self.core.force_slow_release();
    }

    /// Releases. Release ordering; the mutex is not touched after the step that lets another thread in.
    ///
    /// The mutex is held, by the calling thread. If it is another's (POSIX leaves that undefined, and glibc
    /// lets it pass for normal mutexes), that one must not signal a waiter of this mutex meanwhile: it would
    /// rely on its own release.
    #[inline]
    pub fn unlock(&self) {
        self.core.release(Release::Write);
    }

    /// [`RawMutex::unlock`] by a thread that waits for something else next, so that a waiter is woken
    /// whatever the thread did before.
    pub fn unlock_to_wait(&self) {
        let key = self.core.key();
        Q::learns(key, Note::ReleasesToWait);
        self.core.release(Release::WriteToWait);
        Q::learns(key, Note::Sleeps); // E2, without the mutex: the woken early thread may want it
    }

    /// [`RawMutex::unlock`] of a mutex without waiters; on `false` nothing was done, and
    /// [`RawMutex::unlock_contended`] remains.
    #[inline]
    pub fn unlock_uncontended(&self) -> bool {
        self.core.release_uncontended(Release::Write)
    }

    /// What remains of [`RawMutex::unlock`] after [`RawMutex::unlock_uncontended`].
    pub fn unlock_contended(&self) {
        self.core.release_contended(Release::Write);
    }

    /// Releases to the longest waiter, if there is one, whatever runs or spins. A thread with a real-time
    /// priority only wakes a waiter of a lower one (H2 in `core`): it does not leave the lock to that.
    #[inline]
    pub fn unlock_fair(&self) {
        self.core.release_fair(Release::Write);
    }

    /// Whether the mutex is held; a hint as soon as it is returned.
    #[inline]
    pub fn is_locked(&self) -> bool {
        word::is_held(self.core.peek())
    }

    /// What the drop-in tries next, after [`RawMutex::try_lock_uncontended`], for the calling thread, whose
    /// token is at hand. It reads first. `false` says nothing.
    #[inline]
    pub fn try_lock_as(&self, token: u32) -> bool {
        self.core.attempt(|| self.core.enter_past_flags(token), token)
    }

    /// `try_lock_as` of a mutex that is probably free; `false` says nothing.
    #[inline]
    pub fn try_lock_uncontended(&self, token: u32) -> bool {
        self.core.enter_uncontended(token)
    }

    /// `try_lock_uncontended` for a thread that does not read first: one compare-exchange. `false` says nothing.
    ///
    /// `hold` is the calling thread's [`write_hold`](crate::write_hold).
    #[inline(always)]
    pub fn try_lock_free(&self, hold: NonZeroU32) -> bool {
        self.core.enter_free(hold.get()).is_ok()
    }

    /// `try_lock_uncontended` for a call that does not wait, and may be made again and again while the mutex is
    /// held: it reads first. `Some(false)`: the mutex is held; `None` says nothing.
    #[inline]
    pub fn try_lock_at_once(&self, token: u32) -> Option<bool> {
        if !self.is_locked() {
            return self.core.try_uncontended(token).then_some(true);
        }
        // In a forked child, the flags may be the parent's.
        (P::generation() == 0).then_some(false)
    }

    /// `try_lock_uncontended` without an atomic read-modify-write, for a process that has this one thread
    /// only.
    #[inline]
    pub fn try_lock_alone(&self, token: u32) -> bool {
        let free = self.core.peek() == 0;
        if free {
            self.core.set_alone(word::write_hold(token));
        }
        free
    }

    /// `unlock`, of a mutex without waiters, without an atomic read-modify-write, for a process that has this
    /// one thread only; `false` if the word has flags (inherited in a fork), which [`RawMutex::unlock`] sorts
    /// out.
    #[inline]
    pub fn unlock_alone(&self) -> bool {
        let uncontended = self.core.peek() & word::FLAGS == 0;
        if uncontended {
            self.core.set_alone(0);
        }
        uncontended
    }
}

impl<P: Platform, Q: Policy<P>> LockCore<P, Q> {
    /// A plain store: there is no other thread to race with (core.M1).
    #[inline]
    fn set_alone(&self, word: u32) {
        self.word().store(word, Relaxed);
    }
}

impl<P: Platform + Adaptive> Default for RawMutex<P> {
    fn default() -> Self {
        Self::new()
    }
}
