//! Whether a thread tries a lock first, or skips the fast path and joins the threads that wait awake.

use super::{Tries, Try};

/// How often the tries of a thread have lately found a lock taken: a moving mean of eight tries, in parts of
/// [`ALL`]. 0 in a new thread.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LatestTries {
    taken: u32,
}

const ALL: u32 = 1024;
/// Above this share of failed tries, a thread skips them: `notes/tuning.md`, "Spinners in a queue".
const MANY: u32 = ALL / 4;
/// The weight of one try in the mean is an eighth.
const WEIGHT: u32 = 8;

impl LatestTries {
    /// See [`Adaptive::tries`](super::Adaptive::tries).
    #[inline(always)]
    pub(super) fn went(self) -> Tries {
        match self.taken {
            0 => Tries::Succeed,
            1..=MANY => Tries::FailSometimes,
            _ => Tries::FailOften,
        }
    }

    /// Notes what a try has found.
    pub(super) fn tried(&mut self, found: Try) {
        self.taken = match found {
            Try::Free => self.taken - self.taken.div_ceil(WEIGHT),
            Try::Taken => self.taken + (ALL - self.taken).div_ceil(WEIGHT),
            Try::Skipped => self.taken.saturating_sub(1),
            Try::Late => 0,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn many(tries: &mut LatestTries, found: Try, times: u32) {
        (0..times).for_each(|_| tries.tried(found));
    }

    #[test]
    fn a_thread_that_finds_locks_taken_skips_tries_and_tries_again() {
        let mut tries = LatestTries::default();
        assert!(tries.went() == Tries::Succeed);
        many(&mut tries, Try::Taken, WEIGHT);
        assert!(tries.went() == Tries::FailOften);
        let joined = (0..2 * ALL).take_while(|_| {
            tries.tried(Try::Skipped);
            tries.went() == Tries::FailOften
        });
        assert!(
            (64..ALL as usize).contains(&joined.count()),
            "it tries again after many times, not after a few or never"
        );
        many(&mut tries, Try::Taken, WEIGHT);
        tries.tried(Try::Late);
        assert!(tries.went() != Tries::FailOften, "its tries have failed");
    }

    #[test]
    fn luck_is_forgotten_and_so_is_bad_luck() {
        let mut tries = LatestTries::default();
        many(&mut tries, Try::Taken, 1_000);
        assert_eq!(tries.taken, ALL);
        many(&mut tries, Try::Free, 1_000);
        assert!(tries.went() == Tries::Succeed);
    }
}
