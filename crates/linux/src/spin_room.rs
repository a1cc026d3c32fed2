//! Memory for the queues of spinners: 80 KiB of zeros, of which the kernel provides the pages that are
//! touched. Each copy of this crate in a process has its own, because a library's own code spins for its
//! locks.

use core::sync::atomic::AtomicU32;

use spinpark_platform::{SpinLine, SpinRoom};

type Line = SpinLine<AtomicU32>;

/// Of 20 locks that are contended at the same time, two share a queue with a probability of a half.
const QUEUES: usize = 256;
/// A thread has one, and each queue keeps one that its last spinner has left.
const SLOTS: usize = SpinRoom::<AtomicU32>::MOST_SLOTS;

static QUEUE: [Line; QUEUES] = [const { line() }; QUEUES];
static SLOT: [Line; SLOTS] = [const { line() }; SLOTS];

const fn line() -> Line {
    SpinLine { word: AtomicU32::new(0), about: AtomicU32::new(0), before: AtomicU32::new(0) }
}

/// The queue for spinners of the lock at `lock`.
pub(crate) fn of(lock: usize) -> SpinRoom<'static, AtomicU32> {
    // Locks lie 16 bytes apart at least. A Fibonacci hash: its upper bits depend on all of the address'.
    let hash = ((lock >> 4) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let (upper, name) = ((hash >> 56) as usize, (hash >> 24) as u32);
    SpinRoom { queue: &QUEUE[upper % QUEUES], slots: &SLOT, name: name | 1 }
}
