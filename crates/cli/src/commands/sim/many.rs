//! Many runs side by side, with a bar that knows how long they take.

use std::sync::Mutex;
use std::time::Instant;

use spinpark_bench::simulate::estimate::{Estimate, weight};
use spinpark_bench::simulate::sim::sweep::{run_each, side_by_side};
use spinpark_bench::simulate::sim::workload::{Report, Setting, SettingError};
use spinpark_bench::units;

use super::End;
use crate::progress::{Progress, about};

/// What was made.
pub(super) struct Made {
    /// As the settings stand; none: it was not made.
    pub(super) reports: Vec<Option<Report>>,
    pub(super) end: End,
    /// How long that took, in real time.
    pub(super) seconds: f64,
}

impl Made {
    /// How fast the simulator was, for standard error: this differs from run to run.
    pub(super) fn speed(&self) -> String {
        let outcomes = || self.reports.iter().flatten().map(|report| &report.outcome);
        let events: u64 = outcomes().map(|outcome| outcome.counts.events).sum();
        let virtual_ns: u64 = outcomes().map(|outcome| outcome.elapsed_ns).sum();
        format!(
            "Simulated {} in {}: {} events, {} a second.",
            units::seconds(virtual_ns as f64 * 1e-9),
            units::seconds(self.seconds),
            units::number(events as f64),
            units::number((events as f64 / self.seconds.max(1e-9)).round())
        )
    }
}

/// What changes while runs end.
struct State {
    reports: Vec<Option<Report>>,
    estimate: Estimate,
    error: Option<SettingError>,
    is_stopped: bool,
    ended: usize,
}

/// Makes all runs, the longest first, since they decide when all is done.
pub(super) fn run(settings: &[Setting]) -> anyhow::Result<Made> {
    let mut order: Vec<usize> = (0..settings.len()).collect();
    order.sort_by(|&a, &b| weight(&settings[b]).total_cmp(&weight(&settings[a])));
    let sorted: Vec<Setting> = order.iter().map(|&number| settings[number].clone()).collect();
    let state = Mutex::new(State {
        reports: vec![None; settings.len()],
        estimate: Estimate::new(&sorted, side_by_side(&sorted)),
        error: None,
        is_stopped: false,
        ended: 0,
    });
    let progress = Progress::free();
    let start = Instant::now();
    progress.at(0.0, format!("0/{} runs", settings.len()));
    run_each(&sorted, |place, result, seconds| {
        let mut state = state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match result {
            Ok(report) => state.reports[order[place]] = Some(report),
            Err(SettingError::Stopped) => state.is_stopped = true,
            Err(error) => {
                // The others would fail as well, or be of no use.
                state.error.get_or_insert(error);
                spinpark_bench::simulate::sim::stop();
            }
        }
        state.ended += 1;
        state.estimate.ended(place, seconds);
        show(&progress, &state, settings.len(), start.elapsed().as_secs_f64());
    });
    drop(progress);
    let State { reports, error, is_stopped, .. } =
        state.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    match error {
        Some(error) => Err(error.into()),
        None => {
            let end = if is_stopped { End::Interrupted } else { End::Complete };
            Ok(Made { reports, end, seconds: start.elapsed().as_secs_f64() })
        }
    }
}

fn show(progress: &Progress, state: &State, runs: usize, elapsed: f64) {
    let count = format!("{}/{runs} runs", state.ended);
    match state.estimate.left() {
        Some(left) => {
            let part = elapsed / (elapsed + left).max(1e-9);
            progress.at(part, format!("{count}, {} left", about(left)));
        }
        None => progress.at(0.0, count),
    }
}
