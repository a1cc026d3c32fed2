//! Measuring what a machine file says: the primitives of the machine at hand, and nothing but primitives.
//! Locks are never measured here, so that a simulation of locks on the result is a prediction.
//!
//! | step | where |
//! |---|---|
//! | what is measured, and how | [`measure`] |
//! | which CPUs there are | [`cpus`] |
//! | the measurements | `instructions`, `line_transfers`, `system_calls`, `two_threads` |
//! | what the kernel says or is known for | `kernel_says` |
//! | a machine file of it all | [`machine_file`] |
//!
//! Each measurement is made of many short batches, of which the lower quartile counts (disturbances only make
//! a time longer); the whole series is repeated, and the figure is the median over the rounds. What else runs
//! on the machine spoils some batches and perhaps a round. How far the rounds are apart stands beside each
//! figure.

pub mod cpus;
mod instructions;
mod kernel_says;
mod line_transfers;
pub mod machine_file;
pub mod measure;
mod system_calls;
mod two_threads;

use std::collections::BTreeMap;
use std::io;
use std::time::Instant;

use rustix::thread::{sched_getaffinity, sched_setaffinity};
use spinpark_measure::rounds::machine::Watch;
use thiserror::Error;

pub use self::cpus::Cpus;
pub use self::measure::Measure;

/// What keeps a machine from being measured.
#[derive(Debug, Error)]
pub enum CalibrateError {
    /// The kernel does not allow something.
    #[error("cannot {0}: {1}")]
    Refused(&'static str, io::Error),
    /// Where the CPUs lie is not known.
    #[error("cannot tell where the CPUs lie: {0}. Are /proc and /sys mounted?")]
    Cpus(String),
    /// The user stopped it.
    #[error("interrupted")]
    Interrupted,
}

impl CalibrateError {
    fn refused(what: &'static str) -> impl Fn(rustix::io::Errno) -> Self {
        move |error| Self::Refused(what, error.into())
    }
}

/// How the measurement goes on.
pub trait Watcher {
    /// This is measured next.
    fn starting(&mut self, round: usize, measure: Measure);

    /// Whether to stop.
    fn is_over(&self) -> bool;
}

/// What was measured.
#[derive(Debug, Clone, Default)]
pub struct Calibration {
    /// For each measure, one value per round; fewer if a round could not tell.
    pub values: BTreeMap<Measure, Vec<f64>>,
    /// The part of all CPU time that others took meanwhile: programs, and virtual machines beside this one.
    pub others: f64,
}

impl Calibration {
    /// Measures this machine, this number of times.
    ///
    /// # Errors
    ///
    /// If the kernel does not allow what is needed, or the watcher says stop.
    pub fn run(cpus: &Cpus, rounds: usize, watcher: &mut dyn Watcher) -> Result<Self, CalibrateError> {
        let mut calibration = Self::default();
        let watch = Watch::start();
        let allowed = sched_getaffinity(None).map_err(CalibrateError::refused("ask for the allowed CPUs"))?;
        for round in 0..rounds {
            for &measure in Measure::ALL {
                if watcher.is_over() {
                    return Err(CalibrateError::Interrupted);
                }
                watcher.starting(round, measure);
                let value = measure.take(cpus);
                // The watching thread runs anywhere.
                sched_setaffinity(None, &allowed).map_err(CalibrateError::refused("give up the one CPU"))?;
                if let Some(value) = value? {
                    calibration.values.entry(measure).or_default().push(value);
                }
            }
        }
        let noise = watch.noise();
        calibration.others = noise.steal + noise.others;
        Ok(calibration)
    }

    /// The median over the rounds, if it could be measured.
    #[must_use]
    pub fn of(&self, measure: Measure) -> Option<f64> {
        self.spread(measure).map(|spread| spread.median)
    }

    /// How the rounds differ.
    #[must_use]
    pub fn spread(&self, measure: Measure) -> Option<Spread> {
        Spread::of(self.values.get(&measure)?)
    }

    /// The measures whose rounds are so far apart that they should be repeated on a quieter machine.
    #[must_use]
    pub fn noisy(&self) -> Vec<Measure> {
        /// Half of the rounds within this part of the median: half as much on either side.
        const MOST: f64 = 0.25;
        let is_noisy = |measure: &Measure| {
            self.spread(*measure).is_some_and(|spread| spread.width() > MOST * spread.median.abs())
        };
        Measure::ALL.iter().copied().filter(is_noisy).collect()
    }
}

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
        let at = |part: f64| spinpark_measure::stats::quantile(&sorted, part);
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
fn cost(batches: usize, calls: usize, mut call: impl FnMut()) -> f64 {
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
fn median(values: &[f64]) -> Option<f64> {
    Spread::of(values).filter(|_| values.len() >= ENOUGH).map(|spread| spread.median)
}

/// The lower quartile of `values`, if there are enough of them to tell: for times that disturbances only make
/// longer.
fn quick(values: &[f64]) -> Option<f64> {
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
