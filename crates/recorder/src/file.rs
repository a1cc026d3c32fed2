//! The file: created, mapped, and made larger piece by piece ([`Piece`]).
//!
//! It is mapped as long as it may become, but not accessible: a program that locks its memory (`mlockall`)
//! locks only what is used. Before a record is touched, its pages are made accessible and writable
//! (`MADV_POPULATE_WRITE`), or disk space is allocated for them (`fallocate`) on kernels that cannot do that:
//! a full disk is then a number in `dropped`, and never a signal in the program. With the former no
//! descriptor stays open, so a daemon that closes all of them does no harm. With the latter the descriptor is
//! compared with its file, and not used when it is another's. A file in memory has no name by which a command
//! could open it, so its descriptor stays open, too.
//!
//! The end of the process cuts the file off behind its last piece ([`File::close`]), and the command does if
//! the process could not. Other threads may be recording still: so no piece is added from then on (`CLOSED`),
//! and the existing ones stay. If a process goes on whose end was wrongly assumed, its further data counts as
//! dropped.
//!
//! | op                               | order   | pairs with | because                                            |
//! |----------------------------------|---------|------------|----------------------------------------------------|
//! | `pieces`: CAS from 0             | Release | load       | a reader of the file sees the `end` that has it     |
//! | `pieces`: load, to add           | Acquire | the CAS    | the same                                           |
//! | `pieces`: load, of a record      | Relaxed | –          | the record's number came after it                  |
//! | `end`: all                       | Relaxed | –          | one word, which is about the file alone            |
//! | `ready`: max                     | AcqRel  | load       | the pages up to there can be touched               |

use core::ffi::CStr;
use core::mem::size_of;
use core::ptr::{self, NonNull};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64};

use spinpark_linux::raw;

use super::quota::{Failure, Quota};
use crate::format::{
    Header, Piece, Region, RegionId, CLOSED, HEADER_BYTES, MEMORY_FILE, MOST_PAGES, PAGE, PIECES, REGIONS,
};

/// The regions that every recording has, so that they are made ready at once: the header and a unit of each.
const FIRST: [RegionId; 5] =
    [RegionId::Threads, RegionId::Maps, RegionId::Segments, RegionId::Stacks, RegionId::Locks];
const FIRST_PAGES: usize = {
    let (mut pages, mut at) = (HEADER_BYTES / PAGE, 0);
    while at < FIRST.len() {
        pages += FIRST[at].unit_pages();
        at += 1;
    }
    pages
};
/// A file that may not have this many pages is of no use.
const LEAST_PAGES: usize = 2 * FIRST_PAGES;
/// The most pages of a region that are made ready at a time: a process that records little takes little
/// space.
const LARGEST_STEP: usize = 16;
/// The file takes at most a quarter of the addresses that the process may have.
const LARGEST_PART: u64 = 4;
/// How often a region may find no space before it is no longer asked.
const PATIENCE: u32 = 16;

/// Pieces of text that are copied from one file to another: 240 KB.
const TEXT_PARTS: usize = 16;

/// Text in a file: where its pieces are, and how long.
pub(crate) struct Text {
    parts: [(*const u8, usize); TEXT_PARTS],
}

/// The file of a recording; the default is none.
#[derive(Debug)]
pub(crate) struct File {
    start: AtomicPtr<u8>,
    /// Pages that are mapped.
    pages: AtomicU32,
    /// The descriptor + 1; 0 if there is no need of one.
    descriptor: AtomicI32,
    /// Device and inode number, which identify the file.
    device: AtomicU64,
    number: AtomicU64,
    /// As in the header, which forked children can write to, with other rights perhaps: addresses are made of these.
    pieces: [AtomicU32; PIECES],
    /// Units of each region that can be touched.
    ready: [AtomicU32; REGIONS.len()],
    /// How often there was no space.
    failures: [AtomicU32; REGIONS.len()],
    pub(crate) quota: Quota,
}

impl File {
    pub(crate) const fn new() -> Self {
        #[allow(clippy::declare_interior_mutable_const, reason = "to fill an array")]
        const NONE: AtomicU32 = AtomicU32::new(0);
        Self {
            start: AtomicPtr::new(ptr::null_mut()),
            pages: NONE,
            descriptor: AtomicI32::new(0),
            device: AtomicU64::new(0),
            number: AtomicU64::new(0),
            pieces: [NONE; PIECES],
            ready: [NONE; REGIONS.len()],
            failures: [NONE; REGIONS.len()],
            quota: Quota::new(),
        }
    }

    /// Creates the file and maps it; its header has the regions and nothing else. Without a path it is in
    /// memory.
    pub(crate) fn create(&self, path: Option<&CStr>) -> Result<(), Failure> {
        let pages_in = |bytes: u64| usize::try_from(bytes / PAGE as u64).unwrap_or(usize::MAX);
        // Never longer than the space that there is for all; and the program is left its addresses.
        let mut pages = MOST_PAGES.min(pages_in(self.quota.most()));
        for (limit, failure) in
            [(raw::longest_file(), Failure::TooLong), (raw::largest_space() / LARGEST_PART, Failure::Memory)]
        {
            pages = pages.min(pages_in(limit));
            if pages < LEAST_PAGES {
                return Err(failure);
            }
        }
        let charged = self.quota.take_for_file(FIRST_PAGES)?;
        let file = path.map_or_else(|| raw::create_in_memory(MEMORY_FILE), raw::create);
        if file < 0 {
            self.quota.give_back(charged);
            return Err(Failure::Create(-file));
        }
        let mapped = self.map(file, pages);
        match mapped {
            Ok(_) => {
                let (device, number) = raw::identity(file).unwrap_or_default();
                self.device.store(device, Relaxed);
                self.number.store(number, Relaxed);
            }
            Err(_) => {
                if let Some(path) = path {
                    raw::remove(path);
                }
                self.quota.give_back(charged);
            }
        }
        match mapped {
            // Of a file in memory, a descriptor is all that there is for others.
            Ok((_, is_enough)) if !is_enough || path.is_none() => self.descriptor.store(file + 1, Relaxed),
            _ => {
                raw::close(file);
                self.descriptor.store(0, Relaxed);
            }
        }
        let (start, _) = mapped?;
        self.pages.store(pages as u32, Relaxed);
        self.failures.iter().for_each(|failures| failures.store(0, Relaxed));
        self.write_regions(start.cast());
        self.start.store(start.as_ptr(), Release);
        Ok(())
    }

    /// Maps the file, its first pages ready; whether the kernel makes pages ready without a descriptor.
    fn map(&self, file: i32, pages: usize) -> Result<(NonNull<u8>, bool), Failure> {
        if !raw::set_length(file, pages * PAGE) {
            return Err(Failure::TooLong);
        }
        let start = raw::map_file(file, pages * PAGE).ok_or(Failure::Memory)?;
        // Else the first touch of a page reads those around it: up to megabytes of zeros.
        raw::expect_no_order(start.as_ptr(), pages * PAGE);
        let bytes = FIRST_PAGES * PAGE;
        let is_open = raw::open_mapping(start.as_ptr(), bytes);
        let first = if is_open { raw::populate(start.as_ptr(), bytes) } else { Some(false) };
        if first.unwrap_or_else(|| raw::allocate(file, 0, bytes)) {
            return Ok((start, first.is_some()));
        }
        // SAFETY: no other thread knows of it yet.
        unsafe { raw::unmap(start, pages * PAGE) };
        Err(if is_open { Failure::DiskFull } else { Failure::Memory })
    }

    /// Fills in the header's part about regions.
    fn write_regions(&self, header: NonNull<Header>) {
        for (id, (capacity, stride)) in REGIONS.into_iter().enumerate() {
            let region = Region {
                stride: stride as u32,
                capacity: capacity as u32,
                used: AtomicU32::new(0),
                dropped: AtomicU32::new(0),
            };
            // SAFETY: in the first page, which can be written; no other thread knows it yet.
            let at = unsafe { ptr::addr_of_mut!((*header.as_ptr()).regions[id]) };
            // SAFETY: the same.
            unsafe { at.write(region) };
            self.ready[id].store(0, Relaxed);
        }
        // SAFETY: the same; all zero is a header.
        let header = unsafe { header.as_ref() };
        let mut page = HEADER_BYTES / PAGE;
        self.pieces.iter().for_each(|piece| piece.store(0, Relaxed));
        for id in FIRST {
            if let Some(piece) = Piece::with(id, 0) {
                self.pieces[piece.number].store(page as u32, Relaxed);
                header.pieces[piece.number].store(page as u32, Relaxed);
                self.ready[id as usize].store(piece.units as u32, Relaxed);
                page += piece.units * id.unit_pages();
            }
        }
        header.end.store(page as u32, Relaxed);
    }

    /// The descriptor, if it stays open; it may be another file's by now.
    pub(crate) fn descriptor(&self) -> Option<i32> {
        self.descriptor.load(Relaxed).checked_sub(1).filter(|file| *file >= 0)
    }

    /// Forgets the file, which stays as it is and mapped: a forked child's parent goes on with it.
    pub(crate) fn forget(&self) {
        self.start.store(ptr::null_mut(), Relaxed);
        let file = self.descriptor.swap(0, Relaxed) - 1;
        if file >= 0 && self.owns(file) {
            raw::close(file);
        }
    }

    /// Calls `with` for each part of a region that is ready, with its start and its bytes, as long as that
    /// returns true; whether it always did.
    fn ready_parts(&self, id: RegionId, mut with: impl FnMut(*mut u8, usize) -> bool) -> bool {
        let ready = self.ready[id as usize].load(Acquire) as usize;
        let mut from = 0;
        while let Some(piece) = Piece::with(id, from).filter(|_| from < ready) {
            let until = ready.min(piece.first + piece.units);
            let page = self.pieces[piece.number].load(Acquire) as usize;
            let offset = (page + (from - piece.first) * id.unit_pages()) * PAGE;
            let start = self.start.load(Relaxed).wrapping_add(offset);
            if page != 0 && !with(start, (until - from) * id.unit_pages() * PAGE) {
                return false;
            }
            from = until;
        }
        true
    }

    /// What a region has now, for a file that follows this one in this process. It stays mapped.
    pub(crate) fn text(&self, id: RegionId) -> Text {
        let mut text = Text { parts: [(ptr::null(), 0); TEXT_PARTS] };
        let Some(header) = self.header() else { return text };
        let mut left = header.regions[id as usize].used.load(Acquire) as usize;
        let mut parts = text.parts.iter_mut();
        self.ready_parts(id, |start, length| match parts.next() {
            Some(part) => {
                *part = (start, length.min(left));
                left -= part.1;
                true
            }
            None => false,
        });
        text
    }

    /// Copies that to the end of a region.
    pub(crate) fn append_text(&self, id: RegionId, text: &Text) {
        for (start, length) in text.parts {
            let mut bytes = [0; 256];
            for from in (0..length).step_by(bytes.len()) {
                let bytes = &mut bytes[..(length - from).min(256)];
                for (at, byte) in bytes.iter_mut().enumerate() {
                    // SAFETY: it is mapped, and can be read; another process may be writing it.
                    *byte = unsafe { start.wrapping_add(from + at).read_volatile() };
                }
                self.append(id, bytes, 0);
            }
        }
    }

    /// Whether there is still room for all that is ready. A file system that copies what it changes, such as
    /// btrfs, needs room again for pages that it has written to the disk since: if that is full, touching them
    /// is a signal. Kernels before Linux 5.14 cannot say.
    pub(crate) fn has_room_still(&self) -> bool {
        if self.header().is_none() {
            return false;
        }
        let has_room = |start: *mut u8, length: usize| raw::populate(start, length) != Some(false);
        has_room(self.start.load(Relaxed), HEADER_BYTES)
            && RegionId::ALL.into_iter().all(|id| self.ready_parts(id, has_room))
    }

    /// Empties all regions but one; what they have of the disk stays. No other thread uses the file.
    pub(crate) fn clear(&self, kept: Option<RegionId>) {
        let Some(header) = self.header() else { return };
        for id in RegionId::ALL.into_iter().filter(|id| Some(*id) != kept) {
            let region = &header.regions[id as usize];
            region.used.store(0, Relaxed);
            region.dropped.store(0, Relaxed);
            self.failures[id as usize].store(0, Relaxed);
            self.ready_parts(id, |start, length| {
                // SAFETY: its pages can be written; no other thread does.
                unsafe { start.write_bytes(0, length) };
                true
            });
        }
        header.bounded.store(0, Relaxed);
        header.nested.store(0, Relaxed);
        // SAFETY: no other thread uses it; all zero is one.
        unsafe { ptr::addr_of!(header.experiment).cast_mut().write_bytes(0, 1) };
    }

    /// The process ends: cuts the file off behind what is used, if it is still to be found at `path`.
    pub(crate) fn close(&self, path: &CStr) {
        let Some(header) = self.header() else { return };
        let end = header.end.fetch_or(CLOSED, Relaxed) & !CLOSED;
        let file = raw::open_write(path);
        if file < 0 {
            return;
        }
        // Another one may be at that path: the process may have changed its root directory.
        if self.owns(file) {
            let _ = raw::set_length(file, end as usize * PAGE);
        }
        raw::close(file);
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
    #[inline(always)]
    pub(crate) fn at<T>(&self, id: RegionId, number: u32) -> *mut T {
        debug_assert_eq!(id.stride(), size_of::<T>());
        let start = self.start.load(Relaxed);
        let (unit, within) = id.unit_of(number);
        let (Some(piece), false) = (Piece::with(id, unit), start.is_null()) else { return ptr::null_mut() };
        let page = self.pieces[piece.number].load(Relaxed) as usize;
        start.wrapping_add((page + (unit - piece.first) * id.unit_pages()) * PAGE + within).cast()
    }

    /// Something was not recorded. What threads do after a regular exit is no loss.
    pub(crate) fn dropped(&self, id: RegionId) {
        if let Some(header) = self.header().filter(|header| header.exited.load(Relaxed) == 0) {
            header.regions[id as usize].dropped.fetch_add(1, Relaxed);
        }
    }

    /// Claims a record: its number and its memory, all zero; `None` if there is no space.
    pub(crate) fn claim<T>(&self, id: RegionId) -> Option<(u32, *mut T)> {
        let number = self.claim_many(id, 1)?;
        Some((number, self.at(id, number)))
    }

    /// Copies text to the end of a region, with `zeros` zeros behind it; returns where it starts there.
    /// `None` if there is no space for all of it.
    pub(crate) fn append(&self, id: RegionId, text: &[u8], zeros: u32) -> Option<u32> {
        let number = self.claim_many(id, u32::try_from(text.len()).ok()?.checked_add(zeros)?)?;
        let mut at = number;
        let mut rest = text;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(PAGE - at as usize % PAGE));
            // SAFETY: this thread has claimed these bytes, and they are in one page.
            unsafe { ptr::copy_nonoverlapping(now.as_ptr(), self.at::<u8>(id, at), now.len()) };
            at += now.len() as u32;
            rest = later;
        }
        Some(number)
    }

    /// Claims `count` records that follow each other: the number of the first.
    pub(super) fn claim_many(&self, id: RegionId, count: u32) -> Option<u32> {
        let region = &self.header()?.regions[id as usize];
        let has_room = |used: u32| used.checked_add(count).filter(|used| *used <= region.capacity);
        let claimed = region.used.fetch_update(Relaxed, Relaxed, has_room).ok();
        let last = |number: u32| id.unit_of(number + count.max(1) - 1).0;
        let ready = claimed.filter(|number| self.make_ready(id, last(*number) + 1));
        if ready.is_none() {
            self.dropped(id);
        }
        ready
    }

    /// Sees to it that the first `units` of a region can be touched.
    #[inline]
    fn make_ready(&self, id: RegionId, units: usize) -> bool {
        units <= self.ready[id as usize].load(Acquire) as usize || self.make_more_ready(id, units)
    }

    #[cold]
    fn make_more_ready(&self, id: RegionId, units: usize) -> bool {
        let (ready, failures) = (&self.ready[id as usize], &self.failures[id as usize]);
        let before = ready.load(Acquire) as usize;
        // Another thread has made as much ready since the first look.
        if units <= before {
            return true;
        }
        if failures.load(Relaxed) >= PATIENCE {
            return false;
        }
        let Some(last) = Piece::with(id, units - 1) else { return false };
        // As far as the piece goes: others may make ready the same, which does no harm.
        let much = (last.first + last.units).min(units.next_multiple_of(LARGEST_STEP / id.unit_pages()));
        let mut is_bound = false;
        for goal in [much.max(units), units] {
            let Some(charged) = self.quota.take(goal.saturating_sub(before) * id.unit_pages()) else {
                is_bound = true;
                continue;
            };
            if !self.take_room(id, before, goal) {
                self.quota.give_back(charged);
                continue;
            }
            let other = ready.fetch_max(goal as u32, AcqRel) as usize;
            // What another thread has made ready meanwhile was taken twice.
            self.quota
                .give_back(Quota::charge(other.clamp(before, goal).saturating_sub(before) * id.unit_pages()));
            return true;
        }
        failures.fetch_add(1, Relaxed);
        if let Some(header) = self.header().filter(|_| is_bound) {
            header.bounded.fetch_add(1, Relaxed);
        }
        false
    }

    /// The process has waited for a lock: its quota is larger from now on.
    #[inline(always)]
    pub(crate) fn has_waited(&self) {
        if self.quota.has_waited() {
            self.failures.iter().for_each(|failures| failures.store(0, Relaxed));
        }
    }

    /// Makes the units `from..to` of a region ready.
    fn take_room(&self, id: RegionId, from: usize, to: usize) -> bool {
        let mut from = from;
        while from < to {
            let Some(piece) = Piece::with(id, from) else { return false };
            let Some(page) = self.page_of(piece, id) else { return false };
            let until = to.min(piece.first + piece.units);
            let offset = (page + (from - piece.first) * id.unit_pages()) * PAGE;
            if !self.take_pages(offset, (until - from) * id.unit_pages() * PAGE) {
                return false;
            }
            from = until;
        }
        true
    }

    /// The first page of a piece, which may be new; `None` if the file may not be longer.
    fn page_of(&self, piece: Piece, id: RegionId) -> Option<usize> {
        let header = self.header()?;
        let slot = &self.pieces[piece.number];
        // Each thread that is going to use it shows it to readers of the file: the first may be slow to.
        let shown = |page: u32| {
            header.pieces[piece.number].store(page, Release);
            page as usize
        };
        let found = slot.load(Acquire);
        if found != 0 {
            return Some(shown(found));
        }
        let (pages, most) = ((piece.units * id.unit_pages()) as u32, self.pages.load(Relaxed));
        // With `CLOSED` it is more than any file has.
        let longer = |end: u32| end.checked_add(pages).filter(|end| *end <= most);
        let new = header.end.fetch_update(Relaxed, Relaxed, longer).ok()?;
        match slot.compare_exchange(0, new, Release, Acquire) {
            Ok(_) => Some(shown(new)),
            Err(other) => {
                // Another thread was faster. If a piece already lies behind, a hole stays.
                let _ = header.end.compare_exchange(new + pages, new, Relaxed, Relaxed);
                Some(shown(other))
            }
        }
    }

    fn take_pages(&self, offset: usize, length: usize) -> bool {
        let start = self.start.load(Relaxed).wrapping_add(offset);
        if !raw::open_mapping(start, length) {
            return false;
        }
        match self.descriptor.load(Relaxed) - 1 {
            -1 => raw::populate(start, length).unwrap_or(false),
            file => self.owns(file) && raw::allocate(file, offset, length),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Forked children have the file, perhaps with fewer rights than their parent, whose memory they must not reach.
    #[test]
    fn addresses_do_not_come_from_the_file() {
        let file = File::new();
        file.quota.open_in_memory(1 << 28).expect("a quota");
        file.create(None).expect("a file");
        let (first, _) = file.claim::<u8>(RegionId::Text).expect("room");
        let at = file.at::<u8>(RegionId::Text, first);
        let header = file.header().expect("a header");
        header.pieces.iter().for_each(|piece| piece.store(u32::MAX, Relaxed));
        header.end.store(0, Relaxed);
        assert_eq!(file.at::<u8>(RegionId::Text, first), at);
        let within = file.start.load(Relaxed).addr()..file.start.load(Relaxed).addr() + (1 << 28);
        // Also of what is made ready from now on.
        while let Some(number) = file.claim_many(RegionId::Text, 1000) {
            let at = file.at::<u8>(RegionId::Text, number);
            assert!(within.contains(&at.addr()), "{number}");
        }
    }
}
