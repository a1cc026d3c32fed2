//! The same runs simulated.

use spinpark_sim::machine::Machine;
use spinpark_sim::sweep::run_all;
use spinpark_sim::workload::{Setting, SettingError};

use super::Case;

/// How much is simulated.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Runs of each case, with a seed each.
    pub runs: u64,
    /// Length of a run in the machine's time, ns.
    pub for_ns: u64,
}

/// Operations per second of each of `cases` on `machine`, run by run. `done` is called after each run, on
/// some thread.
///
/// # Errors
///
/// As [`Setting::run`]; or a run that failed.
pub fn simulate(
    cases: &[Case],
    machine: &Machine,
    effort: Effort,
    done: impl Fn() + Sync,
) -> Result<Vec<Vec<f64>>, SettingError> {
    let of_case = |case: &Case| {
        let machine = machine.clone().limited_to(case.cpus as u32);
        let setting = Setting::new(machine, &case.lock, &case.shape, case.threads as u32);
        let setting = Setting { for_ns: effort.for_ns, ..setting };
        (0..effort.runs).map(move |seed| Setting { seed, ..setting.clone() })
    };
    let settings: Vec<Setting> = cases.iter().flat_map(of_case).collect();
    let reports = run_all(&settings, |_| done())?;
    if let Some(failed) = reports.iter().find(|report| report.outcome.failure.is_some()) {
        let failure = failed.outcome.failure.as_ref().map_or_else(String::new, ToString::to_string);
        return Err(SettingError::Unfit(format!("{} on {}: {failure}", failed.workload, failed.lock)));
    }
    let throughputs: Vec<f64> = reports.iter().map(spinpark_sim::workload::Report::throughput).collect();
    Ok(throughputs.chunks(effort.runs.max(1) as usize).map(<[f64]>::to_vec).collect())
}
