//! Whether a thread's spins watch a lock closely or stay away from it: learnt from how its spins follow each other.
//!
//! `docs/tuning.md` ("Close or apart") has what it is for, and what was tried instead.

use crate::Pace;

/// A thread that spins for a lock again this soon after it took it, section and all, would rather have kept it: to move
/// a lock, and what it protects, to another CPU takes as long as that. Nanoseconds.
const HURRY_NS: u64 = 1000;
/// How many spins look seldom then, before one tries again how it is.
const SPINS_APART: u32 = 32;
/// Who stays away has its lock taken at once by who does not. After so many times it does as they do, and they find out.
const MOST_ROBBED: u32 = 4;

/// How the spins of a thread follow each other. All zero in a new thread.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Pacing {
    /// When the last one took its lock; 0 if it did not. On the monotonic clock, ns.
    taken: u64,
    /// So many more spins look seldom.
    apart: u32,
    /// How many of these in a row were followed by the next at once.
    robbed: u32,
}

impl Pacing {
    /// How the spin that starts `now` is to watch its lock.
    pub(crate) fn next(&mut self, now: u64) -> Pace {
        let hurry = now.saturating_sub(self.taken) < HURRY_NS;
        self.taken = 0;
        if self.apart == 0 {
            self.apart = if hurry { SPINS_APART } else { 0 };
            self.robbed = 0;
        } else {
            self.robbed = if hurry { self.robbed + 1 } else { 0 };
            self.apart = if self.robbed > MOST_ROBBED { 0 } else { self.apart - 1 };
        }
        if self.apart > 0 {
            Pace::Apart
        } else {
            Pace::Close
        }
    }

    /// The spin took its lock at about `now`.
    pub(crate) fn took(&mut self, now: u64) {
        self.taken = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 1_000_000;

    /// A spin that takes its lock at `now`, and the pace of the one that starts `after` ns later.
    fn pace_after(pacing: &mut Pacing, now: u64, after: u64) -> Pace {
        pacing.took(now);
        pacing.next(now + after)
    }

    #[test]
    fn a_thread_that_takes_its_time_watches_closely() {
        let mut pacing = Pacing::default();
        assert_eq!(pacing.next(START), Pace::Close);
        assert_eq!(pace_after(&mut pacing, START, HURRY_NS), Pace::Close);
    }

    #[test]
    fn one_in_a_hurry_stays_away_for_a_while_and_looks_again() {
        let mut pacing = Pacing::default();
        for spin in 0..SPINS_APART {
            let after = if spin == 0 { HURRY_NS - 1 } else { HURRY_NS };
            assert_eq!(pace_after(&mut pacing, START, after), Pace::Apart, "spin {spin}");
        }
        assert_eq!(pace_after(&mut pacing, START, HURRY_NS), Pace::Close);
    }

    #[test]
    fn one_that_is_robbed_again_and_again_watches_closely() {
        let mut pacing = Pacing::default();
        for _ in 0..=MOST_ROBBED {
            assert_eq!(pace_after(&mut pacing, START, 1), Pace::Apart);
        }
        assert_eq!(pace_after(&mut pacing, START, 1), Pace::Close);
    }

    #[test]
    fn a_spin_in_vain_says_nothing() {
        let mut pacing = Pacing::default();
        pacing.took(START);
        assert_eq!(pacing.next(START + HURRY_NS), Pace::Close);
        assert_eq!(pacing.next(START + HURRY_NS + 1), Pace::Close);
    }
}
