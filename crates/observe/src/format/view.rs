//! Reading the file: every number in it is doubted.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed};

use super::entry::{Entry, Head, HeldWaitStats, LockStats, PairStats, SiteStats};
use super::header::{Header, Region, RegionId, HEADER_BYTES, MAGIC, VERSION};
use super::record::{Lock, Segment, Stack, Thread, SEGMENT_BYTES};

/// Why a file is not a profile that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// Shorter than a header.
    Short,
    /// It does not begin as a profile does.
    Foreign,
    /// It has another version.
    Version(u32),
    /// A region lies where none can be.
    Region,
}

/// A profile, or what there is of it: a file that was cut short has fewer records.
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
    /// `start` is aligned to 8 bytes; `bytes` bytes from there are readable for `'a`, and written to by recorders only.
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
        let strides = super::header::REGIONS;
        let fits = |(region, (_, stride)): (&Region, (usize, usize))| {
            region.offset % 8 == 0 && region.offset >= HEADER_BYTES as u64 && region.stride as usize == stride
        };
        if header.regions.iter().zip(strides).all(fits) {
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

    /// How many records of a region are in the file.
    fn count(&self, id: RegionId) -> u32 {
        let region = self.region(id);
        let there = (self.bytes as u64).saturating_sub(region.offset) / u64::from(region.stride);
        let used = region.used.load(Acquire).min(region.capacity);
        u32::try_from(there).unwrap_or(u32::MAX).min(used)
    }

    /// The address of record `number` of a region, if it is in the file.
    fn record<T>(&self, id: RegionId, number: u32) -> Option<&'a T> {
        let region = self.region(id);
        debug_assert_eq!(size_of::<T>(), region.stride as usize);
        if number >= self.count(id) {
            return None;
        }
        let offset = region.offset as usize + number as usize * size_of::<T>();
        // SAFETY: inside the file, as `count` has it.
        let record = unsafe { self.start.add(offset) };
        // SAFETY: a whole one is there; aligned, as offset and sizes are multiples of 8; any bits are a record.
        unsafe { Some(&*record.cast()) }
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

    /// All entries, with the numbers of the tables that they are in.
    pub fn entries(self) -> impl Iterator<Item = (u32, Entry<'a>)> {
        (0..self.count(RegionId::Segments)).flat_map(move |number| {
            let segment: Option<&Segment> = self.record(RegionId::Segments, number);
            let owner = segment.map_or(0, |segment| segment.owner.load(Acquire));
            let entries = segment.filter(|_| owner != 0).map(|segment| Entries { segment, at: 0 });
            entries.into_iter().flatten().map(move |entry| (owner - 1, entry))
        })
    }

    fn bytes_of(&self, id: RegionId) -> &'a [u8] {
        let (offset, length) = (self.region(id).offset as usize, self.count(id) as usize);
        // SAFETY: inside the file, as `count` has it.
        let bytes = unsafe { self.start.add(offset) };
        // SAFETY: so long; what is counted as used is not written any more.
        unsafe { core::slice::from_raw_parts(bytes, length) }
    }

    /// Snapshots of the process' maps: see [`RegionId::Maps`].
    #[must_use]
    pub fn maps(&self) -> &'a [u8] {
        self.bytes_of(RegionId::Maps)
    }

    /// The name that starts at `offset` of the region `text`.
    #[must_use]
    pub fn text(&self, offset: u32) -> Option<&'a [u8]> {
        let rest = self.bytes_of(RegionId::Text).get(offset as usize..)?;
        Some(&rest[..rest.iter().position(|byte| *byte == 0)?])
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
            _ => None, // the end, or what no recorder has written
        }
    }
}

const _: () = assert!(SEGMENT_BYTES % 8 == 0);
const _: () = assert!(size_of::<LockStats>() % 8 == 0);
const _: () = assert!(size_of::<SiteStats>() % 8 == 0);
const _: () = assert!(size_of::<PairStats>() % 8 == 0);
const _: () = assert!(size_of::<HeldWaitStats>() % 8 == 0);

impl Header {
    /// How many things did not fit: locks, stacks, tables, pieces of tables.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.regions.iter().map(|region| u64::from(region.dropped.load(Relaxed))).sum()
    }
}
