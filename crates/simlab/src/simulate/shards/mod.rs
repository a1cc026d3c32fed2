//! A sweep in parts: which runs a shard has, the lines that it writes, and how files of lines become the
//! whole again.
//!
//! One seed is one run, so a run has the same line wherever it is made: lines that are put in order are those
//! of the whole.

mod lines;
mod merge;

use std::str::FromStr;

use spinpark_sim::workload::Setting;

pub use self::lines::{FORMAT, Header, Made, text};
pub use self::merge::{Input, MergeError, Merged};
use super::estimate::weight;

/// Part `number` of `of` parts of a sweep; the first one is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    number: u32,
    of: u32,
}

impl Shard {
    /// None: there is no such part.
    #[must_use]
    pub fn new(number: u32, of: u32) -> Option<Self> {
        (1..=of).contains(&number).then_some(Self { number, of })
    }

    /// The runs that it has, in the order of `settings`.
    ///
    /// Runs of about the same length are dealt out after each other, longest first. Among those, chance
    /// decides (the same for each shard): locks differ by a factor of ten, and by turns a shard could have
    /// the same lock each time.
    #[must_use]
    pub fn runs(self, settings: &[Setting]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..settings.len()).collect();
        order.sort_by(|&a, &b| {
            weight(&settings[b]).total_cmp(&weight(&settings[a])).then(mixed(a).cmp(&mixed(b)))
        });
        let mut mine: Vec<usize> =
            order.into_iter().skip(self.number as usize - 1).step_by(self.of as usize).collect();
        mine.sort_unstable();
        mine
    }
}

/// A bijection without a pattern (the finaliser of SplitMix64).
fn mixed(number: usize) -> u64 {
    let mut bits = (number as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts =
            text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match parts {
            None => Err(String::from("write K/N, as in 3/8: the third of eight shards")),
            Some((_, 0)) => Err(String::from("a sweep has at least one shard: 1/1")),
            Some((0, of)) => Err(format!("shards count from 1: 1/{of} … {of}/{of}")),
            Some((number, of)) => Self::new(number, of)
                .ok_or_else(|| format!("there is no shard {number} of {of}: the last one is {of}/{of}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use spinpark_sim::machine::Machine;

    use super::*;

    #[test]
    fn every_run_is_in_one_shard_and_shards_weigh_the_same() {
        let mut settings = Vec::new();
        for threads in [1, 8, 64, 512] {
            for lock in ["a", "b", "c", "d", "e"] {
                for seed in 0..3 {
                    let setting = Setting::new(Machine::plain(64), lock, "long", threads);
                    settings.push(Setting { seed, ..setting });
                }
            }
        }
        for of in [1, 2, 3, 5, 7, 60, 100] {
            let shards: Vec<_> = (1..=of).map(|k| Shard::new(k, of).unwrap().runs(&settings)).collect();
            let mut all: Vec<_> = shards.concat();
            all.sort_unstable();
            assert_eq!(all, (0..60).collect::<Vec<_>>(), "{of}");
            assert!(shards.iter().all(|runs| runs.is_sorted()));
            let longest = weight(&settings[59]);
            let of_shard = |runs: &Vec<usize>| runs.iter().map(|&run| weight(&settings[run])).sum::<f64>();
            let weights: Vec<f64> = shards.iter().map(of_shard).collect();
            let (low, high) =
                weights.iter().fold((f64::INFINITY, 0.0_f64), |(l, h), w| (l.min(*w), h.max(*w)));
            assert!(high - low <= longest, "{of}: {low} to {high}");
        }
        // Of eight shards none has one lock only.
        for number in 1..=8 {
            let runs = Shard::new(number, 8).unwrap().runs(&settings);
            assert!(
                runs.iter().any(|&run| settings[run].lock != settings[runs[0]].lock),
                "{number}: {runs:?}"
            );
        }
    }

    #[test]
    fn shards_in_words() {
        let said = |text: &str| text.parse::<Shard>().unwrap_err();
        assert_eq!("3/8".parse(), Ok(Shard { number: 3, of: 8 }));
        assert!(
            said("3").contains("as in 3/8") && said("-1/2").contains("K/N") && said("1/2/3").contains("K/N")
        );
        assert!(said("0/3").contains("from 1: 1/3 … 3/3"));
        assert!(said("4/3").contains("the last one is 3/3") && said("1/0").contains("at least one"));
    }
}
