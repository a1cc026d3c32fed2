//! One run again: what the command that a failing run shows says in the environment.

use std::env::var;

use spinpark_sim::Counts;

use super::case::Limits;
use super::checker::{Checker, Failing};

fn number(name: &str) -> Option<u64> {
    let text = var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text:?}")))
}

fn limits() -> Option<Limits> {
    let text = var("SPINPARK_LIMITS").ok()?;
    let sizes = text
        .split_once('x')
        .and_then(|(threads, rounds)| Some((threads.parse().ok()?, rounds.parse().ok()?)));
    let (threads, rounds) = sizes.unwrap_or_else(|| panic!("SPINPARK_LIMITS is like 2x3, not {text:?}"));
    Some(Limits { threads, rounds })
}

/// How many seeds of each family are to be run: `SPINPARK_SEEDS`.
///
/// # Panics
///
/// It is no number.
#[must_use]
pub fn seeds() -> Option<u64> {
    number("SPINPARK_SEEDS")
}

impl Checker {
    /// With the limits of `SPINPARK_LIMITS`, and as many steps shown as `SPINPARK_STEPS` says, if they are
    /// set.
    ///
    /// # Panics
    ///
    /// They are not what they should be.
    pub fn from_environment(self) -> Self {
        let limited = limits().map_or(self, |limits| self.limits(limits));
        number("SPINPARK_STEPS").map_or(limited, |steps| limited.shown(steps as usize))
    }

    /// If `SPINPARK_SEED` is set, runs that one only, unless `SPINPARK_FAMILY` names another family. `None`:
    /// it is not set.
    ///
    /// # Errors
    ///
    /// The run failed.
    ///
    /// # Panics
    ///
    /// It is no number.
    pub fn replay(&self) -> Option<Result<Counts, Box<Failing>>> {
        let seed = number("SPINPARK_SEED")?;
        if var("SPINPARK_FAMILY").is_ok_and(|family| family != self.family_name()) {
            return Some(Ok(Counts::default()));
        }
        let result = self.from_environment().run(seed);
        if result.is_ok() {
            println!("seed {seed} of {} holds", self.family_name());
        }
        Some(result)
    }
}
