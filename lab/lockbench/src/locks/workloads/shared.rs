//! A read-write lock, more or less often written.

use std::hint::black_box;

use super::wait_times::Watch;
use super::work::Random;
use super::worker_pool::{self, Operation, Share};
use super::{Job, Mismatch, RunResult, expect};
use crate::locks::load;
use crate::locks::primitives::{BenchRwLock, Shared};

/// What one thread does.
struct Worker<'a, R: BenchRwLock> {
    load: &'a load::Shared,
    /// Whether each of its operations is a write, or none; else by chance.
    only_writes: Option<bool>,
    /// Always equal, unless a reader gets between the two writes.
    pair: &'a Shared<R, [u64; 2]>,
    random: Random,
    writes: u64,
    torn: u64,
}

impl<R: BenchRwLock> Operation for Worker<'_, R> {
    #[inline]
    fn run(&mut self, watch: &mut impl Watch) -> bool {
        let Self { load, only_writes, pair, random, writes, torn } = self;
        let is_write =
            only_writes.unwrap_or_else(|| random.next_u64() % 1000 < u64::from(load.per_thousand()));
        if is_write {
            *writes += 1;
            watch.waiting_to_write();
            pair.write(
                || watch.acquired(),
                |pair| {
                    let [first, second] = black_box(pair);
                    *first += 1;
                    *second += 1;
                    random.work(load.inside);
                },
            );
        } else {
            watch.waiting();
            let is_torn = pair.read(
                || watch.acquired(),
                |pair| {
                    let [first, second] = *black_box(pair);
                    random.work(load.inside);
                    first != second
                },
            );
            *torn += u64::from(is_torn);
        }
        if *only_writes != Some(false) {
            random.work(load.outside);
        }
        true
    }
}

/// Every thread reads, and writes with some probability; or one writes, and the others read.
pub(super) fn run<R: BenchRwLock>(load: &load::Shared, job: &Job) -> Result<RunResult, Mismatch> {
    let pair = Shared::<R, [u64; 2]>::new([0; 2]);
    let mut done = worker_pool::run(job, |number, phase| {
        let random = Random::new(number);
        let only_writes = load.one_writer.then_some(number == 0);
        let mut worker = Worker { load, only_writes, pair: &pair, random, writes: 0, torn: 0 };
        let share = worker_pool::drive(phase, &mut worker);
        (share, [worker.writes, worker.torn])
    })?;
    let mut sums = [0; 2];
    let shares: Vec<Share> = std::mem::take(&mut done.shares)
        .into_iter()
        .map(|(share, [writes, torn])| {
            sums = [sums[0] + writes, sums[1] + torn];
            share
        })
        .collect();
    expect("the number of torn reads", sums[1], 0)?;
    expect("the counter", pair.into_inner()[0], sums[0])?;
    let all = shares.iter().map(|share| share.all).sum::<u64>();
    let outcome = RunResult::new(worker_pool::Done { shares, elapsed: done.elapsed, counts: done.counts });
    Ok(RunResult { writes: (all > 0).then(|| sums[0] as f64 / all as f64), ..outcome })
}
