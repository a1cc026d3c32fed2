//! One thread feeds a pool of workers: a batch of jobs, one signal each, and then it waits until all are
//! done.

use super::wait_times::{Phase, Watch};
use super::work::Random;
use super::worker_pool::{self, Operation, Share};
use super::{Job, Mismatch, RunResult, expect};
use crate::locks::load;
use crate::locks::primitives::{BenchCondvar, Guarded};

/// What is to be done.
#[derive(Debug, Default)]
struct Jobs {
    /// Not yet taken by a worker.
    waiting: usize,
    /// Not yet done.
    missing: usize,
    over: bool,
}

/// Everything that the threads share.
struct Pool<'a, C: BenchCondvar> {
    jobs: Guarded<C::Mutex, Jobs>,
    load: &'a load::Pool,
    work: C,
    done: C,
}

/// The thread that feeds. Its wait is a whole batch: from the first job to the end of the last.
struct Feeder<'a, C: BenchCondvar> {
    pool: &'a Pool<'a, C>,
}

impl<C: BenchCondvar> Operation for Feeder<'_, C> {
    fn run(&mut self, watch: &mut impl Watch) -> bool {
        let Pool { jobs, load, work, done } = self.pool;
        watch.waiting();
        for _ in 0..load.batch {
            let mut jobs = jobs.lock();
            jobs.waiting += 1;
            jobs.missing += 1;
            work.signal();
        }
        let mut jobs = jobs.lock();
        while jobs.missing > 0 {
            jobs = jobs.wait(done);
        }
        watch.acquired();
        true
    }

    fn end(&mut self) {
        self.pool.jobs.lock().over = true;
        self.pool.work.broadcast();
    }
}

impl<C: BenchCondvar> Pool<'_, C> {
    /// Does jobs until it is over.
    fn serve(&self, number: usize, phase: &Phase) -> Share {
        let (mut share, mut random) = (Share::default(), Random::new(number));
        loop {
            let mut jobs = self.jobs.lock();
            while jobs.waiting == 0 && !jobs.over {
                jobs = jobs.wait(&self.work);
            }
            if jobs.over {
                return share;
            }
            jobs.waiting -= 1;
            drop(jobs);
            random.work(self.load.work);
            let mut jobs = self.jobs.lock();
            jobs.missing -= 1;
            if jobs.missing == 0 {
                self.done.signal();
            }
            drop(jobs);
            share.count(phase);
        }
    }
}

/// Thread 0 feeds, the others work. An operation is a job.
pub(super) fn run<C: BenchCondvar>(load: &load::Pool, job: &Job) -> Result<RunResult, Mismatch> {
    let jobs = Guarded::new(Jobs::default());
    let pool = Pool::<C> { jobs, load, work: C::default(), done: C::default() };
    let mut done = worker_pool::run(job, |number, phase| match number {
        0 => worker_pool::drive(phase, &mut Feeder { pool: &pool }),
        _ => pool.serve(number, phase),
    })?;
    // A batch is no operation: its jobs are.
    let fed = std::mem::take(&mut done.shares[0].all) * load.batch as u64;
    done.shares[0].counted = 0;
    expect("the number of jobs done", done.shares.iter().map(|share| share.all).sum(), fed)?;
    Ok(RunResult::new(done))
}
