//! Reading the file: no number in it is trusted.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed};

use super::entry::{Entry, Head, HeldWaitStats, LockStats, NestStats, PairStats, SiteStats};
use super::header::{Header, Region, MAGIC, VERSION};
use super::pieces::{Piece, RegionId, HEADER_BYTES, PAGE, REGIONS};
use super::record::{Lock, Segment, Stack, Thread, SEGMENT_BYTES};
use super::slow::{Slow, SlowWait};

/// Why a file is not a profile that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// Shorter than a header.
    Short,
    /// It does not begin as a profile does.
    Foreign,
    /// It has another version.
    Version(u32),
    /// A region has records that none has.
    Region,
}

/// A profile, or a part of it: a file that was cut short has fewer records.
#[derive(Clone, Copy)]
pub struct View<'a> {
    start: *const u8,
    bytes: usize,
    file: PhantomData<&'a Header>,
}

impl<'a> View<'a> {
    /// The profile in these bytes.
    ///
    /// # Safety
    ///
    /// `start` is aligned to 8 bytes; `bytes` bytes from there are readable for `'a`, and written to by
    /// recorders only.
    pub unsafe fn new(start: *const u8, bytes: usize) -> Result<Self, Broken> {
        if bytes < HEADER_BYTES {
            return Err(Broken::Short);
        }
        let view = Self { start, bytes, file: PhantomData };
        let header = view.header();
        if header.magic.load(Acquire) != MAGIC {
            return Err(Broken::Foreign);
        }
        if header.version != VERSION {
            return Err(Broken::Version(header.version));
        }
        let fits = |(region, (capacity, stride)): (&Region, (usize, usize))| {
            region.stride as usize == stride && region.capacity as usize <= capacity
        };
        if header.regions.iter().zip(REGIONS).all(fits) {
            Ok(view)
        } else {
            Err(Broken::Region)
        }
    }

    /// The first page.
    #[must_use]
    pub fn header(&self) -> &'a Header {
        // SAFETY: that much is there, as `new` was promised and has checked; any bits are a header.
        unsafe { &*self.start.cast() }
    }

    fn region(&self, id: RegionId) -> &'a Region {
        &self.header().regions[id as usize]
    }

    /// How many records of a region there are, in the file or (if it was cut short) not.
    fn count(&self, id: RegionId) -> u32 {
        let region = self.region(id);
        region.used.load(Acquire).min(region.capacity)
    }

    /// Where `length` bytes of a region are that lie in one unit from record `number` on; `None` if they are
    /// not in the file.
    fn at(&self, id: RegionId, number: u32, length: usize) -> Option<*const u8> {
        let (unit, within) = id.unit_of(number);
        let piece = Piece::with(id, unit)?;
        let page = self.header().pieces[piece.number].load(Acquire) as usize;
        let before = (unit - piece.first) * id.unit_pages();
        let offset = (page + before) * PAGE + within;
        // SAFETY: inside the file.
        (page != 0 && offset + length <= self.bytes).then(|| unsafe { self.start.add(offset) })
    }

    /// The address of record `number` of a region, if it is in the file.
    fn record<T>(&self, id: RegionId, number: u32) -> Option<&'a T> {
        debug_assert_eq!(size_of::<T>(), id.stride());
        if number >= self.count(id) {
            return None;
        }
        let record = self.at(id, number, size_of::<T>())?;
        // SAFETY: a whole one is there; aligned, as it is at a multiple of its size in a page; any bits are a
        // record.
        unsafe { Some(&*record.cast()) }
    }

    /// Whether records that were claimed are beyond the end of the file.
    #[must_use]
    pub fn is_cut_short(&self) -> bool {
        RegionId::ALL.into_iter().filter(|id| self.count(*id) > 0).any(|id| {
            let (last, within) = id.unit_of(self.count(id) - 1);
            (0..=last).any(|unit| {
                let Some(piece) = Piece::with(id, unit) else { return false };
                let page = self.header().pieces[piece.number].load(Acquire) as usize;
                let used = if unit == last { within + id.stride() } else { id.unit_pages() * PAGE };
                page != 0 && (page + (unit - piece.first) * id.unit_pages()) * PAGE + used > self.bytes
            })
        })
    }

    /// Lock `number`, unless it is not there or not written yet.
    #[must_use]
    pub fn lock(&self, number: u32) -> Option<&'a Lock> {
        self.record(RegionId::Locks, number).filter(|lock: &&Lock| lock.kind.load(Acquire) != 0)
    }

    /// Stack `number`, unless it is not there or not written yet.
    #[must_use]
    pub fn stack(&self, number: u32) -> Option<&'a Stack> {
        self.record(RegionId::Stacks, number).filter(|stack: &&Stack| stack.hash.load(Acquire) != 0)
    }

    /// The locks, with their numbers.
    pub fn locks(self) -> impl Iterator<Item = (u32, &'a Lock)> {
        (0..self.count(RegionId::Locks)).filter_map(move |number| Some((number, self.lock(number)?)))
    }

    /// The stacks, with their numbers.
    pub fn stacks(self) -> impl Iterator<Item = (u32, &'a Stack)> {
        (0..self.count(RegionId::Stacks)).filter_map(move |number| Some((number, self.stack(number)?)))
    }

    /// The tables, with their numbers.
    pub fn threads(self) -> impl Iterator<Item = (u32, &'a Thread)> {
        (0..self.count(RegionId::Threads)).filter_map(move |number| {
            let thread: &Thread = self.record(RegionId::Threads, number)?;
            (thread.id.load(Acquire) != 0).then_some((number, thread))
        })
    }

    /// The waits that were kept whole.
    pub fn slow(self) -> impl Iterator<Item = SlowWait> + use<'a> {
        (0..self.count(RegionId::Slow))
            .filter_map(move |number| self.record::<Slow>(RegionId::Slow, number)?.get())
    }

    /// All entries, with the numbers of the tables that they are in.
    pub fn entries(self) -> impl Iterator<Item = (u32, Entry<'a>)> {
        (0..self.count(RegionId::Segments)).flat_map(move |number| {
            let segment: Option<&Segment> = self.record(RegionId::Segments, number);
            let owner = segment.map_or(0, |segment| segment.owner.load(Acquire));
            let entries = segment.filter(|_| owner != 0).map(|segment| Entries { segment, at: 0 });
            entries.into_iter().flatten().map(move |entry| (owner - 1, entry))
        })
    }

    /// The bytes of a region of text from `from` on, piece by piece, as far as they are in the file.
    fn bytes_of(self, id: RegionId, from: u32) -> impl Iterator<Item = &'a [u8]> {
        let count = self.count(id);
        let mut next = from;
        core::iter::from_fn(move || {
            let left = count.checked_sub(next).filter(|left| *left > 0)?;
            let length = (PAGE - next as usize % PAGE).min(left as usize);
            let bytes = self.at(id, next, length)?;
            next += length as u32;
            // SAFETY: `at` has checked the length; text that is counted as used is not written any more.
            Some(unsafe { core::slice::from_raw_parts(bytes, length) })
        })
    }

    /// Snapshots of the process' maps: see [`RegionId::Maps`].
    pub fn maps(self) -> impl Iterator<Item = &'a [u8]> {
        self.bytes_of(RegionId::Maps, 0)
    }

    /// The name that starts at `offset` of the region `text`; `None` if it has no end.
    #[must_use]
    pub fn text(self, offset: u32) -> Option<impl Iterator<Item = u8> + use<'a>> {
        let bytes = move || self.bytes_of(RegionId::Text, offset).flatten().copied();
        bytes().any(|byte| byte == 0).then(|| bytes().take_while(|byte| *byte != 0))
    }
}

/// The entries of a segment.
struct Entries<'a> {
    segment: &'a Segment,
    /// Words.
    at: usize,
}

impl<'a> Entries<'a> {
    /// The entry of type `T` at the present place, if it has that size there.
    fn read<T>(&mut self, bytes: u32) -> Option<&'a T> {
        let words = &self.segment.entries[self.at..];
        if bytes as usize != size_of::<T>() || size_of_val(words) < size_of::<T>() {
            return None;
        }
        self.at += size_of::<T>() / 8;
        // SAFETY: inside the segment; aligned to 8 bytes; any bits are an entry.
        unsafe { Some(&*words.as_ptr().cast()) }
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        let words = &self.segment.entries[self.at..];
        if size_of_val(words) < size_of::<Head>() {
            return None;
        }
        // SAFETY: a head fits there; aligned to 8 bytes; any bits are a head.
        let head: &Head = unsafe { &*words.as_ptr().cast() };
        match head.kind.load(Acquire) {
            Entry::LOCK => self.read::<LockStats>(head.bytes).map(Entry::Lock),
            Entry::SITE => self.read::<SiteStats>(head.bytes).map(Entry::Site),
            Entry::PAIR => self.read::<PairStats>(head.bytes).map(Entry::Pair),
            Entry::HELD_WAIT => self.read::<HeldWaitStats>(head.bytes).map(Entry::HeldWait),
            Entry::NEST => self.read::<NestStats>(head.bytes).map(Entry::Nest),
            _ => None, // the end, or what no recorder has written
        }
    }
}

const _: () = assert!(SEGMENT_BYTES % 8 == 0);
const _: () = assert!(size_of::<LockStats>() % 8 == 0);
const _: () = assert!(size_of::<SiteStats>() % 8 == 0);
const _: () = assert!(size_of::<PairStats>() % 8 == 0);
const _: () = assert!(size_of::<HeldWaitStats>() % 8 == 0);
const _: () = assert!(size_of::<NestStats>() % 8 == 0);

impl Header {
    /// How many things did not fit: locks, stacks, tables, pieces of tables. Waits that are not kept whole
    /// are counted all the same.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        let others = self.regions.iter().enumerate().filter(|(id, _)| *id != RegionId::Slow as usize);
        others.map(|(_, region)| region).map(|region| u64::from(region.dropped.load(Relaxed))).sum()
    }
}
