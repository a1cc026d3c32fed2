//! Memory that a simulated program shares.

use std::ops::{Deref, Range};
use std::rc::Rc;
use std::sync::Arc;

use crate::world::memory::regions;

/// An object of a simulated program that is not on a thread's stack: it begins a pair of cache lines, and
/// shares none with others. Inside, words lie as the type has them.
///
/// Simulated words are on simulated threads' stacks or in such objects; an access elsewhere fails the run,
/// because the allocator would decide which words share a cache line. What an object refers to (as a `Vec`
/// does) is not in it.
///
/// It belongs to the OS thread on which it was made.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Object<T: ?Sized>(T);

impl<T> Object<T> {
    /// Makes `value` an object.
    #[must_use]
    #[allow(clippy::new_ret_no_self, reason = "an object does not move")]
    pub fn new(value: T) -> Rc<Self> {
        let object = Rc::new(Self(value));
        regions::add(object.place());
        object
    }

    /// The same, for a program that is written for real threads too.
    #[must_use]
    pub fn arc(value: T) -> Arc<Self> {
        let object = Arc::new(Self(value));
        regions::add(object.place());
        object
    }
}

impl<T: ?Sized> Object<T> {
    /// Where it lies.
    pub fn place(&self) -> Range<usize> {
        let start = std::ptr::from_ref(&self.0).cast::<u8>().addr();
        start..start + size_of_val(self)
    }
}

impl<T: ?Sized> Deref for Object<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: ?Sized> Drop for Object<T> {
    fn drop(&mut self) {
        regions::remove(self.place().start);
    }
}
