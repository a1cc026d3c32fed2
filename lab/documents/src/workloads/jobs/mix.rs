//! Mixes: which operations, how often, on files of which size.

use std::sync::OnceLock;

use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use serde::Deserialize;

/// The mixes of this repository.
const BUILT_IN: &str = include_str!("../../../definitions/jobs.toml");

/// A mix of operations.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mix {
    pub name: String,
    pub about: String,
    /// What all weights add up to.
    pub sum: u32,
    /// The size of a file, in bytes, without its part of the pool.
    pub file_size: u64,
    /// What all users' files share, in bytes.
    pub pool_size: u64,
    /// Operations by weight.
    pub weights: Vec<Weight>,
}

/// Operations of one weight.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weight {
    /// How much each of them counts.
    pub weight: u32,
    pub operations: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Definitions {
    mix: Vec<Mix>,
}

/// All mixes, in the order of the file.
///
/// # Panics
///
/// If the file that this was built with is not right, which a test would have found.
pub fn all() -> &'static [Mix] {
    static ALL: OnceLock<Vec<Mix>> = OnceLock::new();
    ALL.get_or_init(|| toml::from_str::<Definitions>(BUILT_IN).expect("jobs.toml can be read").mix)
}

/// The mix of that name.
pub fn by_name(name: &str) -> Result<&'static Mix, String> {
    all().iter().find(|mix| mix.name == name).ok_or_else(|| {
        let names: Vec<&str> = all().iter().map(|mix| mix.name.as_str()).collect();
        format!("there is no mix `{name}`; there are: {}", names.join(", "))
    })
}

impl Mix {
    /// Every operation with its weight.
    pub fn operations(&self) -> impl Iterator<Item = (&str, u32)> {
        self.weights
            .iter()
            .flat_map(|group| group.operations.iter().map(|name| (name.as_str(), group.weight)))
    }

    /// How often each operation is among `jobs` jobs: its share, rounded, and at least once.
    pub fn counts(&self, jobs: usize) -> Vec<(&str, usize)> {
        let share = |weight: u32| f64::from(weight) / f64::from(self.sum) * jobs as f64;
        self.operations().map(|(name, weight)| (name, (share(weight).round() as usize).max(1))).collect()
    }

    /// One user's jobs, in the order that `seed` and the user's number decide.
    pub fn order(&self, jobs: usize, seed: u64, user: usize) -> Vec<&str> {
        let mut order: Vec<&str> = self
            .counts(jobs)
            .into_iter()
            .flat_map(|(name, count)| std::iter::repeat_n(name, count))
            .collect();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let own = rng.random::<u64>().wrapping_add(user as u64);
        order.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(own));
        order
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::operations;
    use super::*;

    #[test]
    fn weights_add_up_as_published() {
        assert_eq!(all().len(), 7);
        for mix in all() {
            let sum: u32 = mix.operations().map(|(_, weight)| weight).sum();
            assert_eq!(sum, mix.sum, "{}", mix.name);
        }
    }

    #[test]
    fn every_operation_is_there_and_none_is_named_twice() {
        for mix in all() {
            let mut names = HashSet::new();
            for (name, _) in mix.operations() {
                assert!(operations::by_name(name).is_some() && names.insert(name), "{}: {name}", mix.name);
            }
        }
    }

    #[test]
    fn every_operation_is_in_a_mix() {
        for (name, _) in operations::ALL {
            assert!(all().iter().any(|mix| mix.operations().any(|(used, _)| used == name)), "{name}");
        }
    }

    #[test]
    fn shares_are_rounded_and_at_least_one() {
        let fserver = by_name("fserver").unwrap();
        let counts = fserver.counts(100);
        let of = |name: &str| counts.iter().find(|(known, _)| *known == name).unwrap().1;
        // 40, 30, 10 and 5 of 595.
        assert_eq!((of("udp_test"), of("disk_cp"), of("jmp_test"), of("sync_disk_cp")), (7, 5, 2, 1));
        assert_eq!(fserver.counts(1).iter().map(|(_, count)| count).sum::<usize>(), 31);
    }

    #[test]
    fn users_have_the_same_jobs_in_their_own_order() {
        let mix = by_name("alltests").unwrap();
        let (first, second) = (mix.order(100, 7, 0), mix.order(100, 7, 1));
        assert_eq!(first, mix.order(100, 7, 0));
        assert_ne!(first, second);
        assert_ne!(first, mix.order(100, 8, 0));
        let sorted = |mut order: Vec<&'static str>| {
            order.sort_unstable();
            order
        };
        assert_eq!(sorted(first), sorted(second));
    }

    #[test]
    fn mixes_that_are_not_there() {
        assert!(by_name("x").unwrap_err().contains("there are: fserver, alltests"));
    }
}
