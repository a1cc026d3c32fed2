//! What a store writes: kept in a store buffer until it happens.

use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering::Relaxed};

use super::Access;
use crate::trace::Did;

/// What a store writes, and where to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    /// It has been written, or does not matter.
    Unknown,
    /// A word.
    Word(*const AtomicU32, u32),
    /// A pointer.
    Pointer(*const AtomicPtr<()>, *mut ()),
    /// A reader's slot.
    Slot(*const AtomicUsize, usize),
}

/// A store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write {
    pub(crate) address: usize,
    pub(crate) value: Value,
}

impl Write {
    pub(crate) fn unknown(address: usize) -> Self {
        Self { address, value: Value::Unknown }
    }

    pub(crate) fn word(word: &AtomicU32, value: u32) -> Self {
        Self { address: std::ptr::from_ref(word).addr(), value: Value::Word(word, value) }
    }

    pub(crate) fn pointer<T>(pointer: &AtomicPtr<T>, value: *mut T) -> Self {
        let place = std::ptr::from_ref(pointer).cast::<AtomicPtr<()>>();
        Self { address: place.addr(), value: Value::Pointer(place, value.cast()) }
    }

    pub(crate) fn slot(slot: &AtomicUsize, value: usize) -> Self {
        Self { address: std::ptr::from_ref(slot).addr(), value: Value::Slot(slot, value) }
    }

    /// Puts the value into memory. Returns what to say of it.
    ///
    /// # Safety
    ///
    /// The word has not been dropped.
    pub(crate) unsafe fn happen(self) -> Did {
        match self.value {
            Value::Unknown => Did::Accessed(Access::Store, self.address),
            Value::Word(word, value) => {
                // SAFETY: it came from a reference, and is not dropped, as the caller says; all accesses are atomic.
                let old = unsafe { &*word }.swap(value, Relaxed);
                Did::Wrote(self.address, old, value)
            }
            Value::Pointer(pointer, value) => {
                // SAFETY: as above. A pointer to a sized type is as large as any other.
                let old = unsafe { &*pointer }.swap(value, Relaxed);
                Did::Pointer(self.address, Some(old.addr()), value.addr())
            }
            Value::Slot(slot, value) => {
                // SAFETY: as above.
                unsafe { &*slot }.store(value, Relaxed);
                Did::Accessed(Access::Store, self.address)
            }
        }
    }
}
