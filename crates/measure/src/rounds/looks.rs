//! Several looks at one measurement, which is continued while it is undecided.
//!
//! Who looks several times, and stops at what pleases, errs more often. So the looks share the 5 % of a 95 % interval:
//! each of *k* looks has intervals that miss in 5 % / *k* of cases, and all of them together miss in 5 % at most,
//! however the looks depend on each other (Bonferroni).

use crate::stats::bootstrap::ERROR;

/// After how many rounds there is a look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looks(Vec<usize>);

impl Looks {
    /// After `first` rounds, after twice as many each time, and after `most`.
    #[must_use]
    pub fn new(first: usize, most: usize) -> Self {
        let doubled = std::iter::successors(Some(first), |rounds| rounds.checked_mul(2));
        Self(doubled.take_while(|rounds| *rounds < most).chain([most.max(first)]).collect())
    }

    /// In so many cases, an interval of each look misses.
    #[must_use]
    pub fn error(&self) -> f64 {
        ERROR / self.0.len() as f64
    }

    /// How many rounds there are to be measured for each look: the first, and those to add.
    pub fn parts(&self) -> impl Iterator<Item = usize> + '_ {
        let before = std::iter::once(0).chain(self.0.iter().copied());
        self.0.iter().zip(before).map(|(rounds, before)| rounds - before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_look_has_twice_the_rounds() {
        let parts = |first, most| Looks::new(first, most).parts().collect::<Vec<_>>();
        assert_eq!(parts(10, 40), [10, 10, 20]);
        assert_eq!(parts(10, 50), [10, 10, 20, 10]);
        assert_eq!(parts(10, 10), [10]);
        assert_eq!(parts(10, 5), [10]);
        assert!((Looks::new(10, 40).error() - 0.05 / 3.0).abs() < 1e-12);
        assert!((Looks::new(10, 10).error() - 0.05).abs() < 1e-12);
    }
}
