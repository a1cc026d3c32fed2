//! What a reader slot holds, and how many there are: see [`slots`](crate::slots), and the steps of a reader
//! in [`rseq`](crate::rseq).

use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::{AcqRel, Relaxed};

/// No reader: the name of no lock, with a mark.
pub(crate) const FREE: usize = Mark::Gone as usize;

/// What a slot has of its reader, besides the lock.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Mark {
    /// It reads the lock.
    None = 0,
    /// It read another lock, which was at that address before (G7 in `bias`).
    Gone = 1,
    /// The thread that has revoked the bias is counting it in the lock.
    Marked = 2,
    /// It is counted in the lock.
    Counted = 4,
    /// In a forked child: `Marked` at the fork, by a thread that does not exist here.
    Unsure = 6,
}

/// The bits of a slot that are for the mark.
const MARKS: usize = 7;

/// A lock's name in its readers' slots: its address without the bits that are for the mark.
///
/// A program may put a lock at any address, so each bit of that may be set. But no two locks have the same
/// name: a lock is longer than the addresses that share one.
#[derive(Clone, Copy)]
pub(crate) struct Name(usize);

impl Name {
    #[inline(always)]
    pub(crate) fn of(lock: usize) -> Self {
        Self(opaque(lock) & !MARKS)
    }

    /// What a slot holds for a reader of the lock.
    #[inline(always)]
    pub(crate) const fn with(self, mark: Mark) -> usize {
        self.0 | mark as usize
    }

    /// Whether a slot that holds `value` is of a reader of the lock, with one of the `marks`.
    pub(crate) fn is_in(self, value: usize, marks: &[Mark]) -> bool {
        marks.iter().any(|&mark| value == self.with(mark))
    }
}

/// `lock`, of whose bits the compiler knows nothing. It takes a reference to a lock for aligned, and would
/// leave out the mask in some places.
#[inline(always)]
fn opaque(lock: usize) -> usize {
    let mut it = lock;
    // SAFETY: no instruction.
    unsafe { core::arch::asm!("/* {0} */", inout(reg) it, options(pure, nomem, nostack, preserves_flags)) };
    it
}

/// Whether a slot that holds `value` has the mark.
pub(crate) const fn has_mark(value: usize, mark: Mark) -> bool {
    value & MARKS == mark as usize
}

/// The number of CPUs with a line, the most that Linux can be built for; threads on others count in the lock.
pub(crate) const CPUS: usize = 8192;
/// The size of a line, bytes.
pub(crate) const LINE: usize = 64;
/// How far behind a slot the number of the thread is that has claimed it last, bytes. Not a multiple of 4
/// KiB: a load of the slot soon after a store of the number would wait for that, as if it were to the same
/// place.
pub(crate) const TO_OWNER: usize = CPUS * LINE + OWNERS_APART;
/// Bytes that are not used before the numbers.
pub(crate) const OWNERS_APART: usize = 2048;

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
    let frees = |mark| slot.compare_exchange(Name::of(lock).with(mark), FREE, AcqRel, Relaxed).is_ok();
    frees(Mark::Counted) || frees(Mark::Gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_address_of_a_lock_is_taken_for_a_mark() {
        for lock in 4096..4160 {
            let name = Name::of(lock);
            let marks = [Mark::None, Mark::Gone, Mark::Marked, Mark::Counted, Mark::Unsure];
            for mark in marks {
                let is = |other| name.is_in(name.with(mark), &[other]);
                assert_eq!(marks.map(is), marks.map(|other| other == mark), "{lock}");
                assert!(has_mark(name.with(mark), mark) && name.with(mark) != FREE);
                assert!(!Name::of(lock + 8).is_in(name.with(mark), &marks), "the shortest lock has 24 bytes");
            }
        }
    }
}
