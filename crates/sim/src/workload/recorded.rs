//! What a recorded program does with its locks: which it acquires how often, on its own or while it holds
//! another one, for how long it holds them, and for how long it computes in between.

use crate::here;

/// A program's use of its locks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replay {
    /// Its locks.
    pub locks: Vec<Replayed>,
    /// Which read-write lock stands for its own.
    pub rwlock: String,
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
    /// How many there were by threads that held no other lock.
    pub outermost: u64,
    /// For how long a thread computes before such an acquisition.
    pub non_critical: Lengths,
    /// For how long it holds the lock, without what its acquisitions of others meanwhile take.
    pub hold: Lengths,
    /// What it acquires while it holds the lock. Following these numbers never leads back to the same lock.
    pub inner: Vec<Inner>,
}

/// Acquisitions while another lock is held.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Inner {
    /// The lock, as an index of [`Replay::locks`].
    pub lock: usize,
    /// It is acquired for reading.
    pub is_shared: bool,
    /// How often while the outer lock is held once, on average.
    pub number: f64,
}

impl Inner {
    /// How often this time.
    pub(super) fn draw(&self) -> u32 {
        let whole = self.number.trunc();
        whole as u32 + u32::from(uniform() < self.number - whole)
    }
}

/// Lengths of time, ns.
#[derive(Clone, Debug, PartialEq)]
pub enum Lengths {
    /// Exponentially distributed, with this mean.
    Exponential(f64),
    /// Uniformly distributed within each of these.
    Parts(Vec<Part>),
}

/// So many lengths from `low` to `high` ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// How many.
    pub number: u64,
    /// ns.
    pub low: f64,
    /// ns.
    pub high: f64,
}

impl Part {
    /// With each length changed.
    fn map(self, change: impl Fn(f64) -> f64) -> Self {
        Self { low: change(self.low), high: change(self.high), ..self }
    }
}

impl Default for Lengths {
    fn default() -> Self {
        Self::Parts(Vec::new())
    }
}

impl Lengths {
    /// All of this length.
    #[must_use]
    pub fn all(number: u64, ns: f64) -> Self {
        Self::Parts(vec![Part { number, low: ns, high: ns }])
    }

    /// The mean, ns; 0 if there are none.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match self {
            Self::Exponential(mean) => *mean,
            Self::Parts(parts) => {
                let sum: f64 =
                    parts.iter().map(|part| part.number as f64 * (part.low + part.high) / 2.0).sum();
                sum / number(parts).max(1) as f64
            }
        }
    }

    /// Each × `factor`.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        match self {
            Self::Exponential(mean) => Self::Exponential(mean * factor),
            Self::Parts(parts) => Self::Parts(parts.iter().map(|part| part.map(|ns| ns * factor)).collect()),
        }
    }

    /// Each shorter by `ns`, as far as it is that long; of an exponential distribution, which is a guess, the
    /// mean.
    #[must_use]
    pub fn shortened(&self, ns: f64) -> Self {
        match self {
            Self::Exponential(mean) => Self::Exponential((mean - ns).max(0.0)),
            Self::Parts(parts) => {
                Self::Parts(parts.iter().map(|part| part.map(|length| (length - ns).max(0.0))).collect())
            }
        }
    }

    /// None longer than `most` ns; of an exponential distribution, the mean.
    #[must_use]
    pub fn capped(&self, most: f64) -> Self {
        match self {
            Self::Exponential(mean) => Self::Exponential(mean.min(most)),
            Self::Parts(parts) => {
                Self::Parts(parts.iter().map(|part| part.map(|length| length.min(most))).collect())
            }
        }
    }

    /// One of them, drawn at random.
    pub(super) fn draw(&self) -> f64 {
        match self {
            Self::Exponential(mean) => -mean * libm::log(1.0 - uniform()),
            Self::Parts(parts) => {
                let all = number(parts);
                if all == 0 {
                    return 0.0;
                }
                let mut left = here::random(all);
                let drawn = parts.iter().find(|part| match left.checked_sub(part.number) {
                    Some(rest) => {
                        left = rest;
                        false
                    }
                    None => true,
                });
                drawn.map_or(0.0, |part| part.low + (part.high - part.low) * uniform())
            }
        }
    }
}

fn number(parts: &[Part]) -> u64 {
    parts.iter().map(|part| part.number).sum()
}

/// In [0, 1).
fn uniform() -> f64 {
    const PARTS: u64 = 1 << 53;
    here::random(PARTS) as f64 / PARTS as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_their_means() {
        let lengths = Lengths::Parts(vec![
            Part { number: 3, low: 100.0, high: 200.0 },
            Part { number: 1, low: 1000.0, high: 3000.0 },
        ]);
        assert_eq!(lengths.mean(), 612.5);
        assert_eq!(lengths.scaled(2.0).mean(), 1225.0);
        assert_eq!(lengths.shortened(150.0).mean(), (3.0 * 25.0 + 1850.0) / 4.0);
        assert_eq!(lengths.capped(1000.0).mean(), (3.0 * 150.0 + 1000.0) / 4.0);
        assert_eq!(Lengths::default().mean(), 0.0);
        assert_eq!(Lengths::all(7, 30.0).mean(), 30.0);
        assert_eq!(Lengths::Exponential(50.0).scaled(0.5).mean(), 25.0);
    }
}
