//! Threads that wait awake with CPUs to spare: none of them keeps a CPU from the one that the lock is for,
//! and no more of them than keep the lock busy.

use crate::seeds::run;

const SEEDS: u64 = 6;

/// Two threads a CPU, and a release that promises the lock to a woken waiter every few milliseconds: the
/// waiter is ready to run on the CPU of a thread that waits awake. While that stayed awake, a quarter of the
/// time was lost, half a millisecond at a time.
#[test]
fn a_promised_lock_is_not_kept_from_its_waiter_by_spinners() {
    const SPAN_NS: u64 = 50_000;
    for workload in ["plane-0-0", "plane-0-30"] {
        let reports = run(SEEDS, [8, 16], workload, 30_000_000, SPAN_NS);
        let spans = || reports.iter().flat_map(|report| &report.spans);
        let idle = spans().filter(|&&operations| operations == 0).count() as f64 / spans().count() as f64;
        println!("{workload}: no operation in {:.1} % of the time", 100.0 * idle);
        assert!(idle < 0.05, "{workload}: no operation in {:.1} % of the time", 100.0 * idle);
    }
}

/// Sixteen threads on sixteen CPUs: most of them would wait awake for most of the time.
#[test]
fn no_more_wait_awake_than_keep_the_lock_busy() {
    // The owner, one outside, those that wait, and one that comes or goes.
    for (workload, busy) in [("plane-300-300", 5.0), ("medium", 5.0), ("plane-3000-0", 3.0)] {
        for report in run(SEEDS, [16, 16], workload, 10_000_000, 0) {
            let cpus = report.on_cpu_ns() as f64 / report.outcome.elapsed_ns as f64;
            println!("{workload}, seed {}: {cpus:.1} CPUs", report.seed);
            assert!(cpus < busy, "{workload}, seed {}: {cpus:.1} CPUs are busy, not {busy}", report.seed);
        }
    }
}
