//! `fserver`
use crate::here;
use crate::workload::{Mode, Plan, SettingError, Workload};

pub(super) const FSERVER: Workload = Workload {
    name: "fserver",
    about: "jobs of a file server's mix: computation, and files created in one directory",
    mode: Mode::Kernel,
    build,
};

fn knob(name: &str, default: f64) -> f64 {
    std::env::var(name).map_or(default, |s| s.parse().unwrap())
}

fn build(plan: &mut Plan<'_>) -> Result<(), SettingError> {
    let directory = plan.mutex("directory")?;
    let hold = knob("HOLD", 20_000.0);
    let outside = knob("OUTSIDE", 5_000.0);
    let burst = knob("BURST", 100.0) as u32;
    let job = knob("JOB", 10.0) * 1e6;
    let resched = knob("RESCHED", 1.0) > 0.0;
    let cycle = 1.0 / plan.machine().ghz;
    let syscall = plan.machine().kernel.syscall_ns;
    for _ in 0..plan.setting().threads {
        let directory = directory.clone();
        plan.worker(move |worker| {
            worker.repeat(|| {
                for _ in 0..burst {
                    here::in_kernel(|| {
                        here::compute_f64(syscall + cycle * outside / 2.0);
                        directory.with(|| {
                            here::compute_f64(cycle * hold / 2.0);
                            if resched {
                                here::cond_resched();
                            }
                            here::compute_f64(cycle * hold / 2.0);
                        });
                        here::compute_f64(cycle * outside / 2.0);
                    });
                }
                here::compute_f64(job * (0.5 + here::random(1000) as f64 / 1000.0));
            });
        });
    }
    Ok(())
}
