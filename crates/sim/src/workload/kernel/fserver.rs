//! `fserver`: a file server's mix, reduced to what meets at one directory's mutex: a computation, then a file
//! that is made.

use crate::here;
use crate::workload::{Mode, Plan, SettingError, Workload};

pub(super) const FSERVER: Workload = Workload {
    name: "fserver",
    about: "jobs of a file server's mix: a computation, then a file made in a common directory",
    mode: Mode::Kernel,
    build,
};

/// Under the directory's mutex, cycles. Fitted: document 001's gain of 63 % in jobs per minute.
const HOLD_CYCLES: f64 = 17_500.0;
/// The rest of the call that makes the file, cycles. An estimate, as for `creat`.
const CALL_CYCLES: f64 = 5_000.0;
/// The computation, on the average, ns: short enough that the mutex limits with either kernel. An assumption:
/// the document does not say how many users share how many directories.
const COMPUTATION_NS: f64 = 500_000.0;

fn build(plan: &mut Plan<'_>) -> Result<(), SettingError> {
    let directory = plan.mutex("directory")?;
    let cycle = 1.0 / plan.machine().ghz;
    let syscall = plan.machine().kernel.syscall_ns;
    for _ in 0..plan.setting().threads {
        let directory = directory.clone();
        plan.worker(move |worker| {
            worker.repeat(|| {
                here::in_kernel(|| {
                    here::compute_f64(syscall + cycle * CALL_CYCLES / 2.0);
                    directory.with(|| here::compute_f64(cycle * HOLD_CYCLES));
                    here::compute_f64(cycle * CALL_CYCLES / 2.0);
                });
                let part = 0.5 + here::random(1_000) as f64 / 1_000.0;
                here::compute_f64(COMPUTATION_NS * part);
            });
        });
    }
    Ok(())
}
