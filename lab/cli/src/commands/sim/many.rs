//! Many runs in parallel, with a progress bar.

use std::sync::Mutex;
use std::time::Instant;

use spinpark_experiments::estimate::{Estimate, weight};
use spinpark_measure::text::units::{self, counted};
use spinpark_sim::parallel::{run_each, side_by_side};
use spinpark_sim::workload::{Report, Setting, SettingError};

use spinpark_cli::exit::BatchEnd;
use spinpark_cli::progress::{Progress, about};

/// What was made.
pub(super) struct Made {
    /// In the order of the settings; `None` if it was not made.
    pub(super) reports: Vec<Option<Report>>,
    pub(super) end: BatchEnd,
    /// Why one of them could not be made; the others were not begun then.
    pub(super) error: Option<SettingError>,
    /// How long that took, in real time.
    pub(super) seconds: f64,
}

impl Made {
    /// Reports on standard error why not all was made.
    pub(super) fn say_end(&self) {
        let (ended, all) = (self.reports.iter().flatten().count(), self.reports.len());
        let of = format!("{} of {all}", counted(ended, "run"));
        match (&self.error, self.end) {
            (Some(error), _) => note!("Given up after {of}: {error}"),
            (None, BatchEnd::Interrupted) => note!("Interrupted after {of}."),
            (None, _) => {}
        }
    }

    /// How fast the simulator was, for standard error: this differs from run to run.
    pub(super) fn speed(&self) -> String {
        let outcomes = || self.reports.iter().flatten().map(|report| &report.outcome);
        let events: u64 = outcomes().map(|outcome| outcome.counts.events).sum();
        let virtual_ns: u64 = outcomes().map(|outcome| outcome.elapsed_ns).sum();
        format!(
            "Simulated {} of virtual time in {}, until the last thread of each run ended: {} events, {} a second.",
            units::seconds(virtual_ns as f64 * 1e-9),
            units::seconds(self.seconds),
            units::number(events as f64),
            units::number((events as f64 / self.seconds.max(1e-9)).round())
        )
    }
}

/// The state that changes while runs end.
struct State {
    reports: Vec<Option<Report>>,
    estimate: Estimate,
    error: Option<SettingError>,
    is_stopped: bool,
    ended: usize,
}

/// In which order they are made: the longest first, since they decide when all is done; of those that seem to
/// be as long as each other the first seed of each lock first, since that says how long the others take.
fn order(settings: &[Setting]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..settings.len()).collect();
    order.sort_by(|&a, &b| {
        let (a, b) = (&settings[a], &settings[b]);
        weight(b).total_cmp(&weight(a)).then(a.seed.cmp(&b.seed))
    });
    order
}

/// Makes all runs.
pub(super) fn run(settings: &[Setting]) -> Made {
    let order = order(settings);
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
                // The others would fail as well, or be useless.
                state.error.get_or_insert(error);
                spinpark_sim::stop();
            }
        }
        state.ended += 1;
        state.estimate.ended(place, seconds);
        show(&progress, &mut state, settings.len(), start.elapsed().as_secs_f64());
    });
    drop(progress);
    let State { reports, error, is_stopped, .. } =
        state.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let end = match (&error, is_stopped) {
        (Some(_), _) => BatchEnd::Failed,
        (None, true) => BatchEnd::Interrupted,
        (None, false) => BatchEnd::Complete,
    };
    Made { reports, end, error, seconds: start.elapsed().as_secs_f64() }
}

fn show(progress: &Progress, state: &mut State, runs: usize, elapsed: f64) {
    if state.is_stopped || state.error.is_some() {
        return; // what ends now was given up
    }
    let count = format!("{}/{runs} runs", state.ended);
    let (part, time) = match state.estimate.left() {
        Some(left) => (elapsed / (elapsed + left).max(1e-9), format!("{} left", about(left))),
        None => (state.estimate.part(), String::from("time not known yet")),
    };
    progress.at(part, format!("{count}, {time}"));
}

#[cfg(test)]
mod tests {
    use spinpark_sim::machine::Machine;
    use spinpark_sim::workload::Setting;

    use super::order;

    #[test]
    fn long_runs_come_first_then_each_lock_once() {
        let mut settings = Vec::new();
        for threads in [1, 4] {
            for lock in ["spinpark", "classic-tas"] {
                for seed in [7, 8] {
                    let setting = Setting::new(Machine::plain(4), lock, "long", threads);
                    settings.push(Setting { seed, ..setting });
                }
            }
        }
        let order = order(&settings).into_iter().map(|number| {
            let Setting { threads, seed, lock, .. } = &settings[number];
            (*threads, *seed, lock.as_str())
        });
        let each = |threads, seed| [(threads, seed, "spinpark"), (threads, seed, "classic-tas")];
        assert_eq!(order.collect::<Vec<_>>(), [each(4, 7), each(4, 8), each(1, 7), each(1, 8)].concat());
    }
}
