//! Whether to look at a lock first, or to join the threads that wait for it awake without a look.

use crate::Look;

/// How often the looks of a thread have lately found a lock taken: a moving mean of eight looks, in parts of [`ALL`]. 0 in a new
/// thread.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Looks {
    taken: u32,
}

const ALL: u32 = 1024;
/// The share of looks in vain from which on a thread does not look: `notes/tuning.md`, "Spinners in a queue".
const MANY: u32 = ALL / 4;
/// A look counts for one in so many.
const WEIGHT: u32 = 8;

impl Looks {
    /// See [`Pacing::looked_in_vain`](crate::Pacing::looked_in_vain).
    pub(super) fn were_in_vain(self) -> bool {
        self.taken > 0
    }

    /// See [`Pacing::joins_unseen`](crate::Pacing::joins_unseen).
    pub(super) fn joins_unseen(self) -> bool {
        self.taken > MANY
    }

    /// See [`Pacing::looked`](crate::Pacing::looked).
    pub(super) fn looked(&mut self, look: Look) {
        self.taken = match look {
            Look::Free => self.taken - self.taken.div_ceil(WEIGHT),
            Look::Taken => self.taken + (ALL - self.taken).div_ceil(WEIGHT),
            Look::Omitted => self.taken.saturating_sub(1),
            Look::Late => 0,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn many(looks: &mut Looks, look: Look, times: u32) {
        (0..times).for_each(|_| looks.looked(look));
    }

    #[test]
    fn a_thread_that_finds_locks_taken_stops_looking_and_tries_again() {
        let mut looks = Looks::default();
        assert!(!looks.were_in_vain() && !looks.joins_unseen());
        many(&mut looks, Look::Taken, WEIGHT);
        assert!(looks.joins_unseen());
        let joined = (0..2 * ALL).take_while(|_| {
            looks.looked(Look::Omitted);
            looks.joins_unseen()
        });
        assert!(
            (64..ALL as usize).contains(&joined.count()),
            "it looks again after many times, not after a few or never"
        );
        many(&mut looks, Look::Taken, WEIGHT);
        looks.looked(Look::Late);
        assert!(!looks.joins_unseen(), "it has waited in vain");
    }

    #[test]
    fn luck_is_forgotten_and_so_is_bad_luck() {
        let mut looks = Looks::default();
        many(&mut looks, Look::Taken, 1_000);
        assert_eq!(looks.taken, ALL);
        many(&mut looks, Look::Free, 1_000);
        assert!(!looks.were_in_vain());
    }
}
