//! What finds a thread's entries by what they are about: memory of the thread's own, open addressing, which
//! doubles.

use core::cell::Cell;
use core::mem::size_of;
use core::ptr::NonNull;

use spinpark_linux::raw;

use crate::format::{Head, Role, Segment};

/// Slots of a new index.
const FEW: usize = 256;

/// What an entry is about, in one number that is not 0: a kind has 2 bits, a role 3, a lock 19, and stacks 20
/// each, of which the highest is for [`NONE`](crate::format::NONE).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key(u64);

impl Key {
    /// Two bits are enough for five kinds: the fourth is 0 there and the fifth 1 as the first, whose `second`
    /// is 0; theirs never is.
    pub(crate) fn new(kind: u32, role: Role, lock: u32, first: u32, second: u32) -> Self {
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
pub(crate) struct Slot {
    key: u64,
    /// Null in an empty one.
    pub(crate) entry: *mut Head,
}

/// See above; all zero is an empty one.
#[repr(C)]
pub(crate) struct Index {
    slots: Cell<*mut Slot>,
    /// A power of two, or 0.
    capacity: Cell<usize>,
    used: Cell<usize>,
    /// Where the thread's next entry goes, if there is space; or null.
    pub(crate) segment: Cell<*mut Segment>,
    /// Words of the segment that have entries.
    pub(crate) filled: Cell<usize>,
}

impl Index {
    /// The slot that has `key`, or an empty one for it; `None` if there was no memory.
    #[inline(always)]
    pub(crate) fn find(&self, key: Key) -> Option<NonNull<Slot>> {
        // Three quarters full is full.
        if 4 * self.used.get() >= 3 * self.capacity.get() && !self.grow() {
            return None;
        }
        self.slot(key)
    }

    /// Fills an empty slot.
    ///
    /// # Safety
    ///
    /// `slot` is what [`Index::find`] has returned last, for `key`.
    pub(crate) unsafe fn fill(&self, slot: *mut Slot, key: Key, entry: *mut Head) {
        // SAFETY: a slot of the index.
        unsafe { slot.write(Slot { key: key.0, entry }) };
        self.used.set(self.used.get() + 1);
    }

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
