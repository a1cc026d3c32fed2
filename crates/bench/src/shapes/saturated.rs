//! A mutex that everybody wants all the time.

use std::hint::black_box;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::crew::{self, Random, Tally};
use super::{Fairness, Outcome, Shape, Wrong, expect, jain};
use crate::pthread::{Kind, Mutex, Protected};

/// Steps of a private generator between two critical sections: about as long as the section itself.
const OUTSIDE: usize = 16;

/// All threads increment a shared counter in a short critical section, with a little work of their own between.
#[derive(Debug)]
pub(super) struct Saturated;

/// What a thread did.
#[derive(Default)]
struct Share {
    tally: Tally,
    longest_gap_ns: u64,
}

impl Shape for Saturated {
    fn name(&self) -> &'static str {
        "saturated"
    }

    fn about(&self) -> &'static str {
        "one mutex, a short critical section, a little work outside; threads never pause"
    }

    fn threads(&self) -> &'static [usize] {
        &[2, 4, 16, 64, 256]
    }

    fn run(&self, threads: usize, duration: Duration) -> Result<Outcome, Wrong> {
        let mutex = Mutex::new(Kind::Normal);
        let counter = Protected::new([0u64; 2]);
        let (shares, elapsed) = crew::run(threads, duration, |number, phase| {
            let mut random = Random::new(number);
            let mut share = Share::default();
            let mut last = coarse_ns();
            while !phase.is_over() {
                mutex.lock();
                // SAFETY: the mutex is held, and everybody touches the counter under it.
                unsafe { touch(counter.get()) };
                mutex.unlock();
                share.tally.count(phase);
                for _ in 0..OUTSIDE {
                    black_box(random.next());
                }
                let now = coarse_ns();
                share.longest_gap_ns = share.longest_gap_ns.max(now - last);
                last = now;
            }
            // A thread that starved until the end had a gap too.
            share.longest_gap_ns = share.longest_gap_ns.max(coarse_ns() - last);
            share
        });
        let each: Vec<u64> = shares.iter().map(|share| share.tally.measured).collect();
        let all = shares.iter().map(|share| share.tally.all).sum();
        let [first, second] = counter.into_inner();
        expect("the counter", first, all)?;
        expect("the second counter", second, all)?;
        let longest = shares.iter().map(|share| share.longest_gap_ns).max().unwrap_or_default();
        let fairness = Fairness { longest_gap: Duration::from_nanos(longest), jain: jain(&each) };
        Ok(Outcome { operations: each.iter().sum(), elapsed, fairness: Some(fairness) })
    }
}

/// Increments both counters, through memory.
///
/// # Safety
///
/// The caller has exclusive access.
#[inline]
unsafe fn touch(counters: *mut [u64; 2]) {
    let counters = black_box(counters);
    // SAFETY: exclusive access, by this function's contract.
    let [first, second] = unsafe { &mut *counters };
    *first += 1;
    *second += 1;
}

/// The time of the last kernel tick: a few nanoseconds to read, where the exact clock takes as long as a lock.
#[inline]
fn coarse_ns() -> u64 {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}
