//! How sure shares are: what was waited, in batches of snapshots that follow each other.
//!
//! Snapshots are not independent. A long wait is in several of them, and where a holder loses its CPU for long, all
//! that was found in that time is one event. Within a batch, such dependence does not matter; so the spread of the
//! batches, which are long, tells how sure a share is (*batch means*, of the ratio of two sums). There are at least half
//! as many as at most: when there are too many, each two that follow each other become one.

use std::collections::BTreeMap;
use std::mem::take;

/// So many batches at most; an even number.
const MOST: usize = 64;
/// Fewer tell nothing about their spread.
const FEW: usize = 8;

/// Sums of batches of snapshots, by lock.
#[derive(Debug, Default)]
pub(super) struct Batches {
    /// Those that are whole.
    all: Vec<BTreeMap<usize, u64>>,
    /// The one that is not, and how many snapshots it has.
    last: BTreeMap<usize, u64>,
    snapshots: u64,
    /// How many a whole one has, less one.
    more: u64,
}

impl Batches {
    /// Adds what was waited for a lock, in the current snapshot.
    pub(super) fn add(&mut self, lock: usize, time: u64) {
        *self.last.entry(lock).or_default() += time;
    }

    /// The snapshot is over.
    pub(super) fn end_snapshot(&mut self) {
        self.snapshots += 1;
        if self.snapshots <= self.more {
            return;
        }
        self.snapshots = 0;
        self.all.push(take(&mut self.last));
        if self.all.len() == MOST {
            for at in 0..MOST / 2 {
                let second = take(&mut self.all[2 * at + 1]);
                let mut both = take(&mut self.all[2 * at]);
                second.into_iter().for_each(|(lock, time)| *both.entry(lock).or_default() += time);
                self.all[at] = both;
            }
            self.all.truncate(MOST / 2);
            self.more = 2 * self.more + 1;
        }
    }

    /// How many snapshots, if they were independent, would tell as much about the shares of locks: by the lock of which
    /// most was waited. None if that cannot be told: of one lock, or few batches.
    pub(super) fn independent(&self) -> Option<f64> {
        let mut sums: BTreeMap<usize, f64> = BTreeMap::new();
        for (lock, time) in self.all.iter().flatten() {
            *sums.entry(*lock).or_default() += *time as f64;
        }
        let all: f64 = sums.values().sum();
        let (lock, sum) = sums.into_iter().max_by(|(_, one), (_, other)| one.total_cmp(other))?;
        let share = sum / all;
        let number = self.all.len();
        let rests = self.all.iter().map(|batch| {
            let whole: f64 = batch.values().map(|time| *time as f64).sum();
            batch.get(&lock).map_or(0.0, |time| *time as f64) - share * whole
        });
        let spread: f64 = rests.map(|rest| rest * rest).sum();
        let variance = spread / (all * all) * number as f64 / (number as f64 - 1.0);
        (number >= FEW && share < 1.0 && variance > 0.0).then(|| share * (1.0 - share) / variance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Snapshots that find one of two locks, which stays the same for so many.
    fn runs(number: u64, length: u64) -> Option<f64> {
        let mut batches = Batches::default();
        let mut random = 1_u64;
        for at in 0..number {
            if at % length == 0 {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            }
            batches.add(usize::try_from(random >> 63).expect("a bit"), 1000);
            batches.end_snapshot();
        }
        batches.independent()
    }

    #[test]
    fn long_waits_are_no_more_than_short_ones() {
        let each = runs(6000, 1).expect("they are many");
        assert!((3000.0..12000.0).contains(&each), "{each}");
        let tens = runs(6000, 10).expect("they are many");
        assert!((300.0..1200.0).contains(&tens), "{tens}");
    }

    #[test]
    fn one_lock_or_few_snapshots_tell_nothing() {
        assert_eq!(runs(5, 1), None);
        let mut batches = Batches::default();
        assert_eq!(batches.independent(), None);
        for _ in 0..100 {
            batches.add(3, 10);
            batches.end_snapshot();
        }
        assert_eq!(batches.independent(), None);
        // Nothing was waited in most of them.
        (0..900).for_each(|_| batches.end_snapshot());
        assert!(batches.all.len() < MOST && batches.more > 0);
    }
}
