//! What the kernel (Linux 3.12, x86-64) and the program do around the lock of an address space, in cycles of
//! the CPU.
//!
//! No published figures were found for the machine of document 002. They are put together from what is known
//! of the steps, for CPUs of 2010 to 2013; each says from what. One is fitted: [`FAULT`].

/// A system call's way to the lock and back: checks of arguments and security hooks outside of it. A guess;
/// entering the kernel comes on top, from the machine.
pub(super) const CALL: f64 = 200.0;

/// `mmap` under the lock: a free range is searched, a VMA is allocated, filled and linked into tree and list.
/// Derived: mapping and unmapping takes 1.5 to 2 µs in all where will-it-scale's `mmap1` does 0.5 to 0.6
/// million a second on one CPU of that age; less two system calls and the lines of [`MAP_LINES`].
pub(super) const MAP: f64 = 1_300.0;

/// `munmap` under the lock, without pages: the VMA is found, unlinked and freed, an empty range of page
/// tables is walked. As [`MAP`].
pub(super) const UNMAP: f64 = 1_300.0;

/// Cache lines of the address space that either call changes (`mm_struct`: the VMA cache, counters; the
/// neighbours' VMAs; the tree's nodes): they come from the CPU that made the last call. A count of those
/// fields.
pub(super) const MAP_LINES: usize = 8;

/// A page fault without the lock: the exception, its return, and the walk to the lock. Derived: 1,000 to
/// 1,200 cycles for a fault that finds everything ready, with exception and return 500 to 600 of them.
pub(super) const FAULT_OUTSIDE: f64 = 700.0;

/// A page fault under the lock, without the zone: the VMA is found, a page of the CPU's own list is taken,
/// its entry written under the page table's lock, counters and the reverse map are kept.
///
/// Fitted: with it, one thread at a time (a mutex) is as much slower than two plain threads as document 002
/// says, 39.3 %. A touched page then takes 1.5 µs in all. Guessed before: 700.
pub(super) const FAULT: f64 = 1_200.0;

/// Zeroing 4 KB under the lock: 64 lines that were freed just now, so they are in the last-level cache: 8 to
/// 10 cycles each for `rep stos` with a few lines under way.
pub(super) const ZERO: f64 = 600.0;

/// The program writes a page, 512 words of 8 bytes: a word per cycle, the page being in the first cache.
pub(super) const WRITE_PAGE: f64 = 550.0;

/// `munmap` under the lock, for each page that is there: its entry is cleared, its reverse map and counters
/// are undone, it leaves the LRU and is freed. Zone and LRU locks come on top. A guess.
pub(super) const UNMAP_PAGE: f64 = 280.0;

/// Pages that a CPU takes from its zone, or gives back, at a time: `pcp->batch` of a large zone.
pub(super) const ZONE_BATCH: u32 = 31;

/// The zone's lock for one of them: a list operation and the buddy's state, cold. A guess.
pub(super) const ZONE_PAGE: f64 = 50.0;

/// Pages that a CPU collects before it takes the lock of the zone's LRU (`PAGEVEC_SIZE`).
pub(super) const LRU_BATCH: u32 = 14;

/// That lock for one of them: a list operation and counters. A guess.
pub(super) const LRU_PAGE: f64 = 40.0;
