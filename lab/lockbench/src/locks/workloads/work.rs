//! Work that takes time and means nothing.

use std::hint::black_box;

/// A small pseudo-random generator (xorshift64): a few instructions, unpredictable and not shared.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// A different sequence for every number.
    pub fn new(number: usize) -> Self {
        Self((number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// The next value.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// `steps` values, thrown away.
    #[inline]
    pub fn work(&mut self, steps: u32) {
        for _ in 0..steps {
            black_box(self.next_u64());
        }
    }
}

/// Lengths of an exponential distribution with the mean 1, without a logarithm per draw, which takes as long
/// as a lock.
///
/// The values are quantiles at equal distances; the longest is 7.6 times the mean.
#[derive(Debug)]
pub(crate) struct Exponential(Box<[f32]>);

impl Exponential {
    const VALUES: usize = 1024;

    pub(crate) fn new() -> Self {
        let value = |index: usize| -((index as f64 + 0.5) / Self::VALUES as f64).ln();
        Self((0..Self::VALUES).map(|index| value(index) as f32).collect())
    }

    /// A length; `mean` on average.
    #[inline]
    pub(crate) fn draw(&self, mean: u32, random: &mut Random) -> u32 {
        // The upper bits: the lower ones choose the lock.
        let index = (random.next_u64() >> 32) as usize % Self::VALUES;
        (mean as f32 * self.0[index]) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_their_mean_and_their_spread() {
        const MEAN: u32 = 1_000_000;
        let (exponential, mut random) = (Exponential::new(), Random::new(3));
        let draws: Vec<f64> =
            (0..20_000).map(|_| f64::from(exponential.draw(MEAN, &mut random)) / f64::from(MEAN)).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let below = draws.iter().filter(|draw| **draw < 2f64.ln()).count() as f64 / draws.len() as f64;
        assert!((mean - 1.0).abs() < 0.05 && (below - 0.5).abs() < 0.03, "{mean} {below}");
    }
}
