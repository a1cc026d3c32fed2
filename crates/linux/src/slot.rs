//! What a reader slot holds, and how many there are: see [`slots`](crate::slots), and the steps of a reader
//! in [`rseq`](crate::rseq).

use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::{AcqRel, Relaxed};

/// No reader.
pub(crate) const FREE: usize = 1;
/// With a lock's address: the thread that has revoked the bias is counting the reader in the lock.
pub(crate) const MARKED: usize = 2;
/// With a lock's address: the reader is counted in the lock.
pub(crate) const COUNTED: usize = 4;
/// With a lock's address, in a forked child: `MARKED` at the fork, by a thread that does not exist here.
pub(crate) const UNSURE: usize = MARKED | COUNTED;

/// The number of CPUs with a line, the most that Linux can be built for; threads on others count in the lock.
pub(crate) const CPUS: usize = 8192;
/// The size of a line, bytes.
pub(crate) const LINE: usize = 64;

/// Frees the slot of a reader that was counted in its lock, and has perhaps been given back by another thread
/// since. `false`: it was not counted.
///
/// # Safety
///
/// `slot` is one of a table: tables are never unmapped.
#[cold]
pub(crate) unsafe fn free_if_counted(slot: *const AtomicUsize, lock: usize) -> bool {
    // SAFETY: the caller vouches for the slot.
    let slot = unsafe { &*slot };
    slot.compare_exchange(lock | COUNTED, FREE, AcqRel, Relaxed).is_ok()
}
