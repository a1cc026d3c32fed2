//! What a recorded program does with its locks: locks with their shares of the acquisitions, times held, and the time between
//! two acquisitions.

use crate::here;

/// A program's use of its locks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replay {
    /// Its locks.
    pub locks: Vec<Replayed>,
    /// Which read-write lock stands for its own.
    pub rwlock: String,
    /// What a thread computes between two acquisitions, ns: the mean of an exponential distribution.
    pub outside_ns: f64,
}

/// A lock of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replayed {
    /// Its name in reports.
    pub name: String,
    /// It is a read-write lock.
    pub is_rwlock: bool,
    /// Exclusive acquisitions, and shared ones.
    pub uses: [Use; 2],
}

/// Acquisitions in one mode.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Use {
    /// How many there were.
    pub acquisitions: u64,
    /// How long it was held: number and length, ns.
    pub holds: Vec<(u64, f64)>,
}

impl Use {
    /// The time held of number `number` of all, ns.
    fn hold(&self, mut number: u64) -> f64 {
        for &(count, ns) in &self.holds {
            match number.checked_sub(count) {
                Some(rest) => number = rest,
                None => return ns,
            }
        }
        0.0
    }

    fn measured(&self) -> u64 {
        self.holds.iter().map(|(count, _)| count).sum()
    }

    /// One of the times held, drawn at random.
    pub(super) fn draw(&self) -> f64 {
        match self.measured() {
            0 => 0.0,
            all => self.hold(here::random(all)),
        }
    }
}
