//! Records that are written once, and the pieces of which tables are made.

use core::sync::atomic::{AtomicU32, AtomicU64};

use super::entry::{Entry, Strip};
use super::waiting::Waiting;

/// What a lock is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// A mutex: the default kind.
    Mutex = 1,
    /// A recursive mutex.
    Recursive = 2,
    /// A mutex that checks for errors.
    ErrorChecking = 3,
    /// A mutex that spins before it sleeps (`PTHREAD_MUTEX_ADAPTIVE_NP`).
    Adaptive = 4,
    /// A robust, priority-inheriting, priority-protected or process-shared mutex.
    Special = 5,
    /// A read-write lock.
    RwLock = 6,
    /// A condition variable.
    Condvar = 7,
    /// A futex word on which threads sleep by system calls of their own; only the stack shows what it is for.
    Futex = 8,
    /// A POSIX semaphore.
    Semaphore = 9,
    /// A barrier.
    Barrier = 10,
    /// A thread whose end is waited for.
    Join = 11,
    /// A `pthread_once_t`.
    Once = 12,
    /// A spin lock.
    Spin = 13,
    /// A function that blocks its thread, such as `fsync`: its number stands for the address.
    Call = 14,
}

impl Kind {
    /// The kind with this number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        [
            Self::Mutex,
            Self::Recursive,
            Self::ErrorChecking,
            Self::Adaptive,
            Self::Special,
            Self::RwLock,
            Self::Condvar,
            Self::Futex,
            Self::Semaphore,
            Self::Barrier,
            Self::Join,
            Self::Once,
            Self::Spin,
            Self::Call,
        ]
        .into_iter()
        .find(|kind| *kind as u32 == number)
    }

    /// Whether each stack that waits for such an object has a record of its own: a thread may wait on one
    /// word for different things, so that the word alone does not identify it.
    #[must_use]
    pub fn is_by_stack(self) -> bool {
        matches!(self, Self::Futex | Self::Semaphore | Self::Barrier | Self::Join | Self::Once)
    }
}

/// A lock: an object at an address, from its creation or first use to its destruction.
#[derive(Debug)]
#[repr(C)]
pub struct Lock {
    /// A [`Kind`]; 0 while the record is being written. Written last.
    pub kind: AtomicU32,
    /// 1 once the object was destroyed, so that the address may be another lock's.
    pub destroyed: AtomicU32,
    /// Where it is.
    pub address: u64,
    /// Of recorders, not for readers: what it is found by.
    pub key: u64,
    /// When it was first used, ticks.
    pub since: u64,
    /// The [`Stack`] that created it (`pthread_mutex_init`), or used it first.
    pub stack: AtomicU32,
    /// 1 if `stack` created it, 0 if it used it first.
    pub is_created: u32,
    /// Id of the thread that did.
    pub thread: u32,
    /// Where its name starts in the region `text`, or [`NONE`](super::NONE).
    pub name: AtomicU32,
    /// Of a condition variable: the address of the mutex that its latest new waiter held; 0: none has waited.
    pub mutex: AtomicU64,
    /// Of recorders, not for readers.
    pub scratch: [AtomicU32; 2],
}

/// Semaphores that a thread is known to have at a time, at most.
pub const TAKEN: usize = 8;

/// Return addresses that a stack has at most.
pub const FRAMES: usize = 29;

/// A stack: the places of a call and its callers.
#[derive(Debug)]
#[repr(C)]
pub struct Stack {
    /// A hash of the addresses, never 0; 0 while the record is being written. Written last.
    pub hash: AtomicU64,
    /// The number of addresses.
    pub depth: u16,
    /// 1 if there were more.
    pub is_cut: u16,
    /// Of recorders, not for readers: 1 if it goes through a module that was unloaded, so that it is not
    /// used again.
    pub is_retired: AtomicU32,
    /// The snapshot of `maps` in which the addresses are to be looked up.
    pub maps: u32,
    /// 0: by unwind tables; 1: by frame pointers; 2: the caller's address only.
    pub method: u32,
    /// Return addresses, the innermost first.
    pub frames: [u64; FRAMES],
}

/// A table of statistics. One thread uses it; when that has ended, another one may, and counts on.
#[derive(Debug)]
#[repr(C)]
pub struct Thread {
    /// The thread that uses it, or did last; 0 while the record is being written.
    pub id: AtomicU32,
    /// How many threads have used it.
    pub users: AtomicU32,
    /// Its latest segment, or [`NONE`](super::NONE); that knows the one before.
    pub segment: AtomicU32,
    /// 1 if the thread had ended when the process exited.
    pub ended: AtomicU32,
    /// When its user came, ticks.
    pub since: u64,
    /// Name of its last user, as the kernel has it, ended by a zero.
    pub name: [u8; 16],
    /// Waits that ended.
    pub waits: AtomicU64,
    /// Time that its threads waited, ticks.
    pub waited: AtomicU64,
    /// When the thread last released a lock that others may wait for, and whose hold was not noted; ticks, 0:
    /// never.
    pub unseen_release: AtomicU64,
    /// When its user last ended a wait, or a hold that was measured, ticks; 0: never.
    pub latest: AtomicU64,
    /// How long its earlier users had it, each until its latest event, ticks.
    pub past: AtomicU64,
    /// What it waits for now.
    pub waiting: Waiting,
    /// Semaphores that its thread held when it began to wait, of those that are locks as far as was seen:
    /// addresses, from the first on; 0: there are no more.
    pub semaphores: [AtomicU64; TAKEN],
    /// What recording has cost its users.
    pub cost: Cost,
    /// With the details `Full` and `Sampled`: acquisitions over time, those of which the hold was measured;
    /// counted where it ended. In parts as [`Strip`] has them, with numbers instead of µs.
    pub activity: Strip,
}

/// What recording costs a thread, by the recorder's own measurement.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Cost {
    /// Time in the recorder, ticks: of calls taken by lot, scaled. Without the next two.
    pub calls: AtomicU64,
    /// The same, while the thread held a lock that others have waited for.
    pub calls_held: AtomicU64,
    /// Time for rare operations, ticks: unwinding, new records, the thread's first call. All of it is
    /// measured.
    pub rare: AtomicU64,
    /// The same, while the thread held such a lock.
    pub rare_held: AtomicU64,
    /// Stacks that were unwound.
    pub unwound: AtomicU64,
    /// Calls that were recorded: acquisitions, waits and releases.
    pub recorded: AtomicU64,
    /// Acquisitions that were left out of a sample, since they came faster than they can be recorded.
    pub left_out: AtomicU64,
    /// Waits that were left out.
    pub waits_left_out: AtomicU64,
}

/// Bytes in a segment.
pub const SEGMENT_BYTES: usize = 1 << 13;

/// A piece of a table. Entries follow each other from the start of `entries`; one with the kind 0 is the end.
#[repr(C)]
pub struct Segment {
    /// The number of its [`Thread`] plus 1; 0 while it is being written.
    pub owner: AtomicU32,
    /// The table's segment before this one, or [`NONE`](super::NONE).
    pub before: u32,
    /// See [`Entry`]. Each starts at a multiple of 8 bytes.
    pub entries: [AtomicU64; SEGMENT_BYTES / 8 - 1],
}

const _: () = assert!(size_of::<Segment>() == SEGMENT_BYTES);
const _: () = assert!(size_of::<Lock>() == 64);
const _: () = assert!(size_of::<Stack>() == 256);
const _: () = assert!(size_of::<Thread>() == 640);
const _: () = assert!(Entry::LARGEST <= SEGMENT_BYTES / 8);
