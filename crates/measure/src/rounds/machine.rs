//! What else the machine did while we measured: `/proc/stat` before and after.

use std::fs;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// CPU time of the whole machine since boot, in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Ticks {
    busy: u64,
    idle: u64,
    steal: u64,
}

/// An open observation.
#[derive(Debug)]
pub struct Watch {
    ticks: Option<Ticks>,
    own: Duration,
}

/// What was seen, as shares of all CPU time. Zero if the kernel does not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// Taken by other virtual machines.
    pub steal: f64,
    /// Used by processes that were not measured.
    pub others: f64,
}

impl Watch {
    /// Starts to watch.
    #[must_use]
    pub fn start() -> Self {
        Self { ticks: read(), own: own_cpu() }
    }

    /// What happened since then.
    #[must_use]
    pub fn noise(&self) -> Noise {
        let (Some(before), Some(after)) = (self.ticks, read()) else { return Noise::default() };
        noise(before, after, (own_cpu() - self.own).as_secs_f64() * ticks_per_second())
    }
}

fn noise(before: Ticks, after: Ticks, own: f64) -> Noise {
    let busy = after.busy.saturating_sub(before.busy) as f64;
    let idle = after.idle.saturating_sub(before.idle) as f64;
    let steal = after.steal.saturating_sub(before.steal) as f64;
    let all = (busy + idle + steal).max(1.0);
    Noise { steal: steal / all, others: ((busy - own) / all).max(0.0) }
}

fn read() -> Option<Ticks> {
    parse(&fs::read_to_string("/proc/stat").ok()?)
}

/// The `cpu` line: user nice system idle iowait irq softirq steal; guest time is part of user.
fn parse(stat: &str) -> Option<Ticks> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let mut fields = line.split_whitespace().map(|field| field.parse().unwrap_or(0));
    let mut next = || fields.next().unwrap_or(0);
    let (user, nice, system, idle, iowait, irq, softirq, steal) =
        (next(), next(), next(), next(), next(), next(), next(), next());
    Some(Ticks { busy: user + nice + system + irq + softirq, idle: idle + iowait, steal })
}

/// CPU time of this process and of the children that it has waited for.
fn own_cpu() -> Duration {
    [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN].into_iter().map(cpu_of).sum()
}

fn cpu_of(who: i32) -> Duration {
    let usage = usage_of(who);
    duration(usage.ru_utime) + duration(usage.ru_stime)
}

/// User and system time of the children that were waited for, and of those that they waited for.
#[must_use]
pub fn cpu_of_children() -> (Duration, Duration) {
    let usage = usage_of(libc::RUSAGE_CHILDREN);
    (duration(usage.ru_utime), duration(usage.ru_stime))
}

fn duration(time: libc::timeval) -> Duration {
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_usec.unsigned_abs() as u32 * 1000)
}

fn usage_of(who: i32) -> libc::rusage {
    // SAFETY: `rusage` is plain integers; all zero is a value of it.
    let mut usage = unsafe { std::mem::zeroed() };
    // SAFETY: a live local of the right type; it stays zero if `who` were unknown.
    unsafe { libc::getrusage(who, &raw mut usage) };
    usage
}

/// Our own largest resident set, in bytes. The kernel counts it for each child too, since a child starts as a
/// copy of us: peak memory below this cannot be seen.
#[must_use]
pub fn own_peak_bytes() -> u64 {
    // `ru_maxrss` is no help: it is also that of the parent process, before it became us.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    peak(&status).unwrap_or_else(|| usage_of(libc::RUSAGE_SELF).ru_maxrss.unsigned_abs() * 1024)
}

/// `VmHWM`, in bytes.
fn peak(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

fn ticks_per_second() -> f64 {
    rustix::param::clock_ticks_per_second() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_line() {
        let ticks = parse("cpu  10 1 5 100 7 2 3 4 0 0\ncpu0 1 2 3\n").unwrap();
        assert_eq!(ticks, Ticks { busy: 21, idle: 107, steal: 4 });
        assert_eq!(parse(""), None);
        assert_eq!(parse("cpu  1 1 1 1").unwrap().steal, 0);
    }

    #[test]
    fn the_peak() {
        assert_eq!(peak("VmPeak:\t 9 kB\nVmHWM:\t    12 kB\n"), Some(12 << 10));
        assert_eq!(peak(""), None);
        assert!(own_peak_bytes() > 0);
    }

    #[test]
    fn shares() {
        let before = Ticks { busy: 100, idle: 100, steal: 0 };
        let after = Ticks { busy: 150, idle: 140, steal: 10 };
        let seen = noise(before, after, 30.0);
        assert!((seen.steal - 0.1).abs() < 1e-12 && (seen.others - 0.2).abs() < 1e-12);
        assert_eq!(noise(before, after, 90.0).others, 0.0);
        assert_eq!(noise(before, before, 0.0), Noise::default());
    }
}
