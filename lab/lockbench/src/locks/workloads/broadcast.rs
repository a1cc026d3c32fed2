//! One thread wakes all others, and waits until each has seen it.

use super::wait_times::Watch;
use super::worker_pool::{self, Operation, Share};
use super::{Job, Mismatch, RunResult, expect};
use crate::locks::primitives::{BenchCondvar, Guarded};

/// The current call: what the waiters wait for.
#[derive(Debug, Default)]
struct BroadcastState {
    number: u64,
    missing: usize,
    over: bool,
}

/// Everything that the threads share.
struct Hall<C: BenchCondvar> {
    call: Guarded<C::Mutex, BroadcastState>,
    called: C,
    answered: C,
}

/// The thread that calls. Its wait is a whole call: from the broadcast to the last answer.
struct Caller<'a, C: BenchCondvar> {
    hall: &'a Hall<C>,
    waiters: usize,
}

impl<C: BenchCondvar> Operation for Caller<'_, C> {
    fn run(&mut self, watch: &mut impl Watch) -> bool {
        let mut call = self.hall.call.lock();
        watch.waiting();
        call.number += 1;
        call.missing = self.waiters;
        self.hall.called.broadcast();
        while call.missing > 0 {
            call = call.wait(&self.hall.answered);
        }
        watch.acquired();
        true
    }

    fn end(&mut self) {
        let mut call = self.hall.call.lock();
        call.number += 1;
        call.over = true;
        self.hall.called.broadcast();
    }
}

impl<C: BenchCondvar> Hall<C> {
    /// Answers every call until it is over; returns how many.
    fn answer(&self) -> u64 {
        let mut heard = 0;
        let mut call = self.call.lock();
        loop {
            while call.number == heard {
                call = call.wait(&self.called);
            }
            if call.over {
                return heard;
            }
            heard += 1;
            call.missing -= 1;
            if call.missing == 0 {
                self.answered.signal();
            }
        }
    }
}

/// Thread 0 calls, the others answer. An operation is a call with all its answers.
pub(super) fn run<C: BenchCondvar>(job: &Job) -> Result<RunResult, Mismatch> {
    let call = Guarded::new(BroadcastState::default());
    let hall = Hall::<C> { call, called: C::default(), answered: C::default() };
    let mut done = worker_pool::run(job, |number, phase| {
        if number == 0 {
            worker_pool::drive(phase, &mut Caller { hall: &hall, waiters: job.threads - 1 })
        } else {
            Share { all: hall.answer(), ..Share::default() }
        }
    })?;
    let heard = done.shares.split_off(1);
    for heard in heard {
        expect("the number of calls that a waiter heard", heard.all, done.shares[0].all)?;
    }
    Ok(RunResult::new(done))
}
