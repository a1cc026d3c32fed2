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
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::stats::bootstrap::ratio_interval_at;
    use crate::stats::verdict::{Verdict, judge};

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

    /// The verdicts of `count` measurements whose new program takes `change` times as long, on a machine whose runs
    /// scatter by `noise`, and one in ten of which a neighbour makes longer: equivalent, higher, lower, undecided.
    fn verdicts(looks: &Looks, change: f64, noise: f64, count: u64) -> [usize; 4] {
        let mut found = [0; 4];
        for seed in 0..count {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut run = |length: f64| {
                let scatter: f64 = (0..12).map(|_| rng.random_range(-0.5..0.5)).sum();
                let neighbour =
                    if rng.random_range(0.0..1.0) < 0.1 { rng.random_range(0.0..5.0 * noise) } else { 0.0 };
                length * (scatter * noise + neighbour).exp()
            };
            let (mut changes, mut again) = (Vec::new(), Vec::new());
            let mut verdict = Verdict::Undecided;
            for part in looks.parts() {
                for _ in 0..part {
                    let before = run(1.0);
                    again.push(run(1.0) / before);
                    changes.push(run(change) / before);
                }
                let interval = |ratios: &[f64]| ratio_interval_at(ratios, seed, looks.error());
                if let (Some(change), Some(again)) = (interval(&changes), interval(&again)) {
                    verdict = judge(&change, &again);
                }
                if verdict != Verdict::Undecided {
                    break;
                }
            }
            let at = match verdict {
                Verdict::Equivalent => 0,
                Verdict::Higher => 1,
                Verdict::Lower => 2,
                Verdict::Undecided => 3,
            };
            found[at] += 1;
        }
        found
    }

    /// An unchanged program is not called worse, a change of 10 % is not called none, and more looks decide more.
    #[test]
    fn more_looks_decide_more_and_err_no_more() {
        for noise in [0.01, 0.02, 0.03] {
            let (one, three) = (Looks::new(10, 10), Looks::new(10, 40));
            let (once, thrice) = (verdicts(&one, 1.0, noise, 50), verdicts(&three, 1.0, noise, 50));
            assert!(thrice[3] <= once[3], "{noise}: {once:?} {thrice:?}");
            assert!(thrice[1] + thrice[2] <= 2, "{noise}: unchanged, {thrice:?}");
            let slower = verdicts(&three, 1.1, noise, 50);
            assert!(slower[0] + slower[2] <= 2, "{noise}: slower by 10 %, {slower:?}");
            assert!(thrice[0] >= 48 && slower[1] >= 48, "{noise}: {thrice:?} {slower:?}");
        }
    }
}
