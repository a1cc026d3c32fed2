//! Memory of a checked program: it can be given back while threads still run.

use std::ops::Deref;
use std::rc::Rc;

use spinpark_sim::Object;
use spinpark_sim::check::{Field, Named};
use spinpark_sim::here::bury;

/// An object that the threads of a program share. Its memory stays until the last handle is gone, so that a
/// late access is found, and not undefined.
#[derive(Debug)]
pub struct Mortal<T: ?Sized>(Rc<Object<T>>);

impl<T> Mortal<T> {
    /// Makes `value` an object that can be given back.
    #[must_use]
    pub fn new(value: T) -> Self {
        Self(Object::new(value))
    }

    /// The first word of the object, which is one of 32 bits: after a run.
    pub(crate) fn first_word(&self) -> u32 {
        const { assert!(size_of::<T>() >= size_of::<u32>(), "it has such a word") };
        let start = std::ptr::from_ref(&**self.0).cast::<u32>();
        // SAFETY: there is an initialised word, which the caller vouches for, aligned as the object is;
        // nothing writes to it.
        unsafe { start.read() }
    }
}

impl<T: ?Sized> Mortal<T> {
    /// Where it lies.
    pub(crate) fn place(&self) -> std::ops::Range<usize> {
        self.0.place()
    }

    /// Gives the memory back: from now on an access to it by simulated code fails the run.
    pub fn destroy(&self) {
        bury(self.place());
    }

    pub(crate) fn named(&self, name: &'static str, fields: &'static [Field]) -> Named {
        Named { name, place: self.place(), fields }
    }
}

impl<T: ?Sized> Clone for Mortal<T> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<T: ?Sized> Deref for Mortal<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
