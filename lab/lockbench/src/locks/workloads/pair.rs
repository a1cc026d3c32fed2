//! Lock and unlock, uncontended: the price that every program pays.
//!
//! No thread waits here, so the thread's CPU time is the cost, and the other programs on the machine are left
//! out of it.

use std::hint::black_box;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use super::{Job, Mismatch, RunResult, expect, worker_pool};
use crate::locks::counters::Counters;
use crate::locks::load::{Locked, Pair};
use crate::locks::primitives::{BenchMutex, BenchRwLock, Guarded, Shared};

/// Pairs between two readings of the clock, which costs as much as a pair.
const BATCH: u64 = 1000;

/// A mutex of any kind.
pub(super) fn mutex<M: BenchMutex>(pair: &Pair, job: &Job) -> Result<RunResult, Mismatch> {
    let counter = Guarded::<M, u64>::new(0);
    // Not used: the data has one reference at a time.
    let held = pair.held.then(|| counter.lock());
    let outcome = measure(pair, job, || *black_box(&mut *counter.lock()) += 1)?;
    drop(held);
    outcome.checked(counter.into_inner())
}

/// A read-write lock.
pub(super) fn rwlock<R: BenchRwLock>(pair: &Pair, job: &Job) -> Result<RunResult, Mismatch> {
    if pair.lock == Locked::Read {
        // No thread may write while reading; so the result is what was read, added up.
        let one = Shared::<R, u64>::new(1);
        let mut sum = 0;
        let outcome = measure(pair, job, || sum += one.read(|| (), |one| *black_box(one)))?;
        return outcome.checked(sum);
    }
    let counter = Shared::<R, u64>::new(0);
    let outcome = measure(pair, job, || counter.write(|| (), |counter| *black_box(counter) += 1))?;
    outcome.checked(counter.into_inner())
}

/// An outcome whose result was not looked at.
struct Unchecked(RunResult);

impl Unchecked {
    fn checked(self, found: u64) -> Result<RunResult, Mismatch> {
        expect("the counter", found, self.0.operations)?;
        Ok(self.0)
    }
}

#[inline]
fn measure(pair: &Pair, job: &Job, operation: impl FnMut()) -> Result<Unchecked, Mismatch> {
    match pair.threaded {
        true => Ok(worker_pool::with_a_sleeper(|| repeat(job, operation))?),
        false => Ok(repeat(job, operation)),
    }
}

#[inline]
fn repeat(job: &Job, mut operation: impl FnMut()) -> Unchecked {
    let mut operations = 0;
    let counting = Counters::open(job.count_futex_calls).start();
    let start = Instant::now();
    let cpu_start = cpu_time();
    // Once at least, however busy the machine is.
    loop {
        for _ in 0..BATCH {
            operation();
        }
        operations += BATCH;
        if start.elapsed() >= job.duration {
            break;
        }
    }
    let elapsed = cpu_time() - cpu_start;
    let mut counts = counting.stop();
    // The thread's own clock is finer than the process' account.
    counts.cpu = elapsed;
    Unchecked(RunResult { operations, elapsed, counts, shares: vec![operations], waits: None, writes: None })
}

/// CPU time of this thread.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
