//! The memory that simulated programs share: where it lies among the addresses of this process.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;

use super::line::LINE_BYTES;

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
        add(place.clone());
        Self { start: place.start }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        remove(self.start);
    }
}

/// The memory at `place` is a region from now on, until [`remove`].
pub(crate) fn add(place: Range<usize>) {
    assert!(place.start.is_multiple_of(LINE_BYTES), "a region begins a cache line");
    REGIONS.with_borrow_mut(|regions| {
        regions.made += 1;
        regions.known.insert(place.start, (place.end, regions.made));
    });
}

/// The region that begins at `start` is none any more.
pub(crate) fn remove(start: usize) {
    // While the OS thread ends there may be none left to look at.
    let _ = REGIONS.try_with(|regions| regions.borrow_mut().known.remove(&start));
}

/// The region in which `address` lies: its number, which no other ever has, and how far from its beginning
/// that is.
pub(super) fn find(address: usize) -> Option<(u64, usize)> {
    REGIONS.with_borrow(|regions| {
        let (start, (end, number)) = regions.known.range(..=address).next_back()?;
        (address < *end).then(|| (*number, address - start))
    })
}

/// Whether `address` lies in a region.
pub(crate) fn has(address: usize) -> bool {
    find(address).is_some()
}
