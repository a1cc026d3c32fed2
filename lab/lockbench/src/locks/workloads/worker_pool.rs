//! Threads that start together, are measured for a while, and stop together.
//!
//! With more threads than CPUs, the last thread starts long after the first, and the thread that keeps the
//! time may be late too. So there are phases, and only operations that end in the middle one count:
//!
//! ```text
//! gate | warm up | counted: this time, these operations | over
//! ```
//!
//! Reading a clock takes as long as a lock. So a load is run twice, on fresh locks and threads: once without
//! any clock, to count operations; once with a clock on both sides of each wait. In the second one, every
//! wait is timed from its beginning, also if that is before the counted phase, and to its end, also if that
//! is after it: a thread that starves is not overlooked.

use std::thread;
use std::time::{Duration, Instant};

use spinpark_measure::process::start_gate::{self, NoThread, StartGate};

use super::Job;
use super::affinity;
use super::wait_times::{COUNTED, OVER, Phase, Stopwatch, Untimed, Waits, Watch};
use crate::locks::counters::{Counters, Counts};
use crate::locks::load::Placement;

/// The warm-up lasts this fraction of the counted time.
const WARM_UP_SHARE: u32 = 4;

/// What one thread does again and again.
pub(super) trait Operation {
    /// Does it once, and tells `watch` when it starts to wait and when it has got the lock. False: nothing
    /// was done, since it is over.
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
    /// How long it waited, if that was timed.
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
    if phase.timed {
        let mut watch = Stopwatch::start(phase);
        repeat(phase, operation, &mut watch, &mut share);
        share.waits = Some(watch.stop());
    } else {
        repeat(phase, operation, &mut Untimed, &mut share);
    }
    operation.end();
    share
}

#[inline]
fn repeat(phase: &Phase, operation: &mut impl Operation, watch: &mut impl Watch, share: &mut Share) {
    while !phase.is_over() {
        if operation.run(watch) {
            share.count(phase);
        }
    }
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
/// The gate is made of std's locks, so it is not among the locks under test, except for the implementation
/// that is std.
///
/// # Errors
///
/// If a thread cannot be created.
pub(super) fn run<T: Send>(job: &Job, work: impl Fn(usize, &Phase) -> T + Sync) -> Result<Done<T>, NoThread> {
    let phase = Phase::new(job.time_waits);
    let gate = StartGate::default();
    let counters = Counters::open(job.count_futex_calls);
    thread::scope(|scope| {
        let (work, phase, gate) = (&work, &phase, &gate);
        let is_bound = job.cpus == Placement::Each;
        let work = move |number| {
            if is_bound {
                affinity::on(number);
            }
            gate.pass().then(|| work(number, phase))
        };
        let handles = start_gate::start(scope, gate, job.threads, work)?;
        gate.wait_for(job.threads);
        gate.open();
        thread::sleep(job.duration / WARM_UP_SHARE);
        let running = counters.start();
        phase.set(COUNTED);
        let start = Instant::now();
        thread::sleep(job.duration);
        phase.set(OVER);
        let elapsed = start.elapsed();
        let counts = running.stop();
        let results =
            handles.into_iter().filter_map(|handle| handle.join().unwrap_or_else(|_| std::process::abort()));
        Ok(Done { shares: results.collect(), elapsed, counts })
    })
}

/// Runs `body` while a second thread is alive and asleep: glibc and we both treat a process with one thread
/// differently.
///
/// # Errors
///
/// If it cannot be created.
pub(super) fn with_a_sleeper<T>(body: impl FnOnce() -> T) -> Result<T, NoThread> {
    thread::scope(|scope| {
        let sleeper = start_gate::start_one(scope, thread::park)?;
        let result = body();
        // A parked thread may wake for no reason and end early; that is harmless at this point and rare
        // before.
        sleeper.thread().unpark();
        Ok(result)
    })
}
