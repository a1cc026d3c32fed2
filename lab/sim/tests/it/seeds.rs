//! Runs that differ in their seeds only.

use spinpark_sim::machine::Machine;
use spinpark_sim::parallel::run_all;
use spinpark_sim::workload::{Report, Setting};

/// A number of threads on as many CPUs, with our lock, once for each of `seeds` seeds; none fails.
pub(crate) fn run(
    seeds: u64,
    [cpus, threads]: [u32; 2],
    workload: &str,
    for_ns: u64,
    span_ns: u64,
) -> Vec<Report> {
    let mut setting = Setting::new(Machine::plain(cpus), "spinpark", workload, threads);
    setting.for_ns = for_ns;
    setting.record.span_ns = span_ns;
    let settings: Vec<_> = (0..seeds).map(|seed| Setting { seed, ..setting.clone() }).collect();
    let reports = run_all(&settings, |_| ()).expect("it can be run");
    reports.iter().for_each(|report| assert_eq!(report.outcome.failure, None));
    reports
}
