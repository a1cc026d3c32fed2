//! A critical and a non-critical section, on one mutex or on many.

use std::hint::black_box;
use std::thread;
use std::time::Duration;

use super::wait_times::Watch;
use super::work::{Exponential, Random};
use super::worker_pool::{self, Operation, Share};
use super::{Job, Mismatch, RunResult, expect};
use crate::locks::load::{MAX_LINES, Section};
use crate::locks::primitives::{BenchMutex, Guarded, MutexInData};

/// A cache line with two counters, which are equal unless another thread was inside as well.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
struct Line([u64; 2]);

type Lines = [Line; MAX_LINES];

/// Pairs of counters, and the lock that protects them.
trait Counted: Sync {
    fn new() -> Self;

    /// One section: counts in the first `lines` pairs, and works.
    fn count(&self, lines: usize, acquired: impl FnOnce(), work: impl FnOnce());

    /// The counters, when all threads are done.
    fn into_counters(self) -> impl Iterator<Item = [u64; 2]>;
}

/// On lines of their own.
impl<M: BenchMutex> Counted for Guarded<M, Lines> {
    fn new() -> Self {
        Self::new(Lines::default())
    }

    #[inline]
    fn count(&self, lines: usize, acquired: impl FnOnce(), work: impl FnOnce()) {
        let mut data = self.lock();
        acquired();
        for Line([first, second]) in black_box(&mut data[..lines]) {
            *first += 1;
            *second += 1;
        }
        work();
    }

    fn into_counters(self) -> impl Iterator<Item = [u64; 2]> {
        self.into_inner().into_iter().map(|Line(counters)| counters)
    }
}

/// One pair, around the lock.
impl<M: BenchMutex> Counted for MutexInData<M> {
    fn new() -> Self {
        Self::default()
    }

    #[inline]
    fn count(&self, _: usize, acquired: impl FnOnce(), work: impl FnOnce()) {
        self.with(acquired, work);
    }

    fn into_counters(self) -> impl Iterator<Item = [u64; 2]> {
        [self.into_inner()].into_iter()
    }
}

/// What one thread does.
struct Worker<'a, C> {
    section: &'a Section,
    locks: &'a [C],
    random: Random,
    exponential: Exponential,
    /// Iterations until it leaves for a while.
    until_leave: u32,
}

/// Iterations in a millisecond, about.
const STEPS_PER_MS: u32 = 500_000;
/// Iterations that a lock and its release take, about.
const STEPS_PER_LOCK: u32 = 25;

impl<C> Worker<'_, C> {
    /// Iterations of the next critical and non-critical section.
    #[inline]
    fn lengths(&mut self) -> (u32, u32) {
        let Section { inside, outside, exponential, .. } = *self.section;
        match exponential {
            false => (inside, outside),
            true => {
                let Self { exponential, random, .. } = self;
                (exponential.draw(inside, random), exponential.draw(outside, random))
            }
        }
    }

    /// Leaves for a while, if it is time.
    fn leave_sometimes(&mut self, steps: u32) {
        self.until_leave = self.until_leave.saturating_sub(steps + STEPS_PER_LOCK);
        if self.until_leave == 0 {
            thread::sleep(Duration::from_millis(self.section.leaves_ms.into()));
            self.until_leave = self.exponential.draw(STEPS_PER_MS * self.section.leaves_ms, &mut self.random);
        }
    }
}

impl<C: Counted> Operation for Worker<'_, C> {
    #[inline]
    fn run(&mut self, watch: &mut impl Watch) -> bool {
        let (inside, outside) = self.lengths();
        let lock = match self.locks {
            [lock] => lock,
            locks => &locks[self.random.next_u64() as usize % locks.len()],
        };
        watch.waiting();
        lock.count(self.section.lines, || watch.acquired(), || self.random.work(inside));
        self.random.work(outside);
        if self.section.leaves_ms > 0 {
            self.leave_sometimes(inside.saturating_add(outside));
        }
        true
    }
}

/// Every thread counts under the locks.
pub(super) fn run<M: BenchMutex>(section: &Section, job: &Job) -> Result<RunResult, Mismatch> {
    if section.beside {
        count::<MutexInData<M>>(section, job)
    } else {
        count::<Guarded<M, Lines>>(section, job)
    }
}

fn count<C: Counted>(section: &Section, job: &Job) -> Result<RunResult, Mismatch> {
    let locks: Vec<_> = (0..section.locks).map(|_| C::new()).collect();
    let done = worker_pool::run(job, |number, phase| {
        let (random, exponential) = (Random::new(number), Exponential::new());
        let mut worker = Worker { section, locks: &locks, random, exponential, until_leave: STEPS_PER_MS };
        worker_pool::drive(phase, &mut worker)
    })?;
    let mut counters = [[0; 2]; MAX_LINES];
    for lock in locks {
        for (sum, counter) in counters.iter_mut().zip(lock.into_counters()) {
            *sum = [sum[0] + counter[0], sum[1] + counter[1]];
        }
    }
    let all = done.shares.iter().map(|share: &Share| share.all).sum();
    for [first, second] in counters.into_iter().take(section.lines) {
        expect("the counter", first, all)?;
        expect("the second counter", second, all)?;
    }
    Ok(RunResult::new(done))
}
