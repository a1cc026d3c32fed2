//! Ticks in ns.

use std::sync::atomic::Ordering::Acquire;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use spinpark_recorder::format::{self, Header};

/// Baselines that are shorter measure a tick no better than the recorder could at its start, ns.
const SHORT: u64 = 20_000_000;

/// The monotonic clock.
pub(super) fn monotonic() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
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

    /// When the recorder last looked at both clocks, ns after the start.
    #[must_use]
    pub fn latest(&self) -> u64 {
        self.pair
    }
}

impl Clock {
    /// For recordings without a clock: ticks as they are.
    pub(super) const TICKS: Self = Self { tick: 1.0, start: 0, pair: 0 };
}
