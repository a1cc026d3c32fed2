//! What a workload did, and the line that a worker process prints about it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::wait_times::Waits;
use super::worker_pool::{Done, Share};
use crate::locks::counters::Counts;

/// What a workload did.
#[derive(Debug)]
pub struct RunResult {
    /// Operations of all threads together, in the counted phase.
    pub(super) operations: u64,
    /// The length of the counted phase; where no thread waits, in CPU time.
    pub(super) elapsed: Duration,
    /// What the kernel counted meanwhile.
    pub(super) counts: Counts,
    /// Operations per thread.
    pub(super) shares: Vec<u64>,
    /// How long threads waited, if that was timed.
    pub(super) waits: Option<Waits>,
    /// Writes among all operations, where some only read: a fraction.
    pub(super) writes: Option<f64>,
}

impl RunResult {
    pub(super) fn new(done: Done<Share>) -> Self {
        let shares: Vec<u64> = done.shares.iter().map(|share| share.counted).collect();
        let timed: Vec<&Waits> = done.shares.iter().filter_map(|share| share.waits.as_ref()).collect();
        let waits = (!timed.is_empty()).then(|| {
            let mut all = Waits::new();
            timed.into_iter().for_each(|waits| all.add(waits));
            all
        });
        let operations = shares.iter().sum();
        Self { operations, elapsed: done.elapsed, counts: done.counts, shares, waits, writes: None }
    }
}

/// Jain's fairness index (Jain, Chiu, Hawe 1984): 1 if all did the same, 1/n if one thread did everything.
pub fn jain(shares: &[u64]) -> f64 {
    let sum: f64 = shares.iter().map(|&share| share as f64).sum();
    let squares: f64 = shares.iter().map(|&share| (share as f64).powi(2)).sum();
    if squares == 0.0 { 1.0 } else { sum * sum / (shares.len() as f64 * squares) }
}

/// What a worker process prints, as one line of JSON.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Operations of all threads in the counted phase.
    pub operations: u64,
    /// Length of the counted phase, in seconds; of a pair, the thread's CPU time.
    pub elapsed_s: f64,
    /// CPU time of all threads in the counted phase, in seconds.
    pub cpu_s: f64,
    /// Times that a thread gave up its CPU in the counted phase: mostly, it slept.
    pub voluntary_switches: u64,
    /// Times that a CPU was taken from a thread in the counted phase.
    pub involuntary_switches: u64,
    /// Jain's index of operations per thread, where several threads do the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jain: Option<f64>,
    /// Writes among all operations of the run, where some only read: a fraction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writes: Option<f64>,
    /// Futex calls in the counted phase, in a run that counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub futex_calls: Option<u64>,
    /// Why they could not be counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub futex_error: Option<String>,
    /// Waits, from a second run of the same load with clocks, where threads wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<WaitReport>,
}

/// Waits of all threads.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitReport {
    /// `[nanoseconds, how many]`, a bucket of the HDR histogram each: none is wider than 1 % of its value.
    pub buckets: Vec<(u64, u64)>,
    /// The longest wait, in nanoseconds, exactly.
    pub longest_ns: u64,
    /// The longest time that a thread went without the lock, in nanoseconds.
    pub longest_gap_ns: u64,
    /// 99.9 % of the waits are shorter, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p999_ns: Option<u64>,
    /// The longest wait of a thread that wanted to write, where some only read, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_write_ns: Option<u64>,
    /// The median of such waits, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_write_ns: Option<u64>,
}

impl From<&Waits> for WaitReport {
    fn from(waits: &Waits) -> Self {
        let recorded = waits.histogram.iter_recorded();
        Self {
            buckets: recorded.map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value())).collect(),
            longest_ns: waits.longest_ns,
            longest_gap_ns: waits.longest_gap_ns,
            p999_ns: (!waits.histogram.is_empty()).then(|| waits.histogram.value_at_quantile(0.999)),
            longest_write_ns: waits.longest_write_ns,
            median_write_ns: (!waits.writes.is_empty()).then(|| waits.writes.value_at_quantile(0.5)),
        }
    }
}

impl From<&RunResult> for Report {
    fn from(outcome: &RunResult) -> Self {
        let counts = &outcome.counts;
        Self {
            operations: outcome.operations,
            elapsed_s: outcome.elapsed.as_secs_f64(),
            cpu_s: counts.cpu.as_secs_f64(),
            voluntary_switches: counts.voluntary_switches,
            involuntary_switches: counts.involuntary_switches,
            jain: (outcome.shares.len() > 1).then(|| jain(&outcome.shares)),
            writes: outcome.writes,
            futex_calls: counts.futex_calls.as_ref().and_then(|calls| calls.as_ref().ok().copied()),
            futex_error: counts.futex_calls.as_ref().and_then(|calls| calls.as_ref().err().cloned()),
            waits: outcome.waits.as_ref().map(WaitReport::from),
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_of_even_and_uneven() {
        assert!((jain(&[5, 5, 5, 5]) - 1.0).abs() < 1e-12);
        assert!((jain(&[8, 0, 0, 0]) - 0.25).abs() < 1e-12);
        assert!((jain(&[0, 0]) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_report_survives_the_pipe() {
        let waits = WaitReport {
            buckets: vec![(1, 2), (100, 1)],
            longest_ns: 101,
            longest_gap_ns: 500,
            ..WaitReport::default()
        };
        let report = Report {
            operations: 3,
            elapsed_s: 0.25,
            jain: Some(0.5),
            waits: Some(waits),
            ..Report::default()
        };
        let line = serde_json::to_string(&report).unwrap();
        assert_eq!(Report::parse(&format!("noise\n{line}\n")).unwrap(), report);
        assert!(Report::parse("").is_err());
    }
}
