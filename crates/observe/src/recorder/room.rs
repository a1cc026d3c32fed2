//! How much room the recordings of a directory may take.
//!
//! All processes that record there count in one mapped word what their files have on the disk; nothing is written beyond the
//! bound. There is no lock, so a process that is stopped or killed holds up no other.
//!
//! - **R1, the files never have more than `taken` says.** A process adds before it writes. One that is killed between the two
//!   leaves a count that is too high by one piece.
//! - **R2, `taken` never exceeds the bound.** The exchange that adds compares with it.
//! - **R3, what waits comes first.** A process that has not waited for a lock may take room only as long as the
//!   recordings have less than half of the bound.
//!
//! Every operation is Relaxed: the words say nothing about other memory.

use core::ffi::CStr;
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicPtr, AtomicU64};

use spinpark_linux::raw;

use crate::format::RoomCount;

const PAGE: usize = 4096;
/// A recording that has less room than this is not begun.
const LEAST: u64 = 1 << 16;

/// The room in the directory of a recording; the default has none.
#[derive(Debug)]
pub(crate) struct Room {
    count: AtomicPtr<RoomCount>,
    /// What this process may fill now, bytes.
    limit: AtomicU64,
    /// The bound, bytes.
    most: AtomicU64,
}

impl Room {
    pub(crate) const fn new() -> Self {
        Self { count: AtomicPtr::new(ptr::null_mut()), limit: AtomicU64::new(0), most: AtomicU64::new(0) }
    }

    /// Maps the count in this file, unless one is mapped; whether it is there. `most`: the bound, bytes. A process that
    /// `is_idle` has not waited for a lock (R3).
    pub(crate) fn open(&self, file: &CStr, most: u64, is_idle: bool) -> bool {
        self.most.store(most, Relaxed);
        self.limit.store(if is_idle { most / 2 } else { most }, Relaxed);
        if self.count().is_none() {
            self.count.store(map(file).unwrap_or(ptr::null_mut()), Relaxed);
        }
        let Some(count) = self.count() else { return false };
        count.most.fetch_max(most, Relaxed);
        true
    }

    #[inline]
    fn count(&self) -> Option<&RoomCount> {
        // SAFETY: null, or a page that stays mapped, of which any bits are a count.
        unsafe { self.count.load(Relaxed).as_ref() }
    }

    /// This process has waited for a lock; whether it may take more from now on.
    #[inline(always)]
    pub(crate) fn has_waited(&self) -> bool {
        let most = self.most.load(Relaxed);
        self.limit.load(Relaxed) != most && {
            self.limit.store(most, Relaxed);
            true
        }
    }

    /// Whether a recording may begin.
    pub(crate) fn is_there(&self) -> bool {
        self.count().is_some_and(|count| self.fits(count.taken.load(Relaxed), LEAST).is_some())
    }

    fn fits(&self, taken: u64, bytes: u64) -> Option<u64> {
        // The count itself has a page.
        let all = taken.checked_add(bytes)?;
        (all.checked_add(PAGE as u64)? <= self.limit.load(Relaxed)).then_some(all)
    }

    /// Takes room for so many bytes, if there is some (R1, R2).
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let Some(count) = self.count() else { return false };
        count.taken.fetch_update(Relaxed, Relaxed, |taken| self.fits(taken, bytes as u64)).is_ok()
    }

    /// Gives back what was taken and not written.
    pub(crate) fn give_back(&self, bytes: usize) {
        if let Some(count) = self.count() {
            count.taken.fetch_sub(bytes as u64, Relaxed);
        }
    }

    /// One process more (or, with -1, less) that is not recorded for want of room.
    pub(crate) fn refused(&self, change: i32) {
        if let Some(count) = self.count() {
            count.refused.fetch_add(change as u32, Relaxed);
        }
    }

    /// This process cannot create its file.
    pub(crate) fn failed(&self) {
        if let Some(count) = self.count() {
            count.failed.fetch_add(1, Relaxed);
        }
    }
}

/// Maps the count in a file. Its length is set, and its room taken, by each who opens it: that changes nothing.
fn map(path: &CStr) -> Option<*mut RoomCount> {
    let file = raw::open_or_create(path);
    if file < 0 {
        return None;
    }
    let page = if raw::set_length(file, PAGE) { raw::map_file(file, PAGE) } else { None };
    let is_whole = |page: &ptr::NonNull<u8>| {
        raw::open_mapping(page.as_ptr(), PAGE)
            && raw::populate(page.as_ptr(), PAGE).unwrap_or_else(|| raw::allocate(file, 0, PAGE))
    };
    let whole = page.filter(is_whole);
    raw::close(file);
    if let (Some(page), None) = (page, whole) {
        // SAFETY: mapped above, and no other code has its address.
        unsafe { raw::unmap(page, PAGE) };
    }
    whole.map(|page| page.as_ptr().cast())
}
