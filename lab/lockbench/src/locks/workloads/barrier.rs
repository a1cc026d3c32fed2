//! All threads meet at a barrier that is made of a mutex and a condition variable: the last one wakes all
//! others.

use super::wait_times::Watch;
use super::work::Random;
use super::worker_pool::{self, Operation, Share};
use super::{Job, Mismatch, RunResult, expect};
use crate::locks::load;
use crate::locks::primitives::{BenchCondvar, Guarded};

/// The state of one meeting.
#[derive(Debug, Default)]
struct Meeting {
    number: u64,
    missing: usize,
    over: bool,
}

/// What one thread does. Its wait ends when all have come.
struct Walker<'a, C: BenchCondvar> {
    meeting: &'a Guarded<C::Mutex, Meeting>,
    complete: &'a C,
    threads: usize,
    work: u32,
    random: Random,
}

impl<C: BenchCondvar> Operation for Walker<'_, C> {
    fn run(&mut self, watch: &mut impl Watch) -> bool {
        self.random.work(self.work);
        watch.waiting();
        let mut meeting = self.meeting.lock();
        if meeting.over {
            return false;
        }
        meeting.missing -= 1;
        if meeting.missing == 0 {
            meeting.number += 1;
            meeting.missing = self.threads;
            self.complete.broadcast();
        } else {
            let number = meeting.number;
            while meeting.number == number && !meeting.over {
                meeting = meeting.wait(self.complete);
            }
            if meeting.number == number {
                return false;
            }
        }
        watch.acquired();
        true
    }

    fn end(&mut self) {
        self.meeting.lock().over = true;
        self.complete.broadcast();
    }
}

/// An operation is a thread's way through the barrier.
pub(super) fn run<C: BenchCondvar>(load: &load::Barrier, job: &Job) -> Result<RunResult, Mismatch> {
    let threads = job.threads;
    let meeting = Guarded::<C::Mutex, Meeting>::new(Meeting { missing: threads, ..Meeting::default() });
    let complete = C::default();
    let done = worker_pool::run(job, |number, phase| {
        let random = Random::new(number);
        let (meeting, complete) = (&meeting, &complete);
        worker_pool::drive(phase, &mut Walker { meeting, complete, threads, work: load.work, random })
    })?;
    let all = done.shares.iter().map(|share: &Share| share.all).sum();
    expect("the ways through the barrier", all, meeting.into_inner().number * threads as u64)?;
    Ok(RunResult::new(done))
}
