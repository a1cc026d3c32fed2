//! Many runs, side by side on the CPUs of the real machine.

use std::time::Instant;

use rayon::prelude::*;

use crate::workload::{Report, Setting, SettingError};

/// Runs all of them; the reports are in the order of the settings. `done` is called after each, on some thread.
///
/// # Errors
///
/// The first one that could not be run.
pub fn run_all(settings: &[Setting], done: impl Fn(&Report) + Sync) -> Result<Vec<Report>, SettingError> {
    let run = |setting: &Setting| {
        let report = setting.run()?;
        done(&report);
        Ok(report)
    };
    settings.par_iter().map(run).collect()
}

/// Runs each of them, beginning with the first ones. `done` is called after each, on some thread, with its number and how
/// many seconds of real time it took.
pub fn run_each(settings: &[Setting], done: impl Fn(usize, Result<Report, SettingError>, f64) + Sync) {
    settings.iter().enumerate().par_bridge().for_each(|(number, setting)| {
        let start = Instant::now();
        let result = setting.run();
        done(number, result, start.elapsed().as_secs_f64());
    });
}
