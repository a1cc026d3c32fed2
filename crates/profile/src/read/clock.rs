//! Ticks in ns.

use std::sync::atomic::Ordering::Acquire;
use std::{fs, path::Path};

use rustix::time::{ClockId, clock_gettime};
use spinpark_recorder::format::{self, Header};

use crate::live_process;

/// Baselines that are shorter measure a tick no better than the recorder could at its start, ns.
const SHORT: u64 = 20_000_000;
/// The clock of the day may be set meanwhile, ns; time namespaces differ by more.
const STEP: i128 = 2_000_000_000;

/// The monotonic clock of a recording, now, ns. In another time namespace (`unshare --time`, a container that
/// was restored) it is not this process' own. The clock of the day is the same in all of them.
pub(super) fn monotonic_of(header: &Header) -> u64 {
    let now = |clock| {
        let now = clock_gettime(clock);
        i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec)
    };
    let (here, day) = (now(ClockId::Monotonic), now(ClockId::Realtime));
    let there = i128::from(header.start_monotonic) - i128::from(header.start_realtime) + day;
    let is_other = (there - here).abs() > STEP && !is_in_our_namespace(header.pid);
    u64::try_from(if is_other { there } else { here }).unwrap_or(0)
}

/// Whether a process is in the time namespace of this one; not if that cannot be read.
fn is_in_our_namespace(pid: u32) -> bool {
    let of = |process: &Path| fs::read_link(process.join("ns/time")).ok();
    let theirs = of(&live_process::directory(pid));
    theirs.is_some() && theirs == of(Path::new("/proc/self"))
}

/// What a tick of a recording is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clock {
    /// ns.
    tick: f64,
    /// Ticks at the start.
    start: u64,
    /// ns from the start to the latest pair of clocks.
    pair: u64,
}

impl Clock {
    /// By the longest baseline that there is: from the start to the latest pair of clocks; or else as the
    /// recorder measured it at the start. None if the recording has neither.
    #[must_use]
    pub fn new(header: &Header) -> Option<Self> {
        let last_monotonic = header.last_monotonic.load(Acquire);
        let ns = last_monotonic.saturating_sub(header.start_monotonic);
        let ticks = header.last.load(Acquire).saturating_sub(header.start);
        let noted = header.tick as f64 / (1_u64 << 32) as f64;
        let measured = ns as f64 / ticks as f64;
        let tick = if header.clock == format::Clock::Monotonic as u32 {
            1.0
        } else if ns > 0 && ticks > 0 && (ns >= SHORT || noted == 0.0) {
            measured
        } else {
            noted
        };
        (tick > 0.0 && tick.is_finite()).then_some(Self { tick, start: header.start, pair: ns })
    }

    /// A number of ticks, in ns.
    #[must_use]
    pub fn ns(&self, ticks: u64) -> u64 {
        (ticks as f64 * self.tick).round() as u64
    }

    /// The same, of what is not a whole number.
    #[must_use]
    pub fn ns_of(&self, ticks: f64) -> f64 {
        ticks * self.tick
    }

    /// The tick at a point in time, ns after the start.
    #[must_use]
    pub fn tick_at(&self, ns: u64) -> u64 {
        self.start.saturating_add((ns as f64 / self.tick).round() as u64)
    }

    /// A point in time, ns after the start.
    #[must_use]
    pub fn since_start(&self, ticks: u64) -> u64 {
        self.ns(ticks.saturating_sub(self.start))
    }

    /// When the recorder last read both clocks, ns after the start.
    #[must_use]
    pub fn latest(&self) -> u64 {
        self.pair
    }
}

impl Clock {
    /// For recordings without a clock: ticks as they are.
    pub(super) const TICKS: Self = Self { tick: 1.0, start: 0, pair: 0 };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A recording that begins now, by a clock that is ahead by a day.
    #[test]
    fn clocks_of_other_namespaces_are_theirs() {
        const DAY: u64 = 86_400_000_000_000;
        let now = |clock| {
            let now = clock_gettime(clock);
            now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
        };
        // SAFETY: zeros are a value of it: integers and atomics.
        let mut header: Header = unsafe { std::mem::zeroed() };
        header.start_realtime = now(ClockId::Realtime);
        header.start_monotonic = now(ClockId::Monotonic) + DAY;
        // No process has this number.
        header.pid = i32::MAX.unsigned_abs();
        assert!(monotonic_of(&header).saturating_sub(header.start_monotonic) < DAY / 2);
        assert!(monotonic_of(&header) > now(ClockId::Monotonic) + DAY / 2);
        // The clock of the day was set meanwhile.
        header.pid = std::process::id();
        assert!(monotonic_of(&header) <= now(ClockId::Monotonic));
    }
}
