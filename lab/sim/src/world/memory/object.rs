//! Memory that a simulated program shares.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::{Deref, Range};
use std::rc::Rc;
use std::sync::Arc;

use crate::world::memory::LINE_BYTES;

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
        add_region(object.place());
        object
    }

    /// The same, for a program that is written for real threads too.
    #[must_use]
    pub fn arc(value: T) -> Arc<Self> {
        let object = Arc::new(Self(value));
        add_region(object.place());
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
        remove_region(self.place().start);
    }
}

thread_local! {
    /// All regions of this OS thread's programs.
    static REGIONS: RefCell<Regions> = RefCell::default();
}

#[derive(Default)]
struct Regions {
    /// By the first address: the end, and the number.
    known: BTreeMap<usize, (usize, u64)>,
    made: u64,
}

/// Memory that begins a cache line, and shares none with other memory: words in it lie as they do natively.
/// For as long as this value is there.
#[derive(Debug)]
pub(crate) struct Region {
    start: usize,
}

impl Region {
    /// The memory at `place`.
    pub(crate) fn new(place: Range<usize>) -> Self {
        add_region(place.clone());
        Self { start: place.start }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        remove_region(self.start);
    }
}

/// The memory at `place` is a region from now on, until [`remove_region`].
fn add_region(place: Range<usize>) {
    assert!(place.start.is_multiple_of(LINE_BYTES), "a region begins a cache line");
    REGIONS.with_borrow_mut(|regions| {
        regions.made += 1;
        regions.known.insert(place.start, (place.end, regions.made));
    });
}

/// The region that begins at `start` is none any more.
fn remove_region(start: usize) {
    // While the OS thread ends there may be none left to look at.
    let _ = REGIONS.try_with(|regions| regions.borrow_mut().known.remove(&start));
}

/// The region in which `address` lies: its number, which no other ever has, and how far from its beginning
/// that is.
pub(super) fn find_region(address: usize) -> Option<(u64, usize)> {
    REGIONS.with_borrow(|regions| {
        let (start, (end, number)) = regions.known.range(..=address).next_back()?;
        (address < *end).then(|| (*number, address - start))
    })
}

/// Whether `address` lies in a region.
pub(crate) fn is_in_region(address: usize) -> bool {
    find_region(address).is_some()
}
