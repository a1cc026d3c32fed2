//! Waiters that a release may leave asleep, since its thread comes back for the lock: for the thread that does not, but goes to sleep
//! elsewhere. It may not touch the lock any more, which may be gone. So a waiter notes here, by the lock's address, what it sleeps on.
//!
//! Only hints: each such waiter keeps its own time. A note may be overwritten by that of another lock, or be of a waiter that has gone,
//! whose word is then somebody else's memory: that is only an address for `futex_wake`, and all who sleep there expect to be
//! woken for no reason.

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering::Relaxed};

use crate::futex;

struct Note {
    lock: AtomicUsize,
    /// Null: its waiter was roused, or is awake.
    word: AtomicPtr<AtomicU32>,
}

const NOTES: usize = 64;

static NOTE: [Note; NOTES] =
    [const { Note { lock: AtomicUsize::new(0), word: AtomicPtr::new(core::ptr::null_mut()) } }; NOTES];

fn of(lock: usize) -> &'static Note {
    &NOTE[(lock >> 4 ^ lock >> 10) % NOTES]
}

pub(crate) fn note(lock: usize, word: &AtomicU32) {
    let note = of(lock);
    // Relaxed, as all here: no memory is handed over, and a mixture of two notes rouses the wrong waiter.
    note.lock.store(lock, Relaxed);
    note.word.store(core::ptr::from_ref(word).cast_mut(), Relaxed);
}

/// Whether the note of the waiter on `word` was taken, or overwritten.
pub(crate) fn withdraw(lock: usize, word: &AtomicU32) -> bool {
    let own = core::ptr::from_ref(word).cast_mut();
    of(lock).word.compare_exchange(own, core::ptr::null_mut(), Relaxed, Relaxed).is_err()
}

#[cold]
#[inline(never)]
pub(crate) fn rouse(lock: usize) {
    let note = of(lock);
    if note.lock.load(Relaxed) == lock && !note.word.load(Relaxed).is_null() {
        let word = note.word.swap(core::ptr::null_mut(), Relaxed);
        if !word.is_null() {
            futex::wake(word, 1);
        }
    }
}
