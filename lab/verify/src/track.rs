//! What models watch: data that a lock must guard, and memory that is given back.

use std::mem::ManuallyDrop;

use loom::cell::UnsafeCell;

/// Data behind a lock: two accesses that the lock does not order fail the model.
#[derive(Debug, Default)]
pub struct Guarded(UnsafeCell<u32>);

// SAFETY: every access goes through loom's cell, which fails the model at the first one that is not ordered.
unsafe impl Sync for Guarded {}

impl Guarded {
    /// Zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads.
    pub fn get(&self) -> u32 {
        // SAFETY: loom's cell has just checked that no write is concurrent.
        self.0.with(|value| unsafe { *value })
    }

    /// Adds one, and returns the sum.
    pub fn add(&self) -> u32 {
        self.0.with_mut(|value| {
            // SAFETY: loom's cell has just checked that no access is concurrent.
            let value = unsafe { &mut *value };
            *value += 1;
            *value
        })
    }
}

/// An object that some thread of the model destroys while others may still be at work in it.
///
/// Its memory stays, so that a late access is found (as a use after free) and not undefined.
#[derive(Debug)]
pub struct Mortal<T: 'static>(&'static ManuallyDrop<T>);

impl<T> Clone for Mortal<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Mortal<T> {}

impl<T> Mortal<T> {
    /// Makes `value` destructible from any thread.
    pub fn new(value: T) -> Self {
        Self(Box::leak(Box::new(ManuallyDrop::new(value))))
    }

    /// Destroys the object: the platform's drop check fails the model if an access to it is not over.
    pub fn destroy(self) {
        let object: *const T = &raw const **self.0;
        // SAFETY: the platform's atomics and cells are all that is in `T`; their destructors only talk to
        // loom, which reports a second destruction, and any later access, as a failure of the model.
        unsafe { std::ptr::drop_in_place(object.cast_mut()) };
    }
}

impl<T> std::ops::Deref for Mortal<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0
    }
}
