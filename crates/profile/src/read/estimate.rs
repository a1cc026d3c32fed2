//! Time held, from samples.
//!
//! Acquisitions fall into two strata. Those that waited are all measured: their sum is known. Of the others a simple random
//! sample is measured (each is as likely as the others to be in it), and their number is known; so their sum is number ×
//! mean of the sample, with the usual error (Cochran, *Sampling Techniques*, ch. 2 and 5): number × *t* × deviation ⁄ √n ×
//! √(1 − n ⁄ number). Times are skewed; with few samples the interval is a little too narrow.

/// Measured times for which locks were held, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sampled {
    /// So many.
    pub count: u64,
    /// Their sum.
    pub total: u64,
    /// The longest.
    pub longest: u64,
    /// The sum of their squares.
    pub squares: f64,
}

impl Sampled {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            total: self.total.saturating_add(other.total),
            longest: self.longest.max(other.longest),
            squares: self.squares + other.squares,
        }
    }

    /// The sum over `number` of which these are a sample, and half of its 95 % interval.
    ///
    /// Nothing is known from no sample: 0 ± 0. One sample says nothing of how much they differ: ± the sum itself.
    #[must_use]
    pub fn estimate(&self, number: u64) -> (f64, f64) {
        let (n, all) = (self.count as f64, number as f64);
        if self.count == 0 {
            return (0.0, 0.0);
        }
        if self.count >= number {
            return (self.total as f64, 0.0);
        }
        let mean = self.total as f64 / n;
        let total = all * mean;
        if self.count == 1 {
            return (total, total);
        }
        let variance = ((self.squares - n * mean * mean) / (n - 1.0)).max(0.0);
        let error = student(self.count - 1) * all * (variance / n).sqrt() * (1.0 - n / all).sqrt();
        (total, error)
    }
}

/// The 97.5 % point of Student's distribution.
#[must_use]
pub fn student(freedom: u64) -> f64 {
    const SMALL: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    match freedom {
        0 => f64::INFINITY,
        1..=10 => SMALL[freedom as usize - 1],
        _ => {
            // Expansion around the normal point (Abramowitz and Stegun, 26.7.5); good to three digits from here on.
            let (z, v) = (1.959_964_f64, freedom as f64);
            let first = (z.powi(3) + z) / 4.0;
            let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
            let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
            z + first / v + second / v.powi(2) + third / v.powi(3)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(times: &[u64]) -> Sampled {
        times.iter().fold(Sampled::default(), |sum, time| {
            let squares = (*time as f64).powi(2);
            sum.and(Sampled { count: 1, total: *time, longest: *time, squares })
        })
    }

    #[test]
    fn estimates() {
        let (total, error) = sample(&[100, 110, 90, 105, 95]).estimate(500);
        assert_eq!(total, 50_000.0);
        let expected = 2.776 * 500.0 * (62.5_f64 / 5.0).sqrt() * (1.0_f64 - 5.0 / 500.0).sqrt();
        assert!((error - expected).abs() < 1.0, "{error} is not {expected}");
        assert_eq!(sample(&[5, 7]).estimate(2), (12.0, 0.0), "all are measured");
        assert_eq!(sample(&[5]).estimate(10), (50.0, 50.0));
        assert_eq!(sample(&[]).estimate(10), (0.0, 0.0));
        assert_eq!(sample(&[5, 5, 5]).estimate(10), (50.0, 0.0), "they do not differ");
    }

    #[test]
    fn intervals_cover() {
        // Exponential times, the 64th part of them sampled: the true sum is inside about 95 times in 100.
        let mut state = 1_u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let mut inside = 0;
        for _ in 0..1_000 {
            let mut truth = 0.0;
            let mut sampled = Sampled::default();
            for _ in 0..8_000 {
                let time = (-(1.0 - uniform()).ln() * 1_000.0).round();
                truth += time;
                if uniform() < 1.0 / 64.0 {
                    let one = Sampled { count: 1, total: time as u64, longest: 0, squares: time * time };
                    sampled = sampled.and(one);
                }
            }
            let (total, error) = sampled.estimate(8_000);
            inside += usize::from((total - truth).abs() <= error);
        }
        assert!((920..=980).contains(&inside), "{inside} of 1000");
    }

    #[test]
    fn points_of_the_distribution() {
        for (freedom, point) in [(1, 12.706), (10, 2.228), (11, 2.201), (30, 2.042), (120, 1.980)] {
            assert!((student(freedom) - point).abs() < 0.002, "{freedom}: {}", student(freedom));
        }
    }
}
