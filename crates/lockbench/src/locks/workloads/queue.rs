//! A bounded queue: one mutex, two condition variables.

use std::collections::VecDeque;

use super::wait_times::Watch;
use super::work::Random;
use super::worker_pool::{self, Operation, Share};
use super::{Job, Mismatch, Outcome, expect};
use crate::locks::load::{self, Signal, Wake};
use crate::locks::primitives::{BenchCondvar, Guarded};

/// What is in the queue, and what went through it.
#[derive(Debug, Default)]
struct Items {
    items: VecDeque<u64>,
    pushed: u64,
    dequeued: u64,
    /// A thread that left; from now on, no thread waits.
    over: bool,
}

/// Everything that the threads share.
struct Queue<'a, C: BenchCondvar> {
    items: Guarded<C::Mutex, Items>,
    load: &'a load::Queue,
    not_empty: C,
    not_full: C,
}

/// A thread that fills it, or empties it. Its wait ends when there is a free slot, or an item.
struct Worker<'a, C: BenchCondvar> {
    queue: &'a Queue<'a, C>,
    is_producer: bool,
    random: Random,
}

/// Tells one waiter of `condvar`, or all.
#[inline]
fn wake<C: BenchCondvar>(wake: Wake, condvar: &C) {
    match wake {
        Wake::One => condvar.signal(),
        Wake::All => condvar.broadcast(),
    }
}

impl<C: BenchCondvar> Operation for Worker<'_, C> {
    #[inline]
    fn run(&mut self, watch: &mut impl Watch) -> bool {
        let Queue { items, load, not_empty, not_full } = self.queue;
        let (mine, theirs) = if self.is_producer { (not_full, not_empty) } else { (not_empty, not_full) };
        if self.is_producer {
            self.random.work(load.work);
        }
        watch.waiting();
        let mut items = items.lock();
        let must_wait = |items: &Items| match self.is_producer {
            true => items.items.len() == load.capacity,
            false => items.items.is_empty(),
        };
        while must_wait(&items) && !items.over {
            items = items.wait(mine);
        }
        if items.over {
            return false;
        }
        watch.acquired();
        if self.is_producer {
            let number = items.pushed;
            items.items.push_back(number);
            items.pushed += 1;
        } else {
            let item = items.items.pop_front();
            // Items come out in order; a lock that lets two in at once loses one.
            items.dequeued += u64::from(item == Some(items.dequeued));
        }
        match load.signal {
            Signal::UnderLock => {
                wake(load.wake, theirs);
                drop(items);
            }
            Signal::AfterUnlock => {
                drop(items);
                wake(load.wake, theirs);
            }
        }
        if !self.is_producer {
            self.random.work(load.work);
        }
        true
    }

    fn end(&mut self) {
        self.queue.items.lock().over = true;
        self.queue.not_empty.broadcast();
        self.queue.not_full.broadcast();
    }
}

/// Some of the threads push, the others pop. An operation is a push or a pop.
pub(super) fn run<C: BenchCondvar>(load: &load::Queue, job: &Job) -> Result<Outcome, Mismatch> {
    let items = Items { items: VecDeque::with_capacity(load.capacity), ..Items::default() };
    let queue =
        Queue::<C> { items: Guarded::new(items), load, not_empty: C::default(), not_full: C::default() };
    let producers = load.producers_of(job.threads);
    let done = worker_pool::run(job, |number, phase| {
        let random = Random::new(number);
        worker_pool::drive(phase, &mut Worker { queue: &queue, is_producer: number < producers, random })
    })?;
    let sum = |shares: &[Share]| shares.iter().map(|share| share.all).sum::<u64>();
    let items = queue.items.into_inner();
    expect("the number of pushes", items.pushed, sum(&done.shares[..producers]))?;
    expect("the number of pops in order", items.dequeued, sum(&done.shares[producers..]))?;
    expect("what is left in the queue", items.items.len() as u64, items.pushed - items.dequeued)?;
    Ok(Outcome::new(done))
}
