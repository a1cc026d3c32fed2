//! The first page of the file.

use core::sync::atomic::{AtomicU32, AtomicU64};

use super::record::{Lock, Segment, Stack, Thread};

/// The first eight bytes; written last, so that a file without them is not a profile yet.
pub const MAGIC: u64 = u64::from_le_bytes(*b"SPINPROF");
/// Changes whenever anything in this module does.
pub const VERSION: u32 = 4;
/// Where the first region starts.
pub const HEADER_BYTES: usize = 4096;

/// How much is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Detail {
    /// Nothing: every call goes on at once.
    Off = 0,
    /// Waits, and the threads that caused them; the holders of locks that have been waited for.
    Contended = 1,
    /// Besides, how often each lock is taken; how long it is held, by samples.
    Sampled = 2,
    /// Besides, how long each lock is held each time, and where it is taken.
    Full = 3,
}

impl Detail {
    /// The detail with this number; [`Detail::Off`] if there is none.
    #[must_use]
    pub fn of(number: u32) -> Self {
        let known = [Self::Contended, Self::Sampled, Self::Full];
        known.into_iter().find(|detail| *detail as u32 == number).unwrap_or(Self::Off)
    }
}

/// Whose locks they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Locks {
    /// glibc's.
    Glibc = 0,
    /// The drop-in's.
    Spinpark = 1,
    /// Those of the Rust library.
    Library = 2,
}

/// What a tick is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Clock {
    /// The CPU's time stamp counter.
    Tsc = 0,
    /// A nanosecond of the monotonic clock.
    Monotonic = 1,
}

/// A region of the file.
#[derive(Debug)]
#[repr(C)]
pub struct Region {
    /// Where it starts, bytes from the start of the file.
    pub offset: u64,
    /// Size of a record, bytes.
    pub stride: u32,
    /// So many records have room.
    pub capacity: u32,
    /// So many are claimed; may be more than there is room for.
    pub used: AtomicU32,
    /// So many times there was no room, on the disk or in the region.
    pub dropped: AtomicU32,
}

/// The regions, in the order in which they lie in the file.
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
}

/// Records per region, and their sizes.
pub const REGIONS: [(usize, usize); 6] = [
    (1 << 16, size_of::<Lock>()),
    (1 << 15, size_of::<Stack>()),
    (1 << 13, size_of::<Thread>()),
    (1 << 14, size_of::<Segment>()),
    (1 << 23, 1),
    (1 << 20, 1),
];

/// The first page of the file.
#[derive(Debug)]
#[repr(C)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// [`VERSION`].
    pub version: u32,
    /// 1 after a regular exit of the process.
    pub exited: AtomicU32,
    /// The process.
    pub pid: u32,
    /// Its parent.
    pub parent: u32,
    /// A [`Detail`]; may change while the program runs.
    pub detail: AtomicU32,
    /// A [`Locks`].
    pub locks: u32,
    /// A [`Clock`].
    pub clock: u32,
    /// One in so many uncontended acquisitions is timed, on average, if `detail` is `Sampled`.
    pub sample_every: u32,
    /// CPUs that the program could use when it started; 0 if that is not known.
    pub cpus: u32,
    /// So often there was no room because the recordings of the directory had reached their bound.
    pub bounded: AtomicU32,
    /// Nanoseconds per tick, times 2^32: as good as the clock could be measured at the start.
    pub tick: u64,
    /// The clock at the start, ticks.
    pub start: u64,
    /// The monotonic clock at the start, ns.
    pub start_monotonic: u64,
    /// Time of day at the start, ns since 1970.
    pub start_realtime: u64,
    /// The latest pair of clocks: ticks. For a better idea of what a tick is.
    pub last: AtomicU64,
    /// The monotonic clock then, ns; 0 while there is no such pair.
    pub last_monotonic: AtomicU64,
    /// The monotonic clock when the process was seen to have ended, ns; 0 while it has not. Written by its starter, if it
    /// did not exit in order.
    pub ended_monotonic: AtomicU64,
    /// Calls that were not recorded because the recorder itself was at work in their thread (signal handlers).
    pub nested: AtomicU64,
    /// See [`RegionId`].
    pub regions: [Region; 6],
    /// Path of the program, ended by a zero.
    pub program: [u8; 512],
    /// Its arguments, each ended by a zero, as many as fit.
    pub arguments: [u8; 1024],
}

const _: () = assert!(size_of::<Header>() <= HEADER_BYTES);
