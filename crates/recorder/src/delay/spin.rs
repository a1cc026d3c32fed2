//! A delay: a loop that takes a known time, without a system call.
//!
//! The time stamp counter ends it, if it ticks evenly; else a number of iterations, whose length is measured once.
//! No clock of the program's counts: it may be a faked one. By the counter, time without a CPU is a part of the
//! delay, as it would be a part of a longer section's.

use core::hint::{black_box, spin_loop};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::clock::{monotonic, Ticks};
use crate::format::Clock;

/// The last part of a delay is spun without `pause`, which may take 50 ns, ns.
const FINE: u64 = 2_000;
/// Iterations that are measured.
const MEASURED: u64 = 100_000;

/// The length of a delay. All zero is none.
#[derive(Debug, Default)]
pub(super) struct Spin {
    /// Ticks; or iterations.
    length: AtomicU64,
    /// See [`FINE`], ticks.
    fine: AtomicU64,
}

impl Spin {
    pub(super) const fn new() -> Self {
        Self { length: AtomicU64::new(0), fine: AtomicU64::new(0) }
    }

    /// Sets its length.
    pub(super) fn set(&self, ns: u64, ticks: &Ticks) {
        if ns == 0 {
            return;
        }
        let length = match ticks.kind() {
            // To read the counter takes time, too.
            Clock::Tsc => ticks.ticks(ns).saturating_sub(ticks.reading()),
            Clock::Monotonic => {
                let start = monotonic();
                iterate(MEASURED);
                let took = monotonic().saturating_sub(start).max(1);
                (u128::from(ns) * u128::from(MEASURED) / u128::from(took)) as u64
            }
        };
        self.length.store(length.max(1), Relaxed);
        self.fine.store(ticks.ticks(FINE), Relaxed);
    }

    /// Whether it has a length.
    #[inline(always)]
    pub(super) fn is_long(&self) -> bool {
        self.length.load(Relaxed) != 0
    }

    /// Takes its time.
    pub(super) fn take(&self, ticks: &Ticks) {
        let length = self.length.load(Relaxed);
        if ticks.kind() != Clock::Tsc {
            return iterate(length);
        }
        let coarse = length.saturating_sub(self.fine.load(Relaxed));
        let start = ticks.now();
        loop {
            // A counter that goes back, as between the sockets of some machines, ends no delay early.
            let passed = ticks.now().saturating_sub(start);
            if passed >= length {
                return;
            }
            if passed < coarse {
                spin_loop();
            }
        }
    }
}

fn iterate(times: u64) {
    for number in 0..times {
        black_box(number);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    #[test]
    fn a_delay_is_not_shorter_than_it_should_be() {
        let ticks = Ticks::new();
        ticks.start();
        for ns in [0, 300, 50_000] {
            let spin = Spin::new();
            spin.set(ns, &ticks);
            assert_eq!(spin.is_long(), ns > 0);
            let start = monotonic();
            (0..20).for_each(|_| {
                if spin.is_long() {
                    spin.take(&ticks);
                }
            });
            let took = monotonic() - start;
            // Iterations are measured on a machine that may have been slower then.
            assert!(took >= 20 * ns / 2, "{took} ns");
        }
    }
}
