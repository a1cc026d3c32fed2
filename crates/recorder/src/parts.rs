//! The holders of a wait: each thread that held the lock meanwhile has its part of it.
//!
//! A thread that releases a lock which others wait for remembers that for them: when, which holder, and for
//! how long it held the lock. A short hold is remembered after the release. For a long one that would often
//! be too late, since threads that wake up take the CPU of the one that woke them; and its cost is small
//! compared with the hold. A waiter reads these records after its own release of the lock.
//!
//! ```text
//!       │ a          free │ b      free │ c             free │
//!  ─────┼──────────┼──────┼──────┼──────┼──────────┼─────────┼─────
//!     start    release a      release b        release c    end     a: held; b, c: held and free before; c:
//!     free at the end
//! ```
//!
//! The rest is the part of the wait in which the lock was neither held by one of these nor free. If a ring of
//! [`releases`](super::releases) was too small for its level, the rest is shared by that ring's holders, in
//! proportion to their time: the remembered ones are a sample. Otherwise threads that release the lock too
//! often ([`EVERY`](super::hand_off)) did not remember it: then it is the next holder's, if it lies before
//! its hold.
//!
//! Of readers, the one that leaves last blocks a writer: one reader after the other is one hold of that one.

use core::sync::atomic::Ordering::Relaxed;

use super::releases::{level, Past, MOST, READER};
use super::thread_state::{Facts, WaitRecord};
use super::Recorder;
use crate::format::{HolderId, Kind, NONE};

/// Holders that are distinguished.
const HOLDERS: usize = 16;

/// A part of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) holder: u32,
    /// Ticks.
    pub(crate) ticks: u64,
    /// Of these, the lock was free.
    pub(crate) free: u64,
}

/// Parts by holder; of too many holders, the last ones are not distinguished.
pub(super) struct Parts {
    parts: [Part; HOLDERS],
    count: usize,
}

impl Parts {
    pub(super) const fn new() -> Self {
        Self { parts: [Part { holder: NONE, ticks: 0, free: 0 }; HOLDERS], count: 0 }
    }

    pub(super) fn all(&self) -> &[Part] {
        &self.parts[..self.count]
    }

    fn add(&mut self, holder: u32, held: u64, free: u64) {
        let at = match self.parts[..self.count].iter().position(|part| part.holder == holder) {
            Some(at) => at,
            None if self.count < HOLDERS - 1 => {
                self.parts[self.count].holder = holder;
                self.count += 1;
                self.count - 1
            }
            None => {
                // The last one is of no holder.
                self.count = HOLDERS;
                HOLDERS - 1
            }
        };
        self.parts[at].ticks += held + free;
        self.parts[at].free += free;
    }
}

/// A wait that is to be divided.
struct Whole {
    start: u64,
    end: u64,
    /// The release that ended it.
    ended: Past,
    /// The lock was free for so long.
    free: u64,
    /// The holder at the start, if that is known.
    first: Option<u32>,
}

/// Divides a wait; `pasts`: the releases in it, the latest first; `more`: see
/// [`Rings::since`](super::releases::Rings::since).
fn divide(whole: &Whole, pasts: &[Past], more: u32, parts: &mut Parts) {
    let end = whole.ended.at();
    let tail = (whole.end - end).min(whole.free);
    parts.add(whole.ended.holder, 0, tail);
    let earlier = || pasts.iter().filter(|past| past.at() < end);
    // Each hold, the time before it since the release before it, and the holder.
    let holds = |each: &mut dyn FnMut(u32, u64, u64, u64)| {
        let mut past = whole.ended;
        let mut before = earlier();
        let mut held = 0;
        loop {
            let older = before.next();
            let from = older.map_or(whole.start, |older| older.at().max(whole.start));
            let between = past.at().saturating_sub(from);
            let is_first = older.is_none();
            held += past.held.min(between);
            if let Some(older) = older.filter(|older| older.ended & past.ended & READER != 0) {
                // It held it as long as the reader before it, and longer.
                held += between - past.held.min(between);
                past = Past { holder: past.holder, ..*older };
                continue;
            }
            let holder = match whole.first {
                // It is known better by what it had noted.
                Some(first) if is_first && (past.held >= between || past.held == 0) => first,
                _ => past.holder,
            };
            each(holder, past.held, held, between - past.held.min(between));
            held = 0;
            match older {
                Some(older) => past = *older,
                None => break,
            }
        }
    };
    let (mut gaps, mut in_more) = (0, 0);
    holds(&mut |_, length, held, gap| {
        gaps += gap;
        in_more += if more >> level(length) & 1 != 0 { held + 1 } else { 0 };
    });
    let inner = (whole.free - tail).min(gaps);
    let unseen = gaps - inner;
    let share =
        |part: u64, all: u64, of: u64| (u128::from(part) * u128::from(of) / u128::from(all.max(1))) as u64;
    let (mut left, mut left_free) = (unseen, inner);
    holds(&mut |holder, length, held, gap| {
        let more = match in_more {
            0 => share(gap, gaps, unseen),
            _ if more >> level(length) & 1 != 0 => share(held + 1, in_more, unseen),
            _ => 0,
        };
        left -= more.min(left);
        let free = share(gap, gaps, inner);
        left_free -= free.min(left_free);
        parts.add(holder, held + more, free);
    });
    // Rounding.
    parts.add(whole.ended.holder, left, left_free);
}

impl Recorder {
    /// The parts of a wait by holder, into `parts`, which has none. Called, so that its stack is given back
    /// before the caller goes on.
    #[inline(never)]
    pub(super) fn parts(&self, facts: &Facts, waited: &WaitRecord, parts: &mut Parts) {
        let first = waited.holder;
        let is_taken = matches!(HolderId::from_number(first), HolderId::TookAt(_));
        let lock = self.lock_at(facts.lock).filter(|_| waited.last != NONE && waited.ended != 0);
        let (Some(shared), Some(lock)) = (self.shared.get(), lock) else {
            // The library's locks tell where they were released, and not when.
            let is_last = matches!(HolderId::from_number(waited.last), HolderId::ReleasedAt(_)) && !is_taken;
            let holder = if is_last { waited.last } else { first };
            let free = waited.free.min(waited.ticks);
            return parts.add(holder, waited.ticks - free, free);
        };
        let start = waited.end.saturating_sub(waited.ticks);
        let mut pasts = [Past::NOTHING; MOST];
        let address = lock.call_address();
        let (count, more) = shared.rings(address).since(address, start, &mut pasts);
        let pasts = &pasts[..count];
        let mut ended = Past { ended: waited.ended, held: 0, holder: waited.last };
        if let Some(past) = pasts.iter().find(|past| past.ended == waited.ended) {
            ended.held = past.held;
            if matches!(HolderId::from_number(ended.holder), HolderId::Table(_)) {
                // Its thread has since recorded where that was.
                ended.holder = past.holder;
            }
        }
        let is_shared = lock.kind.load(Relaxed) == Kind::RwLock as u32;
        // Of readers it may not be the one that blocked this thread.
        let first = Some(first).filter(|_| is_taken && !is_shared);
        let whole = Whole { start, end: waited.end, ended, free: waited.free, first };
        divide(&whole, pasts, more, parts);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::super::releases::{Rings, RING};
    use super::*;

    const US: u64 = 2_000;

    fn past(ended: u64, held: u64, holder: u32) -> Past {
        Past { ended: ended * US, held: held * US, holder }
    }

    /// Holder, held and free, in µs.
    fn divided(whole: &Whole, pasts: &[Past], more: u32) -> Vec<(u32, u64, u64)> {
        let mut parts = Parts::new();
        divide(whole, pasts, more, &mut parts);
        let all = parts.all().iter();
        assert_eq!(all.clone().map(|part| part.ticks).sum::<u64>(), whole.end - whole.start);
        all.map(|part| (part.holder, (part.ticks - part.free) / US, part.free / US)).collect()
    }

    fn whole(start: u64, end: u64, ended: Past, free: u64) -> Whole {
        Whole { start: start * US, end: end * US, ended, free: free * US, first: None }
    }

    #[test]
    fn each_holder_has_its_hold_and_the_free_time_before_it() {
        // The releases of the picture.
        let pasts = [past(80, 30, 3), past(40, 10, 2), past(20, 50, 1)];
        let whole = whole(0, 85, pasts[0], 25);
        assert_eq!(divided(&whole, &pasts, 0), [(3, 30, 15), (2, 10, 10), (1, 20, 0)]);
        // The holder at the start is known better.
        let whole = Whole { first: Some(9), ..whole };
        assert_eq!(divided(&whole, &pasts, 0), [(3, 30, 15), (2, 10, 10), (9, 20, 0)]);
    }

    #[test]
    fn what_is_not_remembered_is_the_next_holder_s() {
        let pasts = [past(80, 30, 3), past(20, 20, 1)];
        assert_eq!(divided(&whole(0, 80, pasts[0], 10), &pasts, 0), [(3, 50, 10), (1, 20, 0)]);
        // The last one has not recorded yet for how long it held it.
        let last = past(80, 0, 3);
        assert_eq!(divided(&whole(0, 90, last, 10), &pasts[1..], 0), [(3, 60, 10), (1, 20, 0)]);
    }

    #[test]
    fn a_long_hold_stays_among_many_short_ones() {
        // SAFETY: all zero is one.
        let rings: Rings = unsafe { core::mem::zeroed() };
        rings.remember(64, past(5_000, 4_900, 1));
        for number in 0..400 {
            rings.remember(64, past(5_001 + 2 * number, 1, 2));
        }
        // Another lock's, and one before.
        rings.remember(72, past(5_700, 10, 3));
        rings.remember(64, past(90, 90, 4));
        let mut pasts = [Past::NOTHING; MOST];
        let (count, more) = rings.since(64, 100 * US, &mut pasts);
        assert_eq!((count, more), (RING + 1, 1));
        let whole = whole(100, 5_799, pasts[0], 399);
        assert_eq!(divided(&whole, &pasts[..count], more), [(2, 400, 399), (1, 4_900, 0)]);
    }

    #[test]
    fn one_reader_after_the_other_is_the_last_one_s_hold() {
        let reader = |ended, held, holder| {
            let past = past(ended, held, holder);
            Past { ended: past.ended | READER, ..past }
        };
        let pasts = [reader(80, 10, 3), reader(70, 20, 2), past(40, 40, 1)];
        assert_eq!(divided(&whole(0, 80, pasts[0], 10), &pasts, 0), [(3, 30, 10), (1, 40, 0)]);
    }

    #[test]
    fn holders_beyond_the_number_are_not_told_apart() {
        let pasts: Vec<Past> = (0..40).map(|at| past(400 - 10 * at, 10, at as u32)).collect();
        let parts = divided(&whole(0, 400, pasts[0], 0), &pasts, 0);
        assert_eq!(parts.len(), HOLDERS);
        assert_eq!(parts[HOLDERS - 1], (NONE, 10 * (40 - HOLDERS as u64 + 1), 0));
    }
}
