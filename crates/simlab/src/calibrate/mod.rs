//! Measuring what a machine file says: the primitives of the machine at hand, and nothing but primitives.
//! Locks are never measured here, so that a simulation of locks on the result is a prediction.
//!
//! | step | where |
//! |---|---|
//! | what is measured, and how | [`measure`] |
//! | which CPUs there are | [`cpus`] |
//! | the measurements | `processor`, `lines`, `calls`, `wakes`, `turns`, `timers` |
//! | what the kernel says or is known for | `kernel` |
//! | a machine file of it all | [`sheet`] |
//!
//! Each measurement is made of many short batches, of which the lower quartile counts (disturbances only make
//! a time longer); the whole series is repeated, and the figure is the median over the rounds. What else runs
//! on the machine spoils some batches and perhaps a round. How far the rounds are apart stands beside each
//! figure.

mod calls;
pub mod cpus;
mod futex;
mod kernel;
mod lines;
pub mod measure;
mod processor;
pub mod sheet;
mod spread;
mod timers;
mod turns;
mod wakes;

use std::collections::BTreeMap;
use std::io;

use rustix::thread::{sched_getaffinity, sched_setaffinity};
use spinpark_measure::machine::Watch;
use thiserror::Error;

pub use self::cpus::Cpus;
pub use self::measure::Measure;
pub use self::spread::Spread;

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
    /// Measures this machine, so many times.
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
