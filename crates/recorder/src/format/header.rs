//! The first page of the file.

use core::sync::atomic::{AtomicU32, AtomicU64};

use super::pieces::{HEADER_BYTES, PIECES};

/// The first eight bytes; written last, so that a file without them is not a profile yet.
pub const MAGIC: u64 = u64::from_le_bytes(*b"SPINPROF");
/// Changes whenever anything in this module does.
pub const VERSION: u32 = 8;

/// How much is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Detail {
    /// Nothing: every call goes through at once.
    Off = 0,
    /// Waits, and the threads that caused them; the holders of locks that have been waited for.
    Contended = 1,
    /// In addition: how often each lock is taken; how long it is held, by samples.
    Sampled = 2,
    /// In addition: how long each lock is held each time, and where it is taken.
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

/// Figures of an [`Experiment`].
pub const EXPERIMENT: usize = 6;

/// What the recorder's spans have measured: sums over cycles, each of which has a span in which the process
/// records and spans in which it does not.
#[derive(Debug)]
#[repr(C)]
pub struct Experiment {
    /// How many cycles there were.
    pub cycles: AtomicU64,
    /// Sums: time (ticks), CPU time (ticks) and uses of contended locks, of recorded spans; then the same of
    /// the others. Bits of `f64`.
    pub sums: [AtomicU64; EXPERIMENT],
    /// Sums of the products of each of these with itself and those before it. Bits of `f64`.
    pub products: [AtomicU64; EXPERIMENT * (EXPERIMENT + 1) / 2],
    /// Time of all spans, ticks.
    pub covered: AtomicU64,
    /// Time of which the records are, ticks: of plain spans, and as many times that of the recorded ones as
    /// each event in them stands for.
    pub stands_for: AtomicU64,
    /// Time in which the process did not record, ticks.
    pub light: AtomicU64,
    /// Uses of contended locks, and waits; each thread keeps some back.
    pub uses: AtomicU64,
    /// See `uses`.
    pub waits: AtomicU64,
    /// Waits that are recorded in all spans: for semaphores and futexes.
    pub others: AtomicU64,
    /// CPU time of the process when it exited, ns; 0: not known.
    pub cpu: AtomicU64,
    /// CPU time that beginning to record has taken, ns.
    pub start: AtomicU64,
}

/// A region of the file.
#[derive(Debug)]
#[repr(C)]
pub struct Region {
    /// Size of a record, bytes.
    pub stride: u32,
    /// The most records that the region can have.
    pub capacity: u32,
    /// How many are claimed; may be more than `capacity`.
    pub used: AtomicU32,
    /// How often there was no space, on the disk or in the region.
    pub dropped: AtomicU32,
}

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
    /// One in this number of uncontended acquisitions is timed, on average, if `detail` is `Sampled`.
    pub sample_every: u32,
    /// CPUs that the program could use when it started; 0 if that is not known.
    pub cpus: u32,
    /// How often there was no space because the recordings of the directory had reached their quota.
    pub bounded: AtomicU32,
    /// Nanoseconds per tick, times 2^32: as measured at the start.
    pub tick: u64,
    /// The clock at the start, ticks.
    pub start: u64,
    /// The monotonic clock at the start, ns.
    pub start_monotonic: u64,
    /// Time of day at the start, ns since 1970.
    pub start_realtime: u64,
    /// The latest pair of clocks: ticks. For a more exact length of a tick.
    pub last: AtomicU64,
    /// The monotonic clock then, ns; 0 while there is no such pair.
    pub last_monotonic: AtomicU64,
    /// The monotonic clock when the process was seen to have ended, ns; 0 while it has not. Written by its
    /// starter, if it did not exit in order.
    pub ended_monotonic: AtomicU64,
    /// Calls that were not recorded because the recorder itself was at work in their thread (signal
    /// handlers).
    pub nested: AtomicU64,
    /// See [`RegionId`](super::RegionId).
    pub regions: [Region; 7],
    /// At which page of the file each piece of a region starts; 0: it is not there. See
    /// [`Piece`](super::Piece).
    pub pieces: [AtomicU32; PIECES],
    /// Pages that belong to the header or a piece; the file has nothing behind them. With
    /// [`CLOSED`](super::CLOSED) once no more are added.
    pub end: AtomicU32,
    /// The PID namespace of the process, by its number in `/proc/self/ns`; 0 if that is not known.
    pub namespace: u32,
    /// When the kernel started the process, in its ticks since the machine started; 0 if that is not known. A
    /// program that the process becomes (`exec`) has the same.
    pub born: u64,
    /// See [`Experiment`].
    pub experiment: Experiment,
    /// Path of the program, ended by a zero.
    pub program: [u8; 512],
    /// Its arguments, each ended by a zero, as many as fit.
    pub arguments: [u8; 1024],
}

const _: () = assert!(size_of::<Header>() <= HEADER_BYTES);
