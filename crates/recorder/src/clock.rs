//! Time in ticks: the CPU's counter if it ticks evenly, else the monotonic clock.
//!
//! The length of a tick is measured once, at the start, against the monotonic clock. Readers of the file
//! compute it more exactly from the pair of clocks that the recorder writes now and then.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use spinpark_linux::Linux;
use spinpark_platform::Clocks;

use crate::arch::{counter, counter_is_even};
use crate::format;

/// For a wait or a hold of this many ns, reading another thread's memory is cheap: a thread slept.
pub(super) const LONG: u64 = 20_000;

/// How long the length of a tick is measured, ns.
const MEASURED_NS: u64 = 100_000;

/// One, as the length of a tick is written.
const ONE: u64 = 1 << 32;

/// The clock of a recording.
#[derive(Debug)]
pub(super) struct Ticks {
    is_tsc: AtomicBool,
    /// Nanoseconds per tick, times 2^32, less that of the monotonic clock: all zero is that clock, and takes
    /// no space in a library's file.
    tick: AtomicU64,
    /// The cost of reading the clock, ticks.
    reading: AtomicU64,
}

impl Ticks {
    /// The monotonic clock.
    pub(super) const fn new() -> Self {
        Self { is_tsc: AtomicBool::new(false), tick: AtomicU64::new(0), reading: AtomicU64::new(0) }
    }

    /// Chooses the clock, and measures it.
    pub(super) fn start(&self) {
        spinpark_linux::start_clock();
        if !counter_is_even() {
            return;
        }
        let (from, started) = pair();
        let (mut to, mut now) = pair();
        while now < started + MEASURED_NS {
            core::hint::spin_loop();
            (to, now) = pair();
        }
        let ticks = u128::from(to.wrapping_sub(from).max(1));
        let tick = (u128::from(now - started) << 32) / ticks;
        self.tick.store(u64::try_from(tick).unwrap_or(ONE).wrapping_sub(ONE), Relaxed);
        self.is_tsc.store(true, Relaxed);
        self.reading.store(reading(), Relaxed);
    }

    /// The cost of reading the clock, ticks.
    pub(super) fn reading(&self) -> u64 {
        self.reading.load(Relaxed)
    }

    /// Which clock it is.
    pub(super) fn kind(&self) -> format::Clock {
        if self.is_tsc.load(Relaxed) {
            format::Clock::Tsc
        } else {
            format::Clock::Monotonic
        }
    }

    /// Nanoseconds per tick, times 2^32.
    pub(super) fn tick(&self) -> u64 {
        self.tick.load(Relaxed).wrapping_add(ONE)
    }

    /// Now, ticks.
    #[inline(always)]
    pub(super) fn now(&self) -> u64 {
        if self.is_tsc.load(Relaxed) {
            counter()
        } else {
            monotonic()
        }
    }

    /// The nanoseconds in `ticks`.
    #[inline(always)]
    pub(super) fn ns(&self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.tick())) >> 32) as u64
    }

    /// The ticks in `ns` nanoseconds.
    pub(super) fn ticks(&self, ns: u64) -> u64 {
        ((u128::from(ns) << 32) / u128::from(self.tick().max(1))) as u64
    }
}

impl Default for Ticks {
    fn default() -> Self {
        Self::new()
    }
}

/// The monotonic clock, ns.
#[must_use]
pub fn monotonic() -> u64 {
    Linux::now(spinpark_platform::Clock::Monotonic)
}

/// What reading the counter takes, ticks. A mean: where the counter goes up by several ticks at once (25 on a
/// virtual CPU of AMD), two readings are alike, or far apart. The shortest of four: none with an interrupt.
fn reading() -> u64 {
    const READINGS: u64 = 32;
    let one = || {
        let first = counter();
        (1..READINGS).for_each(|_| {
            counter();
        });
        counter().wrapping_sub(first) / READINGS
    };
    [one(), one(), one(), one()].into_iter().min().unwrap_or_default()
}

/// Both clocks at nearly the same time: the shortest of three readings.
fn pair() -> (u64, u64) {
    let read = || {
        let before = counter();
        let time = monotonic();
        (counter().wrapping_sub(before), before, time)
    };
    let (took, before, time) = [read(), read(), read()].into_iter().min().unwrap_or_default();
    (before.wrapping_add(took / 2), time)
}
