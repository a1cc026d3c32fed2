//! Which acquisitions are samples: each with the same chance, whatever came before.

use core::cell::Cell;

/// Gaps between samples, geometrically distributed, from random numbers of the thread's own. All zero: no
/// sample ever.
#[repr(C)]
pub(crate) struct Gaps {
    left: Cell<u32>,
    /// The present gap, from its beginning.
    drawn: Cell<u32>,
    every: Cell<u32>,
    state: Cell<u64>,
    /// Those that were no samples, up to the latest sample.
    left_out: Cell<u64>,
}

impl Gaps {
    /// One in `every` on average; 0 for none.
    pub(crate) fn start(&self, seed: u32, every: u32) {
        let state = self.state.get() ^ (u64::from(seed) << 32 | 0x9E37_79B9);
        self.state.set(state.max(1));
        self.every.set(every);
        self.draw();
    }

    /// From now on one in `every`.
    pub(crate) fn set_every(&self, every: u32) {
        if self.every.replace(every) != every {
            let passed = self.drawn.get().saturating_sub(self.left.get());
            self.left_out.set(self.left_out.get() + u64::from(passed));
            self.draw();
        }
    }

    /// One in this number.
    #[inline(always)]
    pub(crate) fn every(&self) -> u32 {
        self.every.get()
    }

    /// How many were no samples, up to the latest sample.
    pub(crate) fn left_out(&self) -> u64 {
        self.left_out.get()
    }

    /// Whether this one is a sample.
    #[inline(always)]
    pub(crate) fn is_sample(&self) -> bool {
        let left = self.left.get().wrapping_sub(1);
        self.left.set(left);
        left == 0 && self.again()
    }

    /// Whether the next one is.
    #[inline(always)]
    pub(crate) fn is_due(&self) -> bool {
        self.left.get() == 1
    }

    /// Those that are left until the next sample, which then is the next one.
    pub(crate) fn take(&self) -> u32 {
        // It is 0 if a signal handler came while the next gap is drawn.
        const MOST: u32 = 1 << 20;
        self.left.replace(1).saturating_sub(1).min(MOST)
    }

    /// Those of [`Gaps::take`] that have not come.
    pub(crate) fn give_back(&self, left: u32) {
        self.left.set(self.left.get().saturating_add(left));
    }

    /// One that is not.
    #[inline(always)]
    pub(crate) fn skip(&self) {
        self.left.set(self.left.get().wrapping_sub(1));
    }

    #[cold]
    #[inline(never)]
    fn again(&self) -> bool {
        self.left_out.set(self.left_out.get() + u64::from(self.drawn.get().saturating_sub(1)));
        self.draw();
        self.every.get() != 0
    }

    fn draw(&self) {
        let gap = self.gap();
        self.drawn.set(gap);
        self.left.set(gap);
    }

    /// Trials up to and including the next success, of the chance 1 : `every`.
    fn gap(&self) -> u32 {
        match self.every.get() {
            0 => u32::MAX,
            1 => 1,
            every => {
                let every = f64::from(every);
                // -1 / ln(1 - 1/n), to 2 parts in 1,000 at n = 2, and 1 in 10,000 from n = 4 on.
                let over = 1.0 / every;
                let scale = every - 0.5 - over * (1.0 / 12.0 + over * (1.0 / 24.0 + over * 19.0 / 720.0));
                1 + (exponential(self.random()) * scale) as u32
            }
        }
    }

    /// xorshift64*.
    fn random(&self) -> u64 {
        let mut state = self.state.get();
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        self.state.set(state);
        state.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
}

/// -ln of a uniform number in (0, 1], of which these are the bits.
fn exponential(bits: u64) -> f64 {
    let bits = bits | 1;
    let zeros = bits.leading_zeros();
    // In [1, 2).
    let mantissa = f64::from_bits(0x3FF0_0000_0000_0000 | (bits << zeros << 1) >> 12);
    // ln m = 2 artanh((m - 1) / (m + 1)); four terms are exact to 1e-6.
    let x = (mantissa - 1.0) / (mantissa + 1.0);
    let y = x * x;
    let ln = 2.0 * x * (1.0 + y * (1.0 / 3.0 + y * (1.0 / 5.0 + y * (1.0 / 7.0 + y / 9.0))));
    f64::from(zeros + 1) * core::f64::consts::LN_2 - ln
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(every: u32, state: u64) -> Gaps {
        let zero = || Cell::new(0);
        Gaps {
            left: zero(),
            drawn: zero(),
            every: Cell::new(every),
            state: Cell::new(state),
            left_out: Cell::new(0),
        }
    }

    #[test]
    fn gaps_are_as_long_as_asked_for() {
        let gaps = gaps(0, 0);
        gaps.start(1, 64);
        let tries: u32 = 6_400_000;
        let samples = (0..tries).filter(|_| gaps.is_sample()).count() as f64;
        // Its standard deviation is 314.
        assert!((samples - 100_000.0).abs() < 2_000.0, "{samples}");
    }

    #[test]
    fn gaps_are_memoryless() {
        let gaps = gaps(8, 1);
        let longer = (0..80_000).filter(|_| gaps.gap() > 8).count() as f64 / 80_000.0;
        assert!((longer - (7.0_f64 / 8.0).powi(8)).abs() < 0.01, "{longer}");
    }

    #[test]
    fn none_are_asked_for() {
        let gaps = gaps(0, 0);
        gaps.start(1, 0);
        assert!(!(0..1_000).any(|_| gaps.is_sample()));
    }

    #[test]
    fn what_was_no_sample_is_counted() {
        let gaps = gaps(0, 0);
        gaps.start(1, 8);
        let mut samples = 0;
        for trial in 0..100_000_u64 {
            if gaps.is_sample() {
                samples += 1;
                // As the governor does, at a sample, and a thread that counts down by itself.
                gaps.set_every(if trial % 2 == 0 { 8 } else { 32 });
                let left = gaps.take();
                gaps.give_back(left);
            }
        }
        let all = gaps.left_out() + samples;
        assert!((99_000..=100_000).contains(&all), "{all}");
        // A signal handler that comes while the next gap is drawn.
        gaps.left.set(0);
        assert_eq!(gaps.take(), 0);
    }
}
