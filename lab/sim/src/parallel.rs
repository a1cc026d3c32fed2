//! Many runs, side by side on the CPUs of the real machine.

use std::thread;
use std::time::Instant;

use rayon::prelude::*;

use crate::workload::{Report, Setting, SettingError};

/// How many stacks there may be at a time. Each takes two mappings; a quarter of those that the kernel allows
/// is left for everything else.
fn most_stacks() -> usize {
    /// What the kernel allows unless told.
    const USUAL: usize = 65_530;
    let limit = std::fs::read_to_string("/proc/sys/vm/max_map_count");
    limit.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(USUAL) / 8 * 3
}

/// How many of these runs go side by side: as many as there are CPUs, unless they have too many threads:
/// the kernel would have no mappings left for their stacks.
#[must_use]
pub fn side_by_side(settings: &[Setting]) -> usize {
    let most = settings.iter().map(|setting| setting.threads as usize).max().unwrap_or_default().max(1);
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    cpus.min(most_stacks() / most).clamp(1, settings.len().max(1))
}

/// Does `act` on this number of threads.
fn on_threads<R: Send>(threads: usize, act: impl FnOnce() -> R + Send) -> R {
    match rayon::ThreadPoolBuilder::new().num_threads(threads).build() {
        Ok(pool) => pool.install(act),
        // No threads to be had: then on those that there are.
        Err(_) => act(),
    }
}

/// Runs all of them, the longest first; the reports are in the order of the settings. `done` is called after
/// each, on some thread.
///
/// # Errors
///
/// The first one that could not be run.
pub fn run_all(settings: &[Setting], done: impl Fn(&Report) + Sync) -> Result<Vec<Report>, SettingError> {
    let length = |setting: &Setting| u128::from(setting.threads) * u128::from(setting.for_ns);
    let mut order: Vec<usize> = (0..settings.len()).collect();
    order.sort_by_key(|&number| std::cmp::Reverse(length(&settings[number])));
    let run = |number: usize| {
        let report = settings[number].run()?;
        done(&report);
        Ok::<_, SettingError>((number, report))
    };
    let mut reports: Vec<(usize, Report)> = on_threads(side_by_side(settings), || {
        order.into_iter().par_bridge().map(run).collect::<Result<_, _>>()
    })?;
    reports.sort_by_key(|&(number, _)| number);
    Ok(reports.into_iter().map(|(_, report)| report).collect())
}

/// Runs each of them, beginning with the first ones. `done` is called after each, on some thread, with its
/// number and how many seconds of real time it took.
pub fn run_each(settings: &[Setting], done: impl Fn(usize, Result<Report, SettingError>, f64) + Sync) {
    let run = |(number, setting): (usize, &Setting)| {
        let start = Instant::now();
        let result = setting.run();
        done(number, result, start.elapsed().as_secs_f64());
    };
    on_threads(side_by_side(settings), || settings.iter().enumerate().par_bridge().for_each(run));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;

    #[test]
    fn large_runs_leave_room_for_each_other() {
        let setting = |threads| Setting::new(Machine::plain(2), "spinpark", "saturated", threads);
        assert_eq!(side_by_side(&[setting(2)]), 1);
        let many = vec![setting(2); 1000];
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        assert_eq!(side_by_side(&many), cpus.min(1000));
        assert!(side_by_side(&[setting(2), setting(8192), setting(2)]) <= 2);
    }
}
