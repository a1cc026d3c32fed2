//! Waiters that a release left asleep, because its thread was expected to come back for the lock. A thread
//! that goes to sleep elsewhere instead wakes such a waiter. It may not touch the lock, which may be gone: so
//! a waiter notes here, by the lock's address, the word that it sleeps on.
//!
//! Notes are only hints: each such waiter has a timer. Another lock's note may overwrite one, and a note may
//! be of a waiter that has gone, whose word is then other memory. It is only an address for `futex_wake`, and
//! each thread that sleeps there expects spurious wake-ups.

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering::Relaxed};

struct Note {
    lock: AtomicUsize,
    /// Null: its waiter was woken early, or is awake.
    word: AtomicPtr<AtomicU32>,
}

/// Locks whose notes share a place overwrite each other's, which leaves one of them to its timer. No other
/// number was measured.
const NOTES: usize = 64;

static NOTE: [Note; NOTES] =
    [const { Note { lock: AtomicUsize::new(0), word: AtomicPtr::new(core::ptr::null_mut()) } }; NOTES];

fn of(lock: usize) -> &'static Note {
    &NOTE[(lock >> 4 ^ lock >> 10) % NOTES]
}

pub(crate) fn note(lock: usize, word: &AtomicU32) {
    let note = of(lock);
    // All accesses here are Relaxed: a note guards no data, and a mixture of two notes only wakes the wrong
    // waiter early.
    note.lock.store(lock, Relaxed);
    note.word.store(core::ptr::from_ref(word).cast_mut(), Relaxed);
}

/// Whether the note of the waiter on `word` was taken, or overwritten.
pub(crate) fn withdraw(lock: usize, word: &AtomicU32) -> bool {
    let own = core::ptr::from_ref(word).cast_mut();
    of(lock).word.compare_exchange(own, core::ptr::null_mut(), Relaxed, Relaxed).is_err()
}

/// Takes the note of the waiter that releases of the lock at `lock` have left asleep: the word that it sleeps
/// on.
#[cold]
#[inline(never)]
pub(crate) fn take(lock: usize) -> Option<*const AtomicU32> {
    let note = of(lock);
    let is_there = note.lock.load(Relaxed) == lock && !note.word.load(Relaxed).is_null();
    let word = if is_there { note.word.swap(core::ptr::null_mut(), Relaxed) } else { core::ptr::null_mut() };
    (!word.is_null()).then_some(word.cast_const())
}
