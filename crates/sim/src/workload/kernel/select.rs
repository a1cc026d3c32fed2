//! `select`: a database's clients and servers talk over sockets of the machine, which have one mutex:
//! document 004's select-smack on FreeBSD of 2006, where every send and every receive of a local socket takes
//! `unp`.

use super::shared::Count;
use crate::here;
use crate::workload::{Mode, Plan, SettingError, Workload};

pub(super) const SELECT: Workload = Workload {
    name: "select",
    about: "queries over local sockets, all under one mutex of the kernel's",
    mode: Mode::Kernel,
    build,
};

/// Under the mutex: a message is copied to a socket's buffer, or from it, cycles. An estimate: some hundred
/// instructions of a CPU that issues about one a cycle, with its misses left to the line below.
const SECTION_CYCLES: f64 = 800.0;
/// Between two sections, on the average: the rest of the call, and this side's part of a query, cycles.
/// Fitted: document 004's gain of 17 % by back-off.
const BETWEEN_CYCLES: f64 = 19_500.0;

fn build(plan: &mut Plan<'_>) -> Result<(), SettingError> {
    /// Sends and receives of a query and its answer.
    const SECTIONS: u32 = 4;
    let unp = plan.mutex("unp")?;
    let counts = Count::new(); // what the mutex protects besides the socket
    let cycle = 1.0 / plan.machine().ghz;
    let syscall = plan.machine().kernel.syscall_ns;
    for _ in 0..plan.setting().threads {
        let (unp, counts) = (unp.clone(), counts.clone());
        plan.worker(move |worker| {
            worker.repeat(|| {
                for _ in 0..SECTIONS {
                    here::in_kernel(|| {
                        here::compute_f64(syscall);
                        unp.with(|| {
                            counts.write();
                            here::compute_f64(cycle * SECTION_CYCLES);
                        });
                    });
                    let part = 0.5 + here::random(1_000) as f64 / 1_000.0;
                    here::compute_f64(cycle * BETWEEN_CYCLES * part);
                }
            });
        });
    }
    Ok(())
}
