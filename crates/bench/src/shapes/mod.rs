//! Workloads that do little but lock: each is one shape of contention, run by one fresh process.
//!
//! All locks are pthread objects, so that the drop-in decides whose algorithm runs. Every shape checks its own result: a
//! lock that loses an update ends the measurement.

mod condvar;
mod crew;
mod pair;
mod readers;
mod saturated;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// One kind of load.
pub trait Shape: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// What it does, for `--help`.
    fn about(&self) -> &'static str;

    /// The thread counts that it is measured at.
    fn threads(&self) -> &'static [usize];

    /// Runs it for about `duration`.
    ///
    /// # Errors
    ///
    /// If the result is wrong: the lock under test does not work.
    fn run(&self, threads: usize, duration: Duration) -> Result<Outcome, Wrong>;
}

/// All shapes, in the order of reports.
#[must_use]
pub fn all() -> &'static [&'static dyn Shape] {
    static ALL: [&dyn Shape; 13] = [
        &pair::PAIR_SINGLE,
        &pair::PAIR_THREADED,
        &pair::RECURSIVE_PAIR,
        &pair::ERRORCHECK_PAIR,
        &pair::READ_PAIR,
        &pair::WRITE_PAIR,
        &saturated::Saturated,
        &readers::READERS,
        &readers::MIXED_1,
        &readers::MIXED_10,
        &condvar::PING_PONG,
        &condvar::AFTER,
        &condvar::Broadcast,
    ];
    &ALL
}

/// The shape of that name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static dyn Shape> {
    all().iter().copied().find(|shape| shape.name() == name)
}

/// What a shape did.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Operations of all threads together.
    pub operations: u64,
    /// For how long they ran; where nobody waits, in CPU time.
    pub elapsed: Duration,
    /// How evenly the threads were served, where that is a question.
    pub fairness: Option<Fairness>,
}

/// How evenly threads were served.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fairness {
    /// The longest time that one thread went without the lock. Its resolution is the kernel's tick, 1 to 4 ms: a finer
    /// clock would cost more than the lock.
    pub longest_gap: Duration,
    /// Jain's index of operations per thread: 1 if all did the same, 1/n if one thread did everything.
    pub jain: f64,
}

/// The lock under test let something happen that must not.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("wrong result: {what} is {found}, not {expected}: the lock under test does not exclude")]
pub struct Wrong {
    what: &'static str,
    found: u64,
    expected: u64,
}

/// Compares a result with what it must be.
fn expect(what: &'static str, found: u64, expected: u64) -> Result<(), Wrong> {
    if found == expected { Ok(()) } else { Err(Wrong { what, found, expected }) }
}

/// Jain's fairness index (Jain, Chiu, Hawe 1984).
fn jain(shares: &[u64]) -> f64 {
    let sum: f64 = shares.iter().map(|&share| share as f64).sum();
    let squares: f64 = shares.iter().map(|&share| (share as f64).powi(2)).sum();
    if squares == 0.0 { 1.0 } else { sum * sum / (shares.len() as f64 * squares) }
}

/// What a worker process prints, as one line of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Time of the measurement divided by the operations of all threads.
    pub ns_per_operation: f64,
    /// Operations of all threads.
    pub operations: u64,
    /// Time of the measurement.
    pub elapsed_s: f64,
    /// [`Fairness::longest_gap`].
    pub longest_gap_s: Option<f64>,
    /// [`Fairness::jain`].
    pub jain: Option<f64>,
}

impl From<&Outcome> for Report {
    fn from(outcome: &Outcome) -> Self {
        let elapsed_s = outcome.elapsed.as_secs_f64();
        Self {
            ns_per_operation: elapsed_s * 1e9 / outcome.operations.max(1) as f64,
            operations: outcome.operations,
            elapsed_s,
            longest_gap_s: outcome.fairness.map(|fairness| fairness.longest_gap.as_secs_f64()),
            jain: outcome.fairness.map(|fairness| fairness.jain),
        }
    }
}

impl Report {
    /// Reads the last line of a worker's output.
    ///
    /// # Errors
    ///
    /// If it is not a report.
    pub fn parse(output: &str) -> serde_json::Result<Self> {
        serde_json::from_str(output.trim_end().lines().last().unwrap_or_default())
    }

    /// The numbers that not every shape has, by name.
    #[must_use]
    pub fn more(&self) -> BTreeMap<String, f64> {
        let named = [("longest_gap_s", self.longest_gap_s), ("jain", self.jain)];
        named.into_iter().filter_map(|(name, number)| Some((name.to_owned(), number?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_unique() {
        let names: HashSet<_> = all().iter().map(|shape| shape.name()).collect();
        assert_eq!(names.len(), all().len());
        assert!(by_name("saturated").is_some() && by_name("nonsense").is_none());
    }

    #[test]
    fn jain_of_even_and_uneven() {
        assert!((jain(&[5, 5, 5, 5]) - 1.0).abs() < 1e-12);
        assert!((jain(&[8, 0, 0, 0]) - 0.25).abs() < 1e-12);
        assert!((jain(&[0, 0]) - 1.0).abs() < 1e-12);
    }

    /// Every shape does something and finds its own result right, on whatever locks this process has.
    #[test]
    fn every_shape_runs() {
        for shape in all() {
            let threads = shape.threads()[0];
            // Longer only where a busy machine lets nothing happen in a short time.
            let outcome = [5, 50, 500, 5_000]
                .into_iter()
                .map(|millis| shape.run(threads, Duration::from_millis(millis)).unwrap())
                .find(|outcome| outcome.operations > 0)
                .unwrap_or_else(|| panic!("{} does nothing", shape.name()));
            let report = Report::from(&outcome);
            let line = serde_json::to_string(&report).unwrap();
            assert_eq!(Report::parse(&line).unwrap().operations, report.operations);
        }
    }
}
