//! A table of a thread: its entries in the file.
//!
//! They lie in segments of the file, which are claimed one after the other; the thread's
//! [`Index`](super::index::Index) finds them.

use core::mem::size_of;
use core::ptr;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Relaxed, Release};

use super::index::{Key, Slot};
use super::thread_state::{Outer, ThreadState};
use super::Recorder;
use crate::format::{
    Entry, Head, HeldWaitStats, LockStats, NestStats, PairStats, RegionId, Role, Segment, SiteStats, NONE,
};

/// Words of a segment that entries can have.
const WORDS: usize = (crate::format::SEGMENT_BYTES - 8) / 8;

/// A kind of entry.
trait Kept: Sized {
    const KIND: u32;
    /// Writes what it is about, besides what its head has.
    ///
    /// # Safety
    ///
    /// `this` is an entry of this kind that no other thread knows.
    unsafe fn about(this: *mut Self, first: u32, second: u32);
}

impl Kept for LockStats {
    const KIND: u32 = Entry::LOCK;
    unsafe fn about(_: *mut Self, _: u32, _: u32) {}
}

impl Kept for SiteStats {
    const KIND: u32 = Entry::SITE;
    unsafe fn about(this: *mut Self, stack: u32, _: u32) {
        // SAFETY: the caller's entry.
        unsafe { (*this).stack = stack };
    }
}

impl Kept for PairStats {
    const KIND: u32 = Entry::PAIR;
    unsafe fn about(this: *mut Self, waiter: u32, holder: u32) {
        // SAFETY: the caller's entry.
        unsafe { (*this).waiter = waiter };
        // SAFETY: the same.
        unsafe { (*this).holder = holder };
    }
}

impl Kept for HeldWaitStats {
    const KIND: u32 = Entry::HELD_WAIT;
    unsafe fn about(this: *mut Self, outer: u32, how: u32) {
        // SAFETY: the caller's entry.
        unsafe { (*this).outer = outer };
        // SAFETY: the same.
        unsafe { (*this).how = how - 1 };
    }
}

impl Kept for NestStats {
    const KIND: u32 = Entry::NEST;
    unsafe fn about(this: *mut Self, outer: u32, role: u32) {
        // SAFETY: the caller's entry.
        unsafe { (*this).outer = outer };
        // SAFETY: the same.
        unsafe { (*this).outer_role = role - 1 };
    }
}

impl Recorder {
    /// The calling thread's entry about this, which may be new; `None` if the file or the memory is full.
    fn entry<T: Kept>(
        &self,
        own: &ThreadState,
        role: Role,
        lock: u32,
        first: u32,
        second: u32,
    ) -> Option<&T> {
        let index = &own.index;
        let key = Key::new(T::KIND, role, lock, first, second);
        let slot = index.find(key)?.as_ptr();
        // SAFETY: a slot of the index.
        let entry = unsafe { (*slot).entry };
        if !entry.is_null() {
            // SAFETY: the key states what kind it is; entries stay where they are.
            return Some(unsafe { &*entry.cast() });
        }
        self.rarely(own, || self.new_entry(own, (slot, key), (role, lock), (first, second)))
    }

    #[cold]
    #[inline(never)]
    fn new_entry<T: Kept>(
        &self,
        own: &ThreadState,
        (slot, key): (*mut Slot, Key),
        (role, lock): (Role, u32),
        (first, second): (u32, u32),
    ) -> Option<&T> {
        let head = Head { kind: AtomicU32::new(0), bytes: size_of::<T>() as u32, lock, role: role as u32 };
        let entry = self.reserve(own, size_of::<T>() / 8)?;
        // SAFETY: space for an entry of this kind, which only this thread knows.
        unsafe { ptr::write(entry, head) };
        // SAFETY: the same.
        unsafe { T::about(entry.cast(), first, second) };
        // SAFETY: the same; atomic, and so are all fields that change later.
        unsafe { &(*entry).kind }.store(T::KIND, Release);
        // SAFETY: the slot was found just now, and is empty.
        unsafe { own.index.fill(slot, key, entry) };
        // SAFETY: written just now; it stays where it is.
        Some(unsafe { &*entry.cast() })
    }

    /// Reserves an entry of this number of words in the thread's segment, or in a new one. All zero.
    fn reserve(&self, own: &ThreadState, words: usize) -> Option<*mut Head> {
        let index = &own.index;
        if index.segment.get().is_null() || index.filled.get() + words > WORDS {
            let (number, segment) = self.file.claim::<Segment>(RegionId::Segments)?;
            let table = own.table();
            let before = if index.segment.get().is_null() { NONE } else { table.segment.load(Relaxed) };
            // SAFETY: claimed for this thread.
            unsafe { (*segment).before = before };
            // SAFETY: the same.
            unsafe { &(*segment).owner }.store(own.number() + 1, Release);
            table.segment.store(number, Release);
            index.segment.set(segment);
            index.filled.set(0);
        }
        let filled = index.filled.get();
        index.filled.set(filled + words);
        // SAFETY: inside the segment.
        let entries = unsafe { ptr::addr_of_mut!((*index.segment.get()).entries) };
        Some(entries.cast::<u64>().wrapping_add(filled).cast())
    }

    /// The thread's use of a lock.
    pub(crate) fn lock_stats(&self, own: &ThreadState, role: Role, lock: u32) -> Option<&LockStats> {
        self.entry(own, role, lock, 0, 0)
    }

    /// The thread's use of a lock at one call site.
    pub(crate) fn site_stats(
        &self,
        own: &ThreadState,
        role: Role,
        lock: u32,
        stack: u32,
    ) -> Option<&SiteStats> {
        self.entry(own, role, lock, stack, 0)
    }

    /// The thread's waits for a lock while it held another one.
    pub(crate) fn held_wait_stats(
        &self,
        own: &ThreadState,
        role: Role,
        lock: u32,
        outer: Outer,
    ) -> Option<&HeldWaitStats> {
        // One more than what it is: never 0 (see `Key::new`).
        self.entry(own, role, lock, outer.lock, outer.how + 1)
    }

    /// The thread's use of a lock while it held another one.
    pub(crate) fn nest_stats(
        &self,
        own: &ThreadState,
        role: Role,
        lock: u32,
        (outer, outer_role): (u32, Role),
    ) -> Option<&NestStats> {
        // One more than the role: never 0 (see `Key::new`).
        self.entry(own, role, lock, outer, outer_role as u32 + 1)
    }

    /// The thread's waits at one call site for another.
    pub(crate) fn pair_stats(
        &self,
        own: &ThreadState,
        role: Role,
        lock: u32,
        waiter: u32,
        holder: u32,
    ) -> Option<&PairStats> {
        self.entry(own, role, lock, waiter, holder)
    }
}
