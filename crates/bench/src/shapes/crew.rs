//! Threads that start together, are measured for a while, and stop together.
//!
//! With more threads than CPUs, the last thread starts long after the first, and whoever holds the stopwatch may be late
//! too. So there are three phases, and only operations of the middle one count:
//!
//! ```text
//! barrier | warm up | measured: this time, these operations | over
//! ```

use std::sync::Barrier;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const WARM_UP: u8 = 0;
const MEASURED: u8 = 1;
const OVER: u8 = 2;

/// The warm-up lasts this fraction of the measured time.
const WARM_UP_SHARE: u32 = 4;

/// The current phase, on cache lines of its own: it is read all the time and written twice.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Phase(AtomicU8);

impl Phase {
    /// Whether it is time to stop.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed) == OVER
    }
}

/// Operations of one thread.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tally {
    /// All of them: what the result is checked against.
    pub(super) all: u64,
    /// Those that count.
    pub(super) measured: u64,
}

impl Tally {
    /// Counts an operation that has just ended.
    #[inline]
    pub(super) fn count(&mut self, phase: &Phase) {
        self.all += 1;
        self.measured += u64::from(phase.0.load(Ordering::Relaxed) == MEASURED);
    }
}

/// Runs `work(number, phase)` in `threads` threads until the phase is over. All are alive before any starts. Returns
/// what each one returned, and the length of the measured phase, about `duration`.
///
/// The barrier is std's, so it is not among the locks under test.
pub(super) fn run<T: Send>(
    threads: usize,
    duration: Duration,
    work: impl Fn(usize, &Phase) -> T + Sync,
) -> (Vec<T>, Duration) {
    let phase = Phase(AtomicU8::new(WARM_UP));
    let barrier = Barrier::new(threads + 1);
    thread::scope(|scope| {
        let (work, phase, barrier) = (&work, &phase, &barrier);
        let spawn = |number| {
            scope.spawn(move || {
                barrier.wait();
                work(number, phase)
            })
        };
        let handles: Vec<_> = (0..threads).map(spawn).collect();
        barrier.wait();
        thread::sleep(duration / WARM_UP_SHARE);
        phase.0.store(MEASURED, Ordering::Relaxed);
        let start = Instant::now();
        thread::sleep(duration);
        phase.0.store(OVER, Ordering::Relaxed);
        let elapsed = start.elapsed();
        let results =
            handles.into_iter().map(|handle| handle.join().unwrap_or_else(|_| std::process::abort()));
        (results.collect(), elapsed)
    })
}

/// Runs `body` while a second thread is alive and asleep: glibc and we both treat a process with one thread differently.
pub(super) fn beside_a_sleeper<T>(body: impl FnOnce() -> T) -> T {
    thread::scope(|scope| {
        let sleeper = scope.spawn(thread::park);
        let result = body();
        // A parked thread may wake for no reason and end early; that is harmless at this point and rare before.
        sleeper.thread().unpark();
        result
    })
}

/// A small pseudo-random generator (xorshift64): a few instructions that nobody can predict and nobody shares.
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    /// A different sequence for every number.
    pub(super) fn new(number: usize) -> Self {
        Self((number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// The next value.
    #[inline]
    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}
