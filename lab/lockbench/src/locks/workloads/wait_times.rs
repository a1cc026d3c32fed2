//! The phase of a run (warming up, counted, over), and how long a thread waits for each of its operations.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

use hdrhistogram::Histogram;

const WARM_UP: u8 = 0;
pub(super) const COUNTED: u8 = 1;
pub(super) const OVER: u8 = 2;

/// The current phase, on cache lines of its own: it is read all the time and written twice.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Phase {
    number: AtomicU8,
    /// Whether waits are timed.
    pub(super) timed: bool,
}

impl Phase {
    pub(super) fn new(timed: bool) -> Self {
        Self { number: AtomicU8::new(WARM_UP), timed }
    }

    /// One that has ended, for tests.
    #[cfg(test)]
    pub(super) fn over() -> Self {
        Self { number: AtomicU8::new(OVER), timed: true }
    }

    pub(super) fn set(&self, number: u8) {
        self.number.store(number, Ordering::Relaxed);
    }

    /// Whether it is time to stop.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.number.load(Ordering::Relaxed) == OVER
    }

    /// Whether what ends now counts as an operation.
    #[inline]
    pub(super) fn is_counted(&self) -> bool {
        self.number.load(Ordering::Relaxed) == COUNTED
    }

    /// Whether a wait that ends now counts: also after the end, or those of starving threads would not.
    #[inline]
    pub(super) fn is_warm(&self) -> bool {
        self.number.load(Ordering::Relaxed) != WARM_UP
    }
}

/// The longest wait that the histogram can tell from a longer one.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Two significant digits: a bucket is 1 % wide.
const DIGITS: u8 = 2;

/// Hears when a thread starts to wait, and when it has got what it waited for.
pub(super) trait Watch {
    fn waiting(&mut self);
    /// The same, for a lock that is wanted for writing.
    fn waiting_to_write(&mut self) {
        self.waiting();
    }
    fn acquired(&mut self);
}

/// Does not listen, and costs nothing.
pub(super) struct Untimed;

impl Watch for Untimed {
    #[inline]
    fn waiting(&mut self) {}
    #[inline]
    fn acquired(&mut self) {}
}

/// Reads the clock at both times. The second reading is inside the critical section, and makes it some 25 ns
/// longer.
pub(super) struct Stopwatch<'a> {
    phase: &'a Phase,
    waiting_since: Instant,
    is_write: bool,
    last_acquired: Instant,
    waits: Waits,
}

/// What a [`Stopwatch`] saw.
#[derive(Debug)]
pub(super) struct Waits {
    /// Waits, in nanoseconds.
    pub(super) histogram: Histogram<u64>,
    /// The longest of them, exactly.
    pub(super) longest_ns: u64,
    /// The longest wait of a thread that wants to write, where some only read.
    pub(super) longest_write_ns: Option<u64>,
    /// Those of such threads, in nanoseconds.
    pub(super) writes: Histogram<u64>,
    /// The longest time from one acquisition to the next, in nanoseconds.
    pub(super) longest_gap_ns: u64,
}

impl Waits {
    /// No waits.
    pub(super) fn new() -> Self {
        // Cannot fail: the bounds are constants of which the histogram's documentation approves.
        let histogram =
            || Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).unwrap_or_else(|_| std::process::abort());
        let (histogram, writes) = (histogram(), histogram());
        Self { histogram, longest_ns: 0, longest_write_ns: None, writes, longest_gap_ns: 0 }
    }

    /// Adds those of another thread.
    pub(super) fn add(&mut self, other: &Self) {
        // Cannot fail: both have the same bounds.
        let _ = self.histogram.add(&other.histogram).and_then(|()| self.writes.add(&other.writes));
        self.longest_ns = self.longest_ns.max(other.longest_ns);
        self.longest_write_ns = self.longest_write_ns.max(other.longest_write_ns);
        self.longest_gap_ns = self.longest_gap_ns.max(other.longest_gap_ns);
    }
}

impl<'a> Stopwatch<'a> {
    /// Starts it. Waits and gaps count if they end after the warm-up.
    pub(super) fn start(phase: &'a Phase) -> Self {
        let now = Instant::now();
        let waits = Waits::new();
        Self { phase, waiting_since: now, is_write: false, last_acquired: now, waits }
    }

    /// What it saw. A thread that went without the lock until the end had a gap too.
    pub(super) fn stop(mut self) -> Waits {
        let gap = nanoseconds(self.last_acquired, Instant::now());
        self.waits.longest_gap_ns = self.waits.longest_gap_ns.max(gap);
        self.waits
    }
}

impl Watch for Stopwatch<'_> {
    #[inline]
    fn waiting(&mut self) {
        self.is_write = false;
        self.waiting_since = Instant::now();
    }

    #[inline]
    fn waiting_to_write(&mut self) {
        self.is_write = true;
        self.waiting_since = Instant::now();
    }

    #[inline]
    fn acquired(&mut self) {
        let now = Instant::now();
        if self.phase.is_warm() {
            let wait = nanoseconds(self.waiting_since, now);
            let gap = nanoseconds(self.last_acquired, now);
            self.waits.histogram.saturating_record(wait);
            self.waits.longest_ns = self.waits.longest_ns.max(wait);
            if self.is_write {
                self.waits.longest_write_ns = self.waits.longest_write_ns.max(Some(wait));
                self.waits.writes.saturating_record(wait);
            }
            self.waits.longest_gap_ns = self.waits.longest_gap_ns.max(gap);
        }
        self.last_acquired = now;
    }
}

#[inline]
fn nanoseconds(from: Instant, to: Instant) -> u64 {
    u64::try_from(to.saturating_duration_since(from).as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wait_is_recorded() {
        let phase = Phase::over();
        let mut watch = Stopwatch::start(&phase);
        for _ in 0..10 {
            watch.waiting();
            watch.acquired();
        }
        let mut waits = watch.stop();
        assert_eq!(waits.histogram.len(), 10);
        assert!(waits.longest_gap_ns >= waits.longest_ns);
        let mut others = Waits::new();
        others.histogram.saturating_record(7_000_000);
        others.longest_ns = 7_000_000_000;
        waits.add(&others);
        assert_eq!(waits.histogram.len(), 11);
        assert_eq!(waits.longest_ns, 7_000_000_000);
    }
}
