//! Waiters that a release did not wake, because its thread was expected to come back for the lock. A thread
//! that goes to sleep elsewhere instead wakes such a waiter. It may not touch the lock, which may be gone: so
//! a waiter enters here, by the lock's address, the word that it sleeps on.
//!
//! Entries are only hints: each such waiter has a timer. Another lock's entry may overwrite one, and an entry
//! may be of a waiter that no longer sleeps, whose word is then other memory. It is only an address for
//! `futex_wake`, and each thread that sleeps there expects spurious wake-ups.

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering::Relaxed};

struct ParkedWord {
    lock: AtomicUsize,
    /// Null: its waiter was woken early, or is awake.
    word: AtomicPtr<AtomicU32>,
}

/// Locks that share an entry overwrite it, and one of their waiters then wakes by its timer. No other number
/// was measured.
const ENTRIES: usize = 64;

static PARKED_WORDS: [ParkedWord; ENTRIES] =
    [const { ParkedWord { lock: AtomicUsize::new(0), word: AtomicPtr::new(core::ptr::null_mut()) } };
        ENTRIES];

fn entry_of(lock: usize) -> &'static ParkedWord {
    &PARKED_WORDS[(lock >> 4 ^ lock >> 10) % ENTRIES]
}

pub(crate) fn note(lock: usize, word: &AtomicU32) {
    let entry = entry_of(lock);
    // All accesses here are Relaxed: an entry guards no data, and a mixture of two entries only wakes the
    // wrong waiter early.
    entry.lock.store(lock, Relaxed);
    entry.word.store(core::ptr::from_ref(word).cast_mut(), Relaxed);
}

/// Whether the entry of the waiter on `word` was taken, or overwritten.
pub(crate) fn withdraw(lock: usize, word: &AtomicU32) -> bool {
    let own = core::ptr::from_ref(word).cast_mut();
    entry_of(lock).word.compare_exchange(own, core::ptr::null_mut(), Relaxed, Relaxed).is_err()
}

/// Takes the entry of the waiter that releases of the lock at `lock` did not wake: the word that it sleeps on.
#[cold]
#[inline(never)]
pub(crate) fn take(lock: usize) -> Option<*const AtomicU32> {
    let entry = entry_of(lock);
    let is_there = entry.lock.load(Relaxed) == lock && !entry.word.load(Relaxed).is_null();
    let word = if is_there { entry.word.swap(core::ptr::null_mut(), Relaxed) } else { core::ptr::null_mut() };
    (!word.is_null()).then_some(word.cast_const())
}
