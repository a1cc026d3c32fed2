//! A table of a thread: its entries in the file, found by what they are about.
//!
//! The index is the thread's own memory, open addressing, and doubles; the entries lie in segments of the file, which are
//! claimed one after the other.

use core::cell::Cell;
use core::mem::size_of;
use core::ptr::{self, NonNull};
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Release;

use spinpark_linux::raw;

use super::thread_state::{Outer, ThreadState};
use super::Recorder;
use crate::format::{
    Entry, Head, HeldWaitStats, LockStats, PairStats, RegionId, Role, Segment, SiteStats, NONE,
};

/// Slots of a new index.
const FEW: usize = 256;
/// Words of a segment that entries can have.
const WORDS: usize = (crate::format::SEGMENT_BYTES - 8) / 8;

/// What an entry is about, in one number that is not 0: a kind has 2 bits, a role 3, a lock 19, and stacks 20 each, of
/// which the highest is for [`NONE`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key(u64);

impl Key {
    /// Two bits are enough for four kinds: the fourth is 0 there, which no other one is, and its `second` is never 0.
    fn new(kind: u32, role: Role, lock: u32, first: u32, second: u32) -> Self {
        let part = |number: u32| u64::from(number & 0xF_FFFF);
        let head = u64::from(kind & 3) | u64::from(role as u32) << 2;
        Self(head | u64::from(lock & 0x7_FFFF) << 5 | part(first) << 24 | part(second) << 44)
    }

    fn hash(self) -> usize {
        (self.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize
    }
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Slot {
    key: u64,
    entry: *mut Head,
}

/// See above; all zero is an empty one.
#[repr(C)]
pub(crate) struct Index {
    slots: Cell<*mut Slot>,
    /// A power of two, or 0.
    capacity: Cell<usize>,
    used: Cell<usize>,
    segment: Cell<*mut Segment>,
    /// Words of the segment that have entries.
    filled: Cell<usize>,
}

impl Index {
    /// The slot that has `key`, or where it would go. There is always an empty one.
    fn slot(&self, key: Key) -> Option<NonNull<Slot>> {
        let mask = self.capacity.get().checked_sub(1)?;
        let mut at = key.hash() & mask;
        loop {
            let slot = self.slots.get().wrapping_add(at);
            // SAFETY: inside the index.
            let found = unsafe { (*slot).key };
            if found == key.0 || found == 0 {
                return NonNull::new(slot);
            }
            at = (at + 1) & mask;
        }
    }

    /// Doubles the index; whether there was memory.
    fn grow(&self) -> bool {
        let (old, before) = (self.slots.get(), self.capacity.get());
        let capacity = (2 * before).max(FEW);
        let Some(new) = raw::map_zero(capacity * size_of::<Slot>()) else { return false };
        self.slots.set(new.as_ptr().cast());
        self.capacity.set(capacity);
        for at in 0..before {
            // SAFETY: inside the old index.
            let slot = unsafe { old.wrapping_add(at).read() };
            if let Some(to) = self.slot(Key(slot.key)).filter(|_| slot.key != 0) {
                // SAFETY: a slot of the new index.
                unsafe { to.write(slot) };
            }
        }
        if let Some(old) = NonNull::new(old) {
            // SAFETY: from `map_zero`, with this length; its slots were copied.
            unsafe { raw::unmap(old.cast(), before * size_of::<Slot>()) };
        }
        true
    }
}

/// A kind of entry.
trait Kept: Sized {
    const KIND: u32;
    /// Writes what it is about, besides what its head says.
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
        // SAFETY: as above.
        unsafe { (*this).holder = holder };
    }
}

impl Kept for HeldWaitStats {
    const KIND: u32 = Entry::HELD_WAIT;
    unsafe fn about(this: *mut Self, outer: u32, how: u32) {
        // SAFETY: the caller's entry.
        unsafe { (*this).outer = outer };
        // SAFETY: as above.
        unsafe { (*this).how = how - 1 };
    }
}

impl Recorder {
    /// The calling thread's entry about this, which may be new; `None` if there is no room.
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
        // Three quarters full is full.
        if 4 * index.used.get() >= 3 * index.capacity.get() && !index.grow() {
            return None;
        }
        let slot = index.slot(key)?.as_ptr();
        // SAFETY: a slot of the index.
        let entry = unsafe { (*slot).entry };
        if !entry.is_null() {
            // SAFETY: the key says what kind it is; entries stay where they are.
            return Some(unsafe { &*entry.cast() });
        }
        let head = Head { kind: AtomicU32::new(0), bytes: size_of::<T>() as u32, lock, role: role as u32 };
        let entry = self.room(own, size_of::<T>() / 8)?;
        // SAFETY: room for an entry of this kind, which only this thread knows.
        unsafe { ptr::write(entry, head) };
        // SAFETY: as above.
        unsafe { T::about(entry.cast(), first, second) };
        // SAFETY: as above; atomic, and so are all fields that change later.
        unsafe { &(*entry).kind }.store(T::KIND, Release);
        // SAFETY: a slot of the index.
        unsafe { slot.write(Slot { key: key.0, entry }) };
        index.used.set(index.used.get() + 1);
        // SAFETY: written just now; it stays where it is.
        Some(unsafe { &*entry.cast() })
    }

    /// Room for an entry of so many words in the thread's segment, or in a new one. All zero.
    fn room(&self, own: &ThreadState, words: usize) -> Option<*mut Head> {
        let index = &own.index;
        if index.segment.get().is_null() || index.filled.get() + words > WORDS {
            let (number, segment) = self.file.claim::<Segment>(RegionId::Segments)?;
            let table = own.table();
            let before =
                if index.segment.get().is_null() { NONE } else { table.segment.load(super::Relaxed) };
            // SAFETY: claimed for this thread.
            unsafe { (*segment).before = before };
            // SAFETY: as above.
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

    /// The thread's waits for a lock while it had another one.
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
