//! Work that takes time and means nothing.

use std::hint::black_box;

/// A small pseudo-random generator (xorshift64): a few instructions that nobody can predict and nobody shares.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// A different sequence for every number.
    pub(crate) fn new(number: usize) -> Self {
        Self((number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// The next value.
    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// `steps` values, thrown away.
    #[inline]
    pub(crate) fn work(&mut self, steps: u32) {
        for _ in 0..steps {
            black_box(self.next());
        }
    }
}
