//! Robust statistics of a handful of values.

use std::time::Instant;

use spinpark_measure::stats::quantile;

/// The quartiles of some values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The smallest one.
    pub least: f64,
    /// A quarter is below.
    pub lower: f64,
    /// Half is below.
    pub median: f64,
    /// Three quarters are below.
    pub upper: f64,
    /// The largest one.
    pub most: f64,
}

impl Spread {
    /// The quartiles, between neighbours where they fall between them. `None` of nothing.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let at = |part: f64| quantile(&sorted, part);
        (!sorted.is_empty()).then(|| Self {
            least: at(0.0),
            lower: at(0.25),
            median: at(0.5),
            upper: at(0.75),
            most: at(1.0),
        })
    }

    /// How far the quartiles are apart.
    #[must_use]
    pub fn width(&self) -> f64 {
        self.upper - self.lower
    }
}

/// The lower quartile of what one call takes, in ns, over `batches` batches of `calls` calls. For what a CPU
/// or the kernel does by itself: whatever disturbs it only makes it longer.
pub(super) fn cost(batches: usize, calls: usize, mut call: impl FnMut()) -> f64 {
    let mut batch = || {
        let start = Instant::now();
        for _ in 0..calls {
            call();
        }
        start.elapsed().as_nanos() as f64 / calls as f64
    };
    batch();
    let values: Vec<f64> = (0..batches).map(|_| batch()).collect();
    Spread::of(&values).map_or(0.0, |spread| spread.lower)
}

/// With fewer values, neither the median nor a quartile says anything.
const ENOUGH: usize = 5;

/// The median of `values`, if there are enough of them to tell.
pub(super) fn median(values: &[f64]) -> Option<f64> {
    Spread::of(values).filter(|_| values.len() >= ENOUGH).map(|spread| spread.median)
}

/// The lower quartile of `values`, if there are enough of them to tell: for times that disturbances only make
/// longer.
pub(super) fn quick(values: &[f64]) -> Option<f64> {
    Spread::of(values).filter(|_| values.len() >= ENOUGH).map(|spread| spread.lower)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles() {
        let spread = Spread::of(&[5.0, 1.0, 2.0, 4.0, 3.0]).unwrap();
        assert_eq!((spread.least, spread.lower, spread.median), (1.0, 2.0, 3.0));
        assert_eq!((spread.upper, spread.most, spread.width()), (4.0, 5.0, 2.0));
        assert_eq!(Spread::of(&[1.0, 2.0]).unwrap().median, 1.5);
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(median(&[1.0; 4]), None);
        assert_eq!(median(&[1.0, 1.0, 9.0, 1.0, 8.0]), Some(1.0));
    }

    #[test]
    fn a_batch_is_warmed_up_and_repeated() {
        let mut calls = 0;
        assert!(cost(4, 10, || calls += 1) >= 0.0);
        assert_eq!(calls, 50);
    }
}
