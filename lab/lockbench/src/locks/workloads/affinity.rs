//! Where a thread runs.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// CPUs that this process may use.
pub(super) fn allowed() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect()
}

/// Runs `start`, which starts a process, with the calling thread bound to the first allowed CPU: so that
/// process is.
pub(in crate::locks) fn starting_on_one_cpu<T>(start: impl FnOnce() -> T) -> T {
    let before = sched_getaffinity(None);
    on(0);
    let result = start();
    if let Ok(before) = before {
        let _ = sched_setaffinity(None, &before);
    }
    result
}

/// Puts the calling thread on the `number`-th allowed CPU, counted in a circle. Where that is not possible,
/// it stays where it is: the caller knows how many CPUs there are.
pub(super) fn on(number: usize) {
    if let Some(&cpu) = allowed().iter().cycle().nth(number) {
        let mut set = CpuSet::new();
        set.set(cpu);
        let _ = sched_setaffinity(None, &set);
    }
}
