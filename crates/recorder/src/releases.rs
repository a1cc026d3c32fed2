//! The latest releases of locks to threads that wait: when, which holder, and for how long it held the lock.
//!
//! A wait of some ms may be one hold of some ms and hundreds of short ones after it, which must not push the
//! long one out. So there is a ring for each level of lengths ([`level`]): of the holds of a level from *l*
//! on, those of the latest *l* × [`RING`] are there, whatever else was.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

use crate::format::NONE;

/// The bit of `ended` that is set if a reader released the lock.
pub(super) const READER: u64 = 1;

/// Levels of lengths.
const LEVELS: usize = 8;
/// Releases that are remembered of each.
pub(super) const RING: usize = 16;
/// Releases that are checked, the long ones first.
pub(super) const MOST: usize = 64;

/// A lock and a holder, as a release has them.
pub(super) fn release(address: usize, holder: u32) -> u64 {
    (address as u64 >> 3) << 32 | u64::from(holder)
}

/// The level of a hold of `held` ticks: up to 4 µs (8, where a tick is a nanosecond), four times that, and so
/// on.
pub(super) fn level(held: u64) -> usize {
    (((held | 1).ilog2() as usize).saturating_sub(11) / 2).min(LEVELS - 1)
}

/// A remembered release.
#[derive(Clone, Copy)]
pub(super) struct Past {
    /// When, as in a [`Slot`](super::shared_tables::Slot).
    pub(super) ended: u64,
    /// For how long it held the lock while others waited, ticks; 0: not known.
    pub(super) held: u64,
    /// As [`HolderId`](crate::format::HolderId) has it.
    pub(super) holder: u32,
}

impl Past {
    pub(super) const NOTHING: Self = Self { ended: 0, held: 0, holder: NONE };

    pub(super) fn at(&self) -> u64 {
        self.ended & !READER
    }
}

/// The releases of locks that share a hash. All zero: none.
#[repr(C, align(64))]
pub(super) struct Rings {
    /// When the latest one was, and how many there were.
    latest: [AtomicU64; LEVELS],
    count: [AtomicU32; LEVELS],
    rings: [[Remembered; RING]; LEVELS],
}

/// A [`Past`] of a lock. `ended` is 0 while it is being written. Two threads that write one at the same time
/// may leave one that is neither's: a hint, as those of a slot.
#[repr(C)]
pub(super) struct Remembered {
    pub(super) ended: AtomicU64,
    held: AtomicU64,
    pub(super) release: AtomicU64,
}

impl Remembered {
    pub(super) fn set(&self, address: usize, past: Past) {
        self.ended.store(0, Relaxed);
        // Release, as all that follow: a thread that sees one of them sees the zero.
        self.held.store(past.held, Release);
        self.release.store(release(address, past.holder.wrapping_add(1)), Release);
        self.ended.store(past.ended, Release);
    }

    /// Its content, if it is of the lock at `address`.
    pub(super) fn get(&self, address: usize) -> Option<Past> {
        let ended = self.ended.load(Acquire);
        let (noted, held) = (self.release.load(Acquire), self.held.load(Acquire));
        let is_whole = ended != 0 && self.ended.load(Relaxed) == ended;
        let is_its = noted >> 32 == release(address, 0) >> 32;
        (is_whole && is_its).then_some(Past { ended, held, holder: (noted as u32).wrapping_sub(1) })
    }
}

impl Rings {
    pub(super) fn remember(&self, address: usize, past: Past) {
        let level = level(past.held);
        let at = self.count[level].fetch_add(1, Relaxed);
        self.rings[level][at as usize % RING].set(address, past);
        self.latest[level].store(past.at(), Relaxed);
    }

    /// The holder of one that is remembered is this one, as is known now.
    pub(super) fn name(&self, address: usize, past: Past) {
        let ring = &self.rings[level(past.held)];
        if let Some(found) = ring.iter().find(|found| found.ended.load(Relaxed) == past.ended) {
            found.set(address, past);
        }
    }

    /// Those of the lock at `address` after `start`: their number, and the levels of which there were more (a
    /// bit each).
    pub(super) fn since(&self, address: usize, start: u64, found: &mut [Past; MOST]) -> (usize, u32) {
        let (mut count, mut more) = (0, 0);
        for level in (0..LEVELS).rev() {
            if self.latest[level].load(Relaxed) <= start {
                continue;
            }
            let next = self.count[level].load(Relaxed);
            let there = next.min(RING as u32);
            let mut back = 1;
            while back <= there {
                let past = self.rings[level][next.wrapping_sub(back) as usize % RING].get(address);
                // Of another lock, or just being written: an older one may be there.
                if let Some(past) = past {
                    if past.at() <= start {
                        break;
                    }
                    if count == MOST {
                        break;
                    }
                    insert(&mut found[..=count], past);
                    count += 1;
                }
                back += 1;
            }
            more |= u32::from(back > RING as u32 || count == MOST && back <= there) << level;
        }
        (count, more)
    }
}

/// Puts one in among those before the last place, the latest first. The library's sort takes 1 KiB of stack.
fn insert(found: &mut [Past], past: Past) {
    let mut at = found.len() - 1;
    while at > 0 && found[at - 1].ended < past.ended {
        found[at] = found[at - 1];
        at -= 1;
    }
    found[at] = past;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels() {
        let us = [1, 3, 5, 20, 80, 300, 1_200, 5_000, 20_000, 1_000_000];
        assert_eq!(us.map(|us| level(us * 2_000)), [0, 0, 1, 2, 3, 4, 5, 6, 7, 7]);
        assert_eq!(level(0), 0);
    }
}
