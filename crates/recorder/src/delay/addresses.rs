//! What is known of the locks at addresses: a table without a lock.
//!
//! A word has an address and its verdict, so any thread that reads a word has both. 0 is an empty slot. Two
//! threads that meet a lock for the first time may put it in two slots, with the same verdict; whoever forgets
//! it takes it from all of them.
//!
//! All accesses are Relaxed: a word refers to no other memory, and a verdict that is late by a call costs a delay.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::hash::{hash, HASHES};

/// A chain that is longer is full.
const CHAIN: usize = 64;
/// Bits of a word below the address.
const BITS: u32 = 8;

/// What is known of the lock at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is delayed; `in_module`: it is a variable of a module, and goes with it.
    Delayed { in_module: bool },
    /// It is not.
    Left { in_module: bool },
    /// This many uses have not told.
    Open(u8),
}

impl Verdict {
    fn number(self) -> u64 {
        match self {
            Self::Delayed { in_module } => 1 | u64::from(in_module) << 7,
            Self::Left { in_module } => 2 | u64::from(in_module) << 7,
            Self::Open(uses) => 3 | u64::from(uses.min(31)) << 2,
        }
    }

    /// Of a word that has one.
    #[inline(always)]
    fn of(word: u64) -> Self {
        let in_module = word & 1 << 7 != 0;
        match word & 3 {
            1 => Self::Delayed { in_module },
            2 => Self::Left { in_module },
            _ => Self::Open((word >> 2 & 31) as u8),
        }
    }
}

/// The table. All zero is an empty one.
#[repr(C)]
pub(super) struct Addresses([AtomicU64; HASHES]);

/// The lock was forgotten, and its slot is free.
const FREE: u64 = 4;

impl Addresses {
    fn chain(&self, address: usize) -> impl Iterator<Item = &AtomicU64> {
        let start = hash(address);
        (0..CHAIN).map(move |step| &self.0[(start + step) % HASHES])
    }

    /// What is known of the lock at `address`.
    #[inline(always)]
    pub(super) fn get(&self, address: usize) -> Option<Verdict> {
        for slot in self.chain(address) {
            let word = slot.load(Relaxed);
            if word >> BITS == address as u64 && word != 0 {
                return Some(Verdict::of(word));
            }
            if word == 0 {
                return None;
            }
        }
        None
    }

    /// Notes it; whether there was space. That a lock is delayed stays until it is forgotten: another thread, which used it
    /// at an unknown stack at the same time, takes nothing back.
    pub(super) fn set(&self, address: usize, verdict: Verdict) -> bool {
        let word = (address as u64) << BITS | verdict.number();
        let is_its = |found: u64| found != 0 && found >> BITS == address as u64;
        let mut used = self.chain(address).take_while(|slot| slot.load(Relaxed) != 0);
        if let Some(slot) = used.find(|slot| is_its(slot.load(Relaxed))) {
            let is_open = |found| is_its(found) && !matches!(Verdict::of(found), Verdict::Delayed { .. });
            let _ = slot.fetch_update(Relaxed, Relaxed, |found| is_open(found).then_some(word));
            return true;
        }
        self.chain(address).any(|slot| {
            let found = slot.load(Relaxed);
            (found == 0 || found == FREE) && slot.compare_exchange(found, word, Relaxed, Relaxed).is_ok()
        })
    }

    /// The lock at `address` is gone.
    pub(super) fn forget(&self, address: usize) {
        for slot in self.chain(address) {
            let word = slot.load(Relaxed);
            if word == 0 {
                return;
            }
            if word >> BITS == address as u64 {
                // If another thread has changed it just now, that is of another lock.
                let _ = slot.compare_exchange(word, FREE, Relaxed, Relaxed);
            }
        }
    }

    /// Modules may be gone, with the locks that are their variables: those are looked at again.
    pub(super) fn forget_variables(&self) {
        for slot in &self.0 {
            let word = slot.load(Relaxed);
            if word >> BITS != 0
                && matches!(
                    Verdict::of(word),
                    Verdict::Delayed { in_module: true } | Verdict::Left { in_module: true }
                )
            {
                let _ = slot.compare_exchange(word, FREE, Relaxed, Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::boxed::Box;
    use std::vec::Vec;

    use super::*;

    const DELAYED: Verdict = Verdict::Delayed { in_module: false };
    const VARIABLE: Verdict = Verdict::Left { in_module: true };

    fn table() -> Box<Addresses> {
        // SAFETY: all zero is an empty table.
        unsafe { Box::<Addresses>::new_zeroed().assume_init() }
    }

    /// Addresses whose chains begin at one slot.
    fn neighbours(count: usize) -> Vec<usize> {
        (1..).map(|number| number * 8).filter(|address| hash(*address) == hash(8)).take(count).collect()
    }

    #[test]
    fn verdicts_are_kept_apart() {
        let table = table();
        let locks = neighbours(3);
        let verdicts = [DELAYED, VARIABLE, Verdict::Open(9)];
        assert!(locks.iter().zip(verdicts).all(|(lock, verdict)| table.set(*lock, verdict)));
        let seen = || locks.iter().map(|lock| table.get(*lock)).collect::<Vec<_>>();
        assert_eq!(seen(), verdicts.map(Some));
        table.forget_variables();
        assert_eq!(seen(), [Some(DELAYED), None, Some(Verdict::Open(9))]);
        // The slot in the middle is used again, and what is behind it is still found.
        table.set(locks[2], VARIABLE);
        assert!(table.set(locks[1], DELAYED));
        assert_eq!(seen(), [Some(DELAYED), Some(DELAYED), Some(VARIABLE)]);
        table.forget(locks[0]);
        assert_eq!(seen(), [None, Some(DELAYED), Some(VARIABLE)]);
    }

    /// Two threads use a lock for the first time: one at a stack of the plan.
    #[test]
    fn the_thread_that_knows_the_lock_is_believed() {
        let table = table();
        assert!(table.set(8, DELAYED) && table.set(8, Verdict::Open(0)) && table.set(8, Verdict::Open(1)));
        assert_eq!(table.get(8), Some(DELAYED));
        table.forget(8);
        assert!(table.set(8, Verdict::Left { in_module: false }) && table.set(8, DELAYED));
        assert_eq!(table.get(8), Some(DELAYED), "a later use may tell");
    }

    #[test]
    fn a_full_chain_says_so() {
        let table = table();
        let locks = neighbours(CHAIN + 1);
        assert!(locks[..CHAIN].iter().all(|lock| table.set(*lock, DELAYED)));
        assert!(!table.set(locks[CHAIN], DELAYED) && table.get(locks[CHAIN]).is_none());
        table.forget(locks[5]);
        assert!(table.set(locks[CHAIN], DELAYED) && table.get(locks[CHAIN]) == Some(DELAYED));
    }
}
