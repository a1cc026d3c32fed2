//! Bounded queues of one mutex and two condition variables: one between producers and consumers, or one
//! between each two stages of a pipeline.

use std::collections::VecDeque;

use super::wait_times::Watch;
use super::work::Random;
use super::worker_pool::{self, Operation, Share};
use super::{Job, Mismatch, RunResult, expect};
use crate::locks::load::{self, Signal, Wake};
use crate::locks::primitives::{BenchCondvar, Guarded};

/// What is in a queue, and what went through it.
#[derive(Debug, Default)]
struct Items {
    items: VecDeque<u64>,
    pushed: u64,
    /// Taken out in order.
    dequeued: u64,
    /// A thread left; from now on, no thread waits.
    over: bool,
}

/// A wait ends when there is a free slot, or an item.
struct Bounded<C: BenchCondvar> {
    items: Guarded<C::Mutex, Items>,
    not_empty: C,
    not_full: C,
    capacity: usize,
    signal: Signal,
    wake: Wake,
}

impl<C: BenchCondvar> Bounded<C> {
    fn new(capacity: usize, signal: Signal, wake: Wake) -> Self {
        let items = Items { items: VecDeque::with_capacity(capacity), ..Items::default() };
        let (not_empty, not_full) = (C::default(), C::default());
        Self { items: Guarded::new(items), not_empty, not_full, capacity, signal, wake }
    }

    /// Waits until `may` holds, does `act`, and wakes waiters of `other`. False: it is over.
    #[inline]
    fn with(
        &self,
        [own, other]: [&C; 2],
        watch: &mut impl Watch,
        may: impl Fn(&Items) -> bool,
        act: impl FnOnce(&mut Items),
    ) -> bool {
        let wake = || match self.wake {
            Wake::One => other.signal(),
            Wake::All => other.broadcast(),
        };
        watch.waiting();
        let mut items = self.items.lock();
        while !may(&items) && !items.over {
            items = items.wait(own);
        }
        if items.over {
            return false;
        }
        watch.acquired();
        act(&mut items);
        match self.signal {
            Signal::UnderLock => {
                wake();
                drop(items);
            }
            Signal::AfterUnlock => {
                drop(items);
                wake();
            }
        }
        true
    }

    #[inline]
    fn put(&self, watch: &mut impl Watch) -> bool {
        let may = |items: &Items| items.items.len() < self.capacity;
        self.with([&self.not_full, &self.not_empty], watch, may, |items| {
            let number = items.pushed;
            items.items.push_back(number);
            items.pushed += 1;
        })
    }

    #[inline]
    fn take(&self, watch: &mut impl Watch) -> bool {
        let may = |items: &Items| !items.items.is_empty();
        self.with([&self.not_empty, &self.not_full], watch, may, |items| {
            let item = items.items.pop_front();
            // Items come out in order; a lock that lets two threads in at once loses one, or their order.
            items.dequeued += u64::from(item == Some(items.dequeued));
        })
    }

    fn end(&self) {
        self.items.lock().over = true;
        self.not_empty.broadcast();
        self.not_full.broadcast();
    }

    /// What went through it, if nothing got lost.
    fn into_items(self) -> Result<Items, Mismatch> {
        let items = self.items.into_inner();
        expect("what is left in a queue", items.items.len() as u64, items.pushed - items.dequeued)?;
        Ok(items)
    }
}

/// A thread that fills the queue, or empties it.
struct Worker<'a, C: BenchCondvar> {
    queue: &'a Bounded<C>,
    is_producer: bool,
    work: u32,
    random: Random,
}

impl<C: BenchCondvar> Operation for Worker<'_, C> {
    #[inline]
    fn run(&mut self, watch: &mut impl Watch) -> bool {
        if self.is_producer {
            self.random.work(self.work);
            return self.queue.put(watch);
        }
        let is_taken = self.queue.take(watch);
        if is_taken {
            self.random.work(self.work);
        }
        is_taken
    }

    fn end(&mut self) {
        self.queue.end();
    }
}

/// Some of the threads push, the others pop. An operation is a push or a pop.
pub(super) fn run<C: BenchCondvar>(load: &load::Queue, job: &Job) -> Result<RunResult, Mismatch> {
    let queue = Bounded::<C>::new(load.capacity, load.signal, load.wake);
    let producers = load.producers_of(job.threads);
    let done = worker_pool::run(job, |number, phase| {
        let (random, is_producer) = (Random::new(number), number < producers);
        worker_pool::drive(phase, &mut Worker { queue: &queue, is_producer, work: load.work, random })
    })?;
    let sum = |shares: &[Share]| shares.iter().map(|share| share.all).sum::<u64>();
    let items = queue.into_items()?;
    expect("the number of pushes", items.pushed, sum(&done.shares[..producers]))?;
    expect("the number of pops in order", items.dequeued, sum(&done.shares[producers..]))?;
    Ok(RunResult::new(done))
}

/// A stage: takes an item from the queue before it, works, and puts it into the one behind it.
struct Stage<'a, C: BenchCondvar> {
    before: Option<&'a Bounded<C>>,
    behind: Option<&'a Bounded<C>>,
    work: u32,
    random: Random,
}

impl<C: BenchCondvar> Operation for Stage<'_, C> {
    #[inline]
    fn run(&mut self, watch: &mut impl Watch) -> bool {
        if !self.before.is_none_or(|queue| queue.take(watch)) {
            return false;
        }
        self.random.work(self.work);
        self.behind.is_none_or(|queue| queue.put(watch))
    }

    fn end(&mut self) {
        self.before.into_iter().chain(self.behind).for_each(Bounded::end);
    }
}

/// Each thread is a stage. An operation is an item that has passed one.
pub(super) fn run_stages<C: BenchCondvar>(load: &load::Pipeline, job: &Job) -> Result<RunResult, Mismatch> {
    let load::Pipeline { capacity, work, signal } = *load;
    let queues: Vec<_> = (1..job.threads).map(|_| Bounded::<C>::new(capacity, signal, Wake::One)).collect();
    let done = worker_pool::run(job, |number, phase| {
        let before = number.checked_sub(1).and_then(|before| queues.get(before));
        let behind = queues.get(number);
        worker_pool::drive(phase, &mut Stage { before, behind, work, random: Random::new(number) })
    })?;
    queues.into_iter().try_for_each(|queue| queue.into_items().map(|_| ()))?;
    Ok(RunResult::new(done))
}
