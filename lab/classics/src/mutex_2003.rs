//! A futex mutex of three states, as glibc has had it since September 2003.
//!
//! Origin: NPTL's low-level lock, described by document 003 (and by Drepper, "Futexes Are Tricky", mutex 3).
//! It is both the mutex of a program and the internal lock of the [condition
//! variable](crate::condvar_2003::Condvar).
//!
//! Gives: mutual exclusion in four bytes; no system call without contention. Does not give: fairness,
//! spinning, bounded waiting, ownership.
//!
//! # State
//!
//! | value | held? | sleepers? | left by                                                                |
//! |-------|-------|-----------|------------------------------------------------------------------------|
//! | 0     | no    | no        | any thread, to 1 (T1); one that has slept or must keep the mark, to 2 (T2) |
//! | 1     | yes   | no        | the holder, to 0 (T3); a thread about to sleep, to 2 (T2)               |
//! | 2     | yes   | perhaps   | the holder, to 0, with a wake (T4)                                      |
//!
//! # Invariants
//!
//! - **M1** A sleeper has seen 2 in the step in which it fell asleep. So the holder's release sees 2, and
//!   wakes.
//! - **M2** A thread that has slept leaves 2 behind as it gets the lock: it cannot know whether others sleep.
//! - **M3** A thread that is moved here by a requeue sleeps without having seen anything. A thread that may
//!   meet such sleepers takes the lock by [`lock_marked`](Mutex::lock_marked), so that M2 holds of it as
//!   well.
//!
//! # Orderings
//!
//! | operation               | order   | pairs with | because                                          |
//! |-------------------------|---------|------------|--------------------------------------------------|
//! | T1: CAS, on success     | Acquire | T3, T4     | what the last holder did                         |
//! | T1: CAS, on failure     | Relaxed | –          | nothing is done with it                          |
//! | T2: swap                | Acquire | T3, T4     | as T1, if it found 0                             |
//! | T3, T4: swap            | Release | T1, T2     | what this holder did                             |
//!
//! Checked by: `verify` (loom; it is part of every model of the condition variable), native stress.

use spinpark_platform::{AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, Platform};

const UNLOCKED: u32 = 0;
const LOCKED: u32 = 1;
const MARKED: u32 = 2;

/// A mutex: four bytes, zero is unlocked.
#[repr(transparent)]
pub struct Mutex<P: Platform> {
    word: P::AtomicU32,
}

impl<P: Platform> Mutex<P> {
    /// An unlocked mutex.
    #[must_use]
    pub fn new() -> Self {
        Self { word: AtomicU32::new(UNLOCKED) }
    }

    /// The word, for calls that wake or move sleepers of two words at once.
    pub fn word(&self) -> &P::AtomicU32 {
        &self.word
    }

    /// Takes the mutex if it is free (T1).
    #[inline]
    pub fn try_lock(&self) -> bool {
        self.word.compare_exchange(UNLOCKED, LOCKED, Acquire, Relaxed).is_ok()
    }

    /// Takes the mutex; sleeps until it can.
    #[inline]
    pub fn lock(&self) {
        if !self.try_lock() {
            self.lock_marked();
        }
    }

    /// Takes the mutex, and leaves the mark of sleepers, whether there are any or not (T2, M2, M3).
    #[cold]
    #[inline(never)]
    pub fn lock_marked(&self) {
        while self.word.swap(MARKED, Acquire) != UNLOCKED {
            P::futex_wait(&self.word, MARKED, None); // M1
        }
    }

    /// Gives the mutex up (T3), and wakes one sleeper if there may be one (T4).
    ///
    /// The caller holds it. The release is the last access: the mutex may be gone after it.
    #[inline]
    pub fn unlock(&self) {
        let key: *const P::AtomicU32 = &self.word;
        if self.word.swap(UNLOCKED, Release) == MARKED {
            wake_one::<P>(key);
        }
    }

    /// Gives the mutex up and wakes one sleeper, whatever the mark says: a waiter may have been moved here
    /// (M3).
    ///
    /// The caller holds it.
    #[inline]
    pub fn unlock_and_wake(&self) {
        let key: *const P::AtomicU32 = &self.word;
        self.word.swap(UNLOCKED, Release);
        wake_one::<P>(key);
    }
}

#[cold]
#[inline(never)]
fn wake_one<P: Platform>(key: *const P::AtomicU32) {
    P::futex_wake(key, 1);
}

impl<P: Platform> Default for Mutex<P> {
    fn default() -> Self {
        Self::new()
    }
}
