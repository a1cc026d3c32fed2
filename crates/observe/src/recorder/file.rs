//! The file: created, mapped, and made larger piece by piece.
//!
//! It is sparse and mapped whole, but not accessible: a program that locks its memory (`mlockall`) locks only what is used.
//! Before a record is touched, its pages are made accessible and writable (`MADV_POPULATE_WRITE`), or their
//! room on the disk is taken (`fallocate`) on kernels that cannot do that: a disk without room is then a number in
//! `dropped`, and never a signal in the program. With the former no descriptor stays open, which a daemon that closes all
//! of them would close; with the latter the descriptor is known by its file, and not used when it is another's.

use core::ffi::CStr;
use core::mem::size_of;
use core::ptr::{self, NonNull};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64};

use spinpark_linux::raw;

use super::room::Room;
use crate::format::{Header, Region, RegionId, HEADER_BYTES, REGIONS, SEGMENT_BYTES};

const PAGE: usize = 4096;
/// A region becomes twice as long each time, and by so much at most: a process that does little takes little room.
const LARGEST_STEP: usize = 1 << 16;
/// The file takes one in so many of the addresses that the process may have, at most.
const LARGEST_PART: u64 = 4;
/// So often a region may find no room before it is no longer asked.
const PATIENCE: u32 = 16;

/// Where a region starts.
const fn offset_of(id: usize) -> usize {
    let (mut offset, mut at) = (HEADER_BYTES, 0);
    while at < id {
        offset += (REGIONS[at].0 * REGIONS[at].1).next_multiple_of(PAGE);
        at += 1;
    }
    offset
}

/// Bytes of the whole file.
pub(crate) const FILE_BYTES: usize = offset_of(REGIONS.len());

/// Why there is no recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The file could not be created: the errno.
    Create(i32),
    /// Files of this process may not be as long.
    TooLong,
    /// There is no room for its first page, or it could not be mapped.
    NoRoom,
    /// The recordings of the directory would exceed their bound.
    Bound,
    /// The process records already, or does not any more.
    NotNow,
}

/// The file of a recording; the default is none.
#[derive(Debug)]
pub(crate) struct File {
    start: AtomicPtr<u8>,
    /// The descriptor + 1 and what it must be of; 0 if there is no need of one.
    descriptor: AtomicI32,
    device: AtomicU64,
    number: AtomicU64,
    /// Bytes of each region that can be touched.
    ready: [AtomicU64; REGIONS.len()],
    /// How often there was no room.
    failures: [AtomicU32; REGIONS.len()],
    pub(crate) room: Room,
}

impl File {
    pub(crate) const fn new() -> Self {
        #[allow(clippy::declare_interior_mutable_const, reason = "to fill an array")]
        const ZERO: AtomicU64 = AtomicU64::new(0);
        #[allow(clippy::declare_interior_mutable_const, reason = "to fill an array")]
        const NONE: AtomicU32 = AtomicU32::new(0);
        Self {
            start: AtomicPtr::new(ptr::null_mut()),
            descriptor: AtomicI32::new(0),
            device: ZERO,
            number: ZERO,
            ready: [ZERO; REGIONS.len()],
            failures: [NONE; REGIONS.len()],
            room: Room::new(),
        }
    }

    /// Creates the file and maps it; its header has the regions and nothing else.
    pub(crate) fn create(&self, path: &CStr) -> Result<(), Failure> {
        if raw::longest_file() < FILE_BYTES as u64 {
            return Err(Failure::TooLong);
        }
        // Addresses that the program is not left without.
        if raw::largest_space() / LARGEST_PART < FILE_BYTES as u64 {
            return Err(Failure::NoRoom);
        }
        let file = raw::create(path);
        if file < 0 {
            return Err(Failure::Create(-file));
        }
        let start = if raw::set_length(file, FILE_BYTES) { raw::map_file(file, FILE_BYTES) } else { None };
        let Some(start) = start else {
            raw::close(file);
            raw::remove(path);
            return Err(Failure::NoRoom);
        };
        let is_open = self.room.take(HEADER_BYTES) && raw::open_mapping(start.as_ptr(), HEADER_BYTES);
        let first = if is_open { raw::populate(start.as_ptr(), HEADER_BYTES) } else { Some(false) };
        if !first.unwrap_or_else(|| raw::allocate(file, 0, HEADER_BYTES)) {
            // SAFETY: no other thread knows of it yet.
            unsafe { raw::unmap(start, FILE_BYTES) };
            raw::close(file);
            raw::remove(path);
            return Err(Failure::NoRoom);
        }
        if first.is_some() {
            raw::close(file);
            self.descriptor.store(0, Relaxed);
        } else {
            let (device, number) = raw::identity(file).unwrap_or_default();
            self.device.store(device, Relaxed);
            self.number.store(number, Relaxed);
            self.descriptor.store(file + 1, Relaxed);
        }
        self.ready.iter().for_each(|ready| ready.store(0, Relaxed));
        self.failures.iter().for_each(|failures| failures.store(0, Relaxed));
        let header: NonNull<Header> = start.cast();
        for (id, (capacity, stride)) in REGIONS.into_iter().enumerate() {
            let region = Region {
                offset: offset_of(id) as u64,
                stride: stride as u32,
                capacity: capacity as u32,
                used: AtomicU32::new(0),
                dropped: AtomicU32::new(0),
            };
            // SAFETY: in the first page, which can be written; no other thread knows it yet.
            let at = unsafe { ptr::addr_of_mut!((*header.as_ptr()).regions[id]) };
            // SAFETY: as above.
            unsafe { at.write(region) };
        }
        self.start.store(start.as_ptr(), Release);
        Ok(())
    }

    /// Forgets the file, which stays as it is and mapped: a forked child's parent goes on with it.
    pub(crate) fn forget(&self) {
        self.start.store(ptr::null_mut(), Relaxed);
        let file = self.descriptor.swap(0, Relaxed) - 1;
        if file >= 0 && self.owns(file) {
            raw::close(file);
        }
    }

    #[inline(always)]
    pub(crate) fn header(&self) -> Option<&Header> {
        // SAFETY: null, or the start of a mapping whose first page can be read and written.
        unsafe { self.start.load(Acquire).cast::<Header>().as_ref() }
    }

    fn owns(&self, file: i32) -> bool {
        raw::identity(file) == Some((self.device.load(Relaxed), self.number.load(Relaxed)))
    }

    /// Where the header is, to be filled.
    pub(crate) fn at_start(&self) -> *mut Header {
        self.start.load(Relaxed).cast()
    }

    /// The address of record `number` of a region, which the caller knows to be ready.
    pub(crate) fn at<T>(&self, id: RegionId, number: u32) -> *mut T {
        debug_assert_eq!(REGIONS[id as usize].1, size_of::<T>());
        let offset = offset_of(id as usize) + number as usize * size_of::<T>();
        self.start.load(Relaxed).wrapping_add(offset).cast()
    }

    /// Something was not recorded.
    pub(crate) fn dropped(&self, id: RegionId) {
        if let Some(header) = self.header() {
            header.regions[id as usize].dropped.fetch_add(1, Relaxed);
        }
    }

    /// Claims a record: its number and its memory, all zero; `None` if there is no room.
    pub(crate) fn claim<T>(&self, id: RegionId) -> Option<(u32, *mut T)> {
        self.claim_many(id, 1)
    }

    /// Claims `count` records that follow each other.
    pub(crate) fn claim_many<T>(&self, id: RegionId, count: u32) -> Option<(u32, *mut T)> {
        let region = &self.header()?.regions[id as usize];
        let stride = size_of::<T>();
        let has_room = |used: u32| used.checked_add(count).filter(|used| *used <= region.capacity);
        let Ok(number) = region.used.fetch_update(Relaxed, Relaxed, has_room) else {
            region.dropped.fetch_add(1, Relaxed);
            return None;
        };
        let from = number as usize * stride;
        if !self.make_ready(id, from, from + count as usize * stride) {
            region.dropped.fetch_add(1, Relaxed);
            return None;
        }
        Some((number, self.at(id, number)))
    }

    /// Sees to it that the bytes up to `to` of a region can be touched.
    fn make_ready(&self, id: RegionId, from: usize, to: usize) -> bool {
        let (ready, failures) = (&self.ready[id as usize], &self.failures[id as usize]);
        let before = ready.load(Acquire) as usize;
        if to <= before {
            return true;
        }
        if failures.load(Relaxed) >= PATIENCE {
            return false;
        }
        let step = match id {
            RegionId::Segments => SEGMENT_BYTES,
            _ => before.clamp(PAGE, LARGEST_STEP),
        };
        let (capacity, stride) = REGIONS[id as usize];
        let end = (capacity * stride).next_multiple_of(PAGE);
        // From the page in which the ready part ends: others may make ready the same, which does no harm.
        let start = before.min(from) / PAGE * PAGE;
        let much = to.next_multiple_of(step).min(end);
        let little = to.next_multiple_of(PAGE);
        let mut is_bound = false;
        let there = [much, little].into_iter().find(|to| {
            let bytes = to - before.next_multiple_of(PAGE);
            let is_taken = self.room.take(bytes);
            is_bound = !is_taken;
            let is_there = is_taken && self.take_room(id, start, *to);
            if is_taken && !is_there {
                self.room.give_back(bytes);
            }
            is_there
        });
        match there {
            Some(to) => {
                let other = ready.fetch_max(to as u64, AcqRel) as usize;
                // What another thread has made ready meanwhile was taken twice.
                self.room.give_back(other.min(to).next_multiple_of(PAGE) - before.next_multiple_of(PAGE));
                true
            }
            None => {
                failures.fetch_add(1, Relaxed);
                if let Some(header) = self.header().filter(|_| is_bound) {
                    header.bounded.fetch_add(1, Relaxed);
                }
                false
            }
        }
    }

    /// The process has waited for a lock: it may take more room than before.
    #[inline(always)]
    pub(crate) fn has_waited(&self) {
        if self.room.has_waited() {
            self.failures.iter().for_each(|failures| failures.store(0, Relaxed));
        }
    }

    fn take_room(&self, id: RegionId, from: usize, to: usize) -> bool {
        let offset = offset_of(id as usize) + from;
        if !raw::open_mapping(self.start.load(Relaxed).wrapping_add(offset), to - from) {
            return false;
        }
        match self.descriptor.load(Relaxed) - 1 {
            -1 => {
                let start = self.start.load(Relaxed).wrapping_add(offset);
                raw::populate(start, to - from).unwrap_or(false)
            }
            file => self.owns(file) && raw::allocate(file, offset, to - from),
        }
    }
}
