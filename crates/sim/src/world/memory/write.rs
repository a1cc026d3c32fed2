//! What is done to a word, and what a store writes: kept in a store buffer until it happens.

use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize};

/// What is done to a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Load,
    Store,
    /// A read-modify-write, whether it changes anything or not.
    Update,
}

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
}
