//! Where records lie in the file.
//!
//! A region grows by pieces, which follow each other in the file in the order in which they were needed,
//! whatever region they belong to: so the used part is the beginning of the file, and a recording that has
//! ended is cut off behind it ([`Header::end`](super::Header)). The header says at which page each piece
//! starts.
//!
//! A *unit* is a page, or a record that is larger, rounded up to pages; no record lies in two. Pieces have 1,
//! 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 8 … units: at most a fifth of a large region is not used yet, and the
//! number of a record locates it without a search.

use super::record::{Lock, Segment, Stack, Thread};
use super::slow::Slow;

/// The unit of mappings, bytes.
pub const PAGE: usize = 4096;

/// Where the first piece of a region starts.
pub const HEADER_BYTES: usize = 4096;

/// Set in [`Header::end`](super::Header) once no more pieces are added.
pub const CLOSED: u32 = 1 << 31;

/// The regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum RegionId {
    /// [`Lock`].
    Locks,
    /// [`Stack`].
    Stacks,
    /// [`Thread`].
    Threads,
    /// [`Segment`].
    Segments,
    /// Bytes of text: a line `@ N TICKS`, then a copy of `/proc/self/maps`, and again. `N` counts from 0.
    Maps,
    /// Bytes of text: names of locks, each ended by a zero.
    Text,
    /// [`Slow`].
    Slow,
}

impl RegionId {
    /// All of them.
    pub const ALL: [Self; REGIONS.len()] =
        [Self::Locks, Self::Stacks, Self::Threads, Self::Segments, Self::Maps, Self::Text, Self::Slow];
}

/// Records per region, and their sizes.
pub const REGIONS: [(usize, usize); 7] = [
    (1 << 16, size_of::<Lock>()),
    (1 << 15, size_of::<Stack>()),
    (1 << 13, size_of::<Thread>()),
    (1 << 16, size_of::<Segment>()),
    (1 << 23, 1),
    (1 << 20, 1),
    (1 << 16, size_of::<Slow>()),
];

// As `HolderId` has them.
const _: () = assert!(
    REGIONS[RegionId::Stacks as usize].0 <= 1 << 18 && REGIONS[RegionId::Threads as usize].0 <= 1 << 18
);

/// Pages of a unit.
const fn pages_of(stride: usize) -> usize {
    stride.div_ceil(PAGE)
}

/// Records in a unit.
const fn records_of(stride: usize) -> usize {
    pages_of(stride) * PAGE / stride
}

/// The piece that a unit is in.
const fn piece_with(unit: usize) -> usize {
    let number = unit + 4;
    let octave = number.ilog2() as usize - 2;
    4 * octave + ((number >> octave) & 3)
}

/// The first unit of a piece.
const fn first_unit(piece: usize) -> usize {
    ((4 + piece % 4) << (piece / 4)) - 4
}

/// Pieces that regions have, at most, added up: those of region `n` are `FIRST[n]..FIRST[n + 1]`.
const FIRST: [usize; REGIONS.len() + 1] = {
    let mut first = [0; REGIONS.len() + 1];
    let mut id = 0;
    while id < REGIONS.len() {
        let (capacity, stride) = REGIONS[id];
        first[id + 1] = first[id] + piece_with(capacity.div_ceil(records_of(stride)) - 1) + 1;
        id += 1;
    }
    first
};

/// Pieces of all regions.
pub const PIECES: usize = FIRST[REGIONS.len()];

/// Pages of the longest file: the header and all pieces.
pub const MOST_PAGES: usize = {
    let (mut pages, mut id) = (HEADER_BYTES / PAGE, 0);
    while id < REGIONS.len() {
        pages += first_unit(FIRST[id + 1] - FIRST[id]) * pages_of(REGIONS[id].1);
        id += 1;
    }
    pages
};

/// A piece of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its number among those of all regions: where the header has its first page.
    pub number: usize,
    /// Its first unit in the region.
    pub first: usize,
    /// The number of units.
    pub units: usize,
}

impl Piece {
    /// The piece with a unit of a region; `None` beyond the region's last one.
    #[must_use]
    #[inline(always)]
    pub const fn with(id: RegionId, unit: usize) -> Option<Self> {
        let (number, id) = (piece_with(unit), id as usize);
        if number >= FIRST[id + 1] - FIRST[id] {
            return None;
        }
        Some(Self { number: FIRST[id] + number, first: first_unit(number), units: 1 << (number / 4) })
    }
}

impl RegionId {
    /// Size of a record, bytes.
    #[must_use]
    #[inline(always)]
    pub const fn stride(self) -> usize {
        REGIONS[self as usize].1
    }

    /// Pages of a unit.
    #[must_use]
    #[inline(always)]
    pub const fn unit_pages(self) -> usize {
        pages_of(self.stride())
    }

    /// The unit that has record `number`, and where in it, bytes.
    #[must_use]
    #[inline(always)]
    pub const fn unit_of(self, number: u32) -> (usize, usize) {
        let (number, records) = (number as usize, records_of(self.stride()));
        (number / records, number % records * self.stride())
    }
}

const _: () = assert!(MOST_PAGES < CLOSED as usize);

#[cfg(test)]
mod tests {
    use super::*;

    /// Every unit is in one piece, and pieces follow each other.
    #[test]
    fn units_are_in_pieces() {
        let (mut unit, mut last) = (0, None);
        while let Some(piece) = Piece::with(RegionId::Segments, unit) {
            assert!((piece.first..piece.first + piece.units).contains(&unit), "{unit} {piece:?}");
            if unit == piece.first {
                assert_eq!(last.map_or(FIRST[RegionId::Segments as usize], |last| last + 1), piece.number);
                // The part of a large region that is not used.
                assert!(unit < 64 || piece.units * 4 <= unit + 4, "{piece:?}");
            }
            last = Some(piece.number);
            unit += 1;
        }
        let (capacity, stride) = REGIONS[RegionId::Segments as usize];
        assert!(unit * records_of(stride) >= capacity);
        assert_eq!(last, Some(FIRST[RegionId::Segments as usize + 1] - 1));
    }
}
