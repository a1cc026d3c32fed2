//! Where a thread runs.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// CPUs that this process may use.
pub(super) fn allowed() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect()
}

/// Puts the calling thread on the `number`-th allowed CPU. Where that is not possible, it stays where it is: the caller
/// knows how many CPUs there are.
pub(super) fn on(number: usize) {
    if let Some(&cpu) = allowed().get(number) {
        let mut set = CpuSet::new();
        set.set(cpu);
        let _ = sched_setaffinity(None, &set);
    }
}
