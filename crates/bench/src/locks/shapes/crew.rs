//! Threads that start together, are measured for a while, and stop together.
//!
//! With more threads than CPUs, the last thread starts long after the first, and whoever holds the stopwatch may be late
//! too. So there are phases, and only operations of the middle ones count:
//!
//! ```text
//! barrier | warm up | counted: this time, these operations, no clock | timed: each wait | over
//! ```
//!
//! Reading a clock takes as long as a lock. So nobody reads one while operations are counted; waits are timed in a
//! phase of their own, equally long.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::Job;
use super::watch::{Nobody, Stopwatch, Waits, Watch};
use crate::locks::counters::{Counters, Counts};

const WARM_UP: u8 = 0;
const COUNTED: u8 = 1;
const TIMED: u8 = 2;
const OVER: u8 = 3;

/// The warm-up lasts this fraction of the counted time.
const WARM_UP_SHARE: u32 = 4;

/// The current phase, on cache lines of its own: it is read all the time and written three times.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Phase(AtomicU8);

impl Phase {
    /// Whether it is time to stop.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed) == OVER
    }

    #[inline]
    fn is_counted(&self) -> bool {
        self.0.load(Ordering::Relaxed) == COUNTED
    }

    #[inline]
    pub(super) fn is_untimed(&self) -> bool {
        self.0.load(Ordering::Relaxed) < TIMED
    }
}

/// What one thread does again and again.
pub(super) trait Operation {
    /// Does it once, and tells `watch` when it starts to wait and when it has got the lock. False: nothing was done,
    /// since it is over.
    fn run(&mut self, watch: &mut impl Watch) -> bool;

    /// Is called once, when it is over.
    fn end(&mut self) {}
}

/// What one thread did.
#[derive(Debug, Default)]
pub(super) struct Share {
    /// All operations: what the result is checked against.
    pub(super) all: u64,
    /// Those of the counted phase.
    pub(super) counted: u64,
    /// How long it waited, in the timed phase.
    pub(super) waits: Option<Waits>,
}

impl Share {
    /// Counts an operation that has just ended.
    #[inline]
    pub(super) fn count(&mut self, phase: &Phase) {
        self.all += 1;
        self.counted += u64::from(phase.is_counted());
    }
}

/// Repeats `operation` until it is over.
pub(super) fn drive(phase: &Phase, operation: &mut impl Operation) -> Share {
    let mut share = Share::default();
    while phase.is_untimed() {
        if operation.run(&mut Nobody) {
            share.count(phase);
        }
    }
    if !phase.is_over() {
        let mut watch = Stopwatch::start();
        while !phase.is_over() {
            share.all += u64::from(operation.run(&mut watch));
        }
        share.waits = Some(watch.stop());
    }
    operation.end();
    share
}

/// What all threads did together.
#[derive(Debug)]
pub(super) struct Done<T> {
    /// What each thread returned.
    pub(super) shares: Vec<T>,
    /// The length of the counted phase.
    pub(super) elapsed: Duration,
    /// What the kernel counted meanwhile.
    pub(super) counts: Counts,
}

/// Runs `work(number, phase)` in the job's threads until the phase is over. All are alive before any starts.
///
/// The barrier is std's, so it is not among the locks under test, except for the target that is std.
pub(super) fn run<T: Send>(job: &Job, work: impl Fn(usize, &Phase) -> T + Sync) -> Done<T> {
    let phase = Phase(AtomicU8::new(WARM_UP));
    let barrier = Barrier::new(job.threads + 1);
    let counters = Counters::open(job.count_futex_calls);
    thread::scope(|scope| {
        let (work, phase, barrier) = (&work, &phase, &barrier);
        let spawn = |number| {
            scope.spawn(move || {
                barrier.wait();
                work(number, phase)
            })
        };
        let handles: Vec<_> = (0..job.threads).map(spawn).collect();
        barrier.wait();
        thread::sleep(job.duration / WARM_UP_SHARE);
        let running = counters.start();
        phase.0.store(COUNTED, Ordering::Relaxed);
        let start = Instant::now();
        thread::sleep(job.duration);
        phase.0.store(if job.time_waits { TIMED } else { OVER }, Ordering::Relaxed);
        let elapsed = start.elapsed();
        let counts = running.stop();
        if job.time_waits {
            thread::sleep(job.duration);
            phase.0.store(OVER, Ordering::Relaxed);
        }
        let results =
            handles.into_iter().map(|handle| handle.join().unwrap_or_else(|_| std::process::abort()));
        Done { shares: results.collect(), elapsed, counts }
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
