//! The quota of the recordings of a directory.
//!
//! All processes that record there count the disk space of their files in one mapped word; nothing is written
//! beyond the quota. There is no lock, so a process that is stopped or killed holds up no other.
//!
//! - **R1, the files never have more than `taken` says.** A process adds before it writes. One that is killed
//!   between the two leaves a count that is too high by one piece. What the file system needs besides is
//!   counted with it: a page that lists a file's pieces, a 256th for more of those, and the name in the
//!   directory.
//! - **R2, `taken` never exceeds the quota.** The exchange that adds compares with it.
//! - **R3, processes that wait come first.** A process that has not waited for a lock may take space only
//!   while the recordings have less than half of the quota.
//!
//! Every operation is Relaxed: the words say nothing about other memory.

use core::ffi::CStr;
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicPtr, AtomicU64};

use spinpark_linux::raw;

use crate::format::{Cause, QuotaCount, PAGE};

/// A recording with less space than this is not begun.
const LEAST: u64 = 1 << 16;
/// What a file system needs to list the pages of a file, for each of them at the worst, bytes.
const LISTED: usize = PAGE / 256;
/// What it needs for a file besides, bytes: a page with the beginning of that list, and a name in the
/// directory.
const FOR_FILE: usize = PAGE + 128;
/// What the count itself and an empty directory have, bytes.
const FOR_DIRECTORY: u64 = 2 * PAGE as u64;

/// Why there is no recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The file could not be created: the errno.
    Create(i32),
    /// Files of this process may not be as long.
    TooLong,
    /// The disk has no space for its first pages.
    DiskFull,
    /// There are no addresses for it, or no memory.
    Memory,
    /// The recordings of the directory would exceed their quota.
    Bound,
    /// The process has entered a sandbox.
    Sandbox,
    /// The kernel does not order the memory of this process' threads.
    NoBarrier,
    /// The process records already, or does not any more.
    NotNow,
}

impl Failure {
    /// How it is counted.
    #[must_use]
    pub fn cause(self) -> Cause {
        match self {
            Self::Create(libc::EACCES | libc::EPERM | libc::EROFS) => Cause::Permission,
            Self::Create(libc::ENOENT | libc::ENOTDIR) => Cause::Missing,
            Self::Create(libc::ENOSPC | libc::EDQUOT) | Self::DiskFull => Cause::DiskFull,
            Self::Create(libc::EMFILE | libc::ENFILE) => Cause::Descriptors,
            Self::Create(libc::EFBIG) | Self::TooLong => Cause::FileLength,
            Self::Create(libc::ENOMEM) | Self::Memory => Cause::Memory,
            Self::Sandbox => Cause::Sandbox,
            Self::Create(_) | Self::Bound | Self::NoBarrier | Self::NotNow => Cause::Other,
        }
    }
}

/// The quota of a recording's directory; the default has none.
#[derive(Debug)]
pub(crate) struct Quota {
    count: AtomicPtr<QuotaCount>,
    /// What this process may fill now, bytes.
    limit: AtomicU64,
    /// The quota, bytes.
    most: AtomicU64,
}

impl Quota {
    pub(crate) const fn new() -> Self {
        Self { count: AtomicPtr::new(ptr::null_mut()), limit: AtomicU64::new(0), most: AtomicU64::new(0) }
    }

    /// Maps the count in this file, unless one is mapped. `most`: the quota, bytes. A process that `is_idle`
    /// has not waited for a lock (R3).
    pub(crate) fn open(&self, file: &CStr, most: u64, is_idle: bool) -> Result<(), Failure> {
        self.most.store(most, Relaxed);
        self.limit.store(if is_idle { most / 2 } else { most }, Relaxed);
        if self.count().is_none() {
            self.count.store(map(file)?, Relaxed);
        }
        if let Some(count) = self.count() {
            count.most.fetch_max(most, Relaxed);
        }
        Ok(())
    }

    /// Counts in memory of this process, for a recording in memory.
    pub(crate) fn open_in_memory(&self, most: u64) -> Result<(), Failure> {
        self.most.store(most, Relaxed);
        self.limit.store(most, Relaxed);
        let page = raw::map_zero(PAGE).ok_or(Failure::Memory)?;
        self.count.store(page.as_ptr().cast(), Relaxed);
        Ok(())
    }

    /// After [`Quota::open_in_memory`]: there is no recording.
    pub(crate) fn forget(&self) {
        if let Some(page) = ptr::NonNull::new(self.count.swap(ptr::null_mut(), Relaxed)) {
            // SAFETY: mapped there, and no other thread uses it: nothing is recorded.
            unsafe { raw::unmap(page.cast(), PAGE) };
        }
    }

    #[inline]
    fn count(&self) -> Option<&QuotaCount> {
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

    /// The quota, bytes.
    pub(crate) fn most(&self) -> u64 {
        self.most.load(Relaxed)
    }

    fn fits(&self, taken: u64, bytes: u64) -> Option<u64> {
        let all = taken.checked_add(bytes)?;
        (all.checked_add(FOR_DIRECTORY)? <= self.limit.load(Relaxed)).then_some(all)
    }

    /// What `pages` pages of a file count, bytes.
    pub(crate) fn charge(pages: usize) -> usize {
        pages * (PAGE + LISTED)
    }

    /// Takes space for `pages` pages of a file, if the quota allows it (R1, R2): what was taken, bytes.
    pub(crate) fn take(&self, pages: usize) -> Option<usize> {
        self.take_bytes(Self::charge(pages))
    }

    /// The same for a file that begins with this number of pages.
    pub(crate) fn take_for_file(&self, pages: usize) -> Result<usize, Failure> {
        self.take_bytes(Self::charge(pages) + FOR_FILE).ok_or(Failure::Bound)
    }

    fn take_bytes(&self, bytes: usize) -> Option<usize> {
        let taken = &self.count()?.taken;
        taken.fetch_update(Relaxed, Relaxed, |taken| self.fits(taken, bytes as u64)).ok().map(|_| bytes)
    }

    /// Gives back what was taken and not written.
    pub(crate) fn give_back(&self, bytes: usize) {
        if let Some(count) = self.count() {
            count.taken.fetch_sub(bytes as u64, Relaxed);
        }
    }

    /// One process more (or, with -1, less) is not recorded because of the quota.
    pub(crate) fn refused(&self, change: i32) {
        if let Some(count) = self.count() {
            count.refused.fetch_add(change as u32, Relaxed);
        }
    }

    /// This process cannot create its file.
    pub(crate) fn failed(&self, failure: Failure) {
        if let Some(count) = self.count() {
            count.failed[failure.cause() as usize].fetch_add(1, Relaxed);
        }
    }
}

/// Maps the count in a file. Its length is set, and its page allocated, by each process that opens it: that
/// changes nothing.
fn map(path: &CStr) -> Result<*mut QuotaCount, Failure> {
    let file = raw::open_or_create(path);
    if file < 0 {
        return Err(Failure::Create(-file));
    }
    let page = if raw::set_length(file, PAGE) { raw::map_file(file, PAGE) } else { None };
    let is_whole = page.is_some_and(|page| {
        raw::open_mapping(page.as_ptr(), PAGE)
            && raw::populate(page.as_ptr(), PAGE).unwrap_or_else(|| raw::allocate(file, 0, PAGE))
    });
    raw::close(file);
    match page {
        Some(page) if is_whole => Ok(page.as_ptr().cast()),
        Some(page) => {
            // SAFETY: mapped above, and no other code has its address.
            unsafe { raw::unmap(page, PAGE) };
            Err(Failure::DiskFull)
        }
        None => Err(Failure::Memory),
    }
}
