//! What cannot be measured from a program: what the kernel says of itself, or else what it is known for.

use std::fs;

/// A value, and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Known<T> {
    /// The value.
    pub(super) value: T,
    /// Where it comes from.
    pub(super) source: String,
}

impl<T> Known<T> {
    fn new(value: T, source: impl Into<String>) -> Self {
        Self { value, source: source.into() }
    }
}

/// Distance of timer ticks, ns: the resolution of the coarse clock is one tick.
pub(super) fn tick() -> Known<f64> {
    let mut resolution = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes a local.
    let failed = unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &raw mut resolution) };
    let ns = resolution.tv_nsec as f64;
    if failed == 0 && ns > 0.0 {
        let hertz = 1e9 / ns;
        Known::new(ns, format!("resolution of CLOCK_MONOTONIC_COARSE: one tick, HZ={hertz:.0}"))
    } else {
        Known::new(4e6, "not known here; HZ=250, as most distributions")
    }
}

/// How CPUs are given out.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fair {
    /// Within this time each thread runs once, ns.
    pub(super) latency: Known<f64>,
    /// The shortest slice, ns.
    pub(super) slice: Known<f64>,
    /// What a sleeper gets, as a part of `latency`.
    pub(super) credit: Known<f64>,
}

/// The scheduler's constants on a machine with this number of CPUs.
pub(super) fn fair(cpus: usize) -> Fair {
    const BASE_SLICE: &str = "/sys/kernel/debug/sched/base_slice_ns";
    let factor = 1 + cpus.clamp(1, 8).ilog2();
    let scaled = |ms: f64, what: &str| {
        let source = format!(
            "{what}: {ms} ms × (1 + log2 of at most 8 CPUs), × {factor} here; debugfs is not readable"
        );
        Known::new(ms * 1e6 * f64::from(factor), source)
    };
    if version() < (6, 6) {
        return Fair {
            latency: scaled(6.0, "CFS's default"),
            slice: scaled(0.75, "CFS's default"),
            credit: Known::new(0.5, "CFS: GENTLE_FAIR_SLEEPERS"),
        };
    }
    let read = fs::read_to_string(BASE_SLICE).ok().and_then(|text| text.trim().parse().ok());
    let slice = read.map_or_else(|| scaled(0.7, "EEVDF's default"), |ns| Known::new(ns, BASE_SLICE));
    Fair {
        latency: Known::new(slice.value, "EEVDF has no latency, only slices: as `min_slice`"),
        slice,
        credit: Known::new(0.0, "EEVDF keeps a sleeper's lag, and gives nothing for sleeping"),
    }
}

/// The kernel's version.
fn version() -> (u32, u32) {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers = release.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Whether kernel code is preempted.
pub(super) fn preempts_kernel() -> Known<bool> {
    const PATH: &str = "/sys/kernel/debug/sched/preempt";
    if let Ok(text) = fs::read_to_string(PATH) {
        return Known::new(text.contains("(full)") || text.contains("(lazy)"), PATH);
    }
    let version = fs::read_to_string("/proc/sys/kernel/version").unwrap_or_default();
    let words: Vec<&str> = version.split_whitespace().collect();
    if words.contains(&"PREEMPT") || words.contains(&"PREEMPT_RT") {
        return Known::new(true, "PREEMPT in /proc/sys/kernel/version");
    }
    let source = if words.contains(&"PREEMPT_DYNAMIC") {
        "PREEMPT_DYNAMIC in /proc/sys/kernel/version, which may be set either way; not preempted, as distributions' servers"
    } else {
        "no PREEMPT in /proc/sys/kernel/version"
    };
    Known::new(false, source)
}

/// Hash buckets for futexes.
pub(super) fn futex_buckets(cpus: usize) -> Known<f64> {
    // Since 6.16 a process has a table of its own once it has threads; before, there was one for all, of 256
    // for each CPU.
    if version() >= (6, 16) {
        let buckets = (4 * cpus).next_power_of_two().max(16);
        return Known::new(
            buckets as f64,
            "Linux since 6.16: a table for each process, four for each thread up to the number of CPUs, at least 16; \
             from memory",
        );
    }
    Known::new((256 * cpus).next_power_of_two() as f64, "Linux 3.13 to 6.15: 256 for each CPU, rounded up")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_has_a_value_and_a_source() {
        for known in [tick(), fair(1).latency, fair(64).slice, futex_buckets(3)] {
            assert!(known.value > 0.0 && !known.source.is_empty(), "{known:?}");
        }
        assert!(futex_buckets(3).value.log2().fract().abs() < f64::EPSILON);
        assert!(!preempts_kernel().source.is_empty());
    }
}
