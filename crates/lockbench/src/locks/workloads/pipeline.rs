//! Stages with a bounded queue between each two: a mutex, two condition variables.

use std::collections::VecDeque;

use super::wait_times::Watch;
use super::work::Random;
use super::worker_pool::{self, Operation};
use super::{Job, Mismatch, Outcome, expect};
use crate::locks::load::{self, Signal};
use crate::locks::primitives::{BenchCondvar, Guarded};

/// What is in a queue, and what went through it.
#[derive(Debug, Default)]
struct Items {
    items: VecDeque<u64>,
    pushed: u64,
    /// Taken out in order.
    popped: u64,
    /// A stage left; from now on, no thread waits.
    over: bool,
}

struct Queue<C: BenchCondvar> {
    items: Guarded<C::Mutex, Items>,
    not_empty: C,
    not_full: C,
}

impl<C: BenchCondvar> Queue<C> {
    /// Waits until `may` holds, does `act`, and tells a waiter of `other`. False: it is over.
    #[inline]
    fn with(
        &self,
        signal: Signal,
        [own, other]: [&C; 2],
        watch: &mut impl Watch,
        may: impl Fn(&Items) -> bool,
        act: impl FnOnce(&mut Items),
    ) -> bool {
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
        match signal {
            Signal::UnderLock => {
                other.signal();
                drop(items);
            }
            Signal::AfterUnlock => {
                drop(items);
                other.signal();
            }
        }
        true
    }

    fn end(&self) {
        self.items.lock().over = true;
        self.not_empty.broadcast();
        self.not_full.broadcast();
    }
}

/// A stage: takes an item from the queue before it, works, and puts it into the one behind it.
struct Stage<'a, C: BenchCondvar> {
    before: Option<&'a Queue<C>>,
    behind: Option<&'a Queue<C>>,
    load: &'a load::Pipeline,
    random: Random,
}

impl<C: BenchCondvar> Operation for Stage<'_, C> {
    #[inline]
    fn run(&mut self, watch: &mut impl Watch) -> bool {
        let load::Pipeline { capacity, work, signal } = *self.load;
        let takes = |queue: &Queue<C>| {
            queue.with(
                signal,
                [&queue.not_empty, &queue.not_full],
                watch,
                |items| !items.items.is_empty(),
                |items| {
                    let item = items.items.pop_front();
                    // A lock that lets two in at once loses an item, or their order.
                    items.popped += u64::from(item == Some(items.popped));
                },
            )
        };
        if !self.before.is_none_or(takes) {
            return false;
        }
        self.random.work(work);
        let puts = |queue: &Queue<C>| {
            queue.with(
                signal,
                [&queue.not_full, &queue.not_empty],
                watch,
                |items| items.items.len() < capacity,
                |items| {
                    items.items.push_back(items.pushed);
                    items.pushed += 1;
                },
            )
        };
        self.behind.is_none_or(puts)
    }

    fn end(&mut self) {
        self.before.into_iter().chain(self.behind).for_each(Queue::end);
    }
}

/// Each thread is a stage. An operation is an item that has passed one.
pub(super) fn run<C: BenchCondvar>(load: &load::Pipeline, job: &Job) -> Result<Outcome, Mismatch> {
    let queue = || Queue::<C> {
        items: Guarded::new(Items { items: VecDeque::with_capacity(load.capacity), ..Items::default() }),
        not_empty: C::default(),
        not_full: C::default(),
    };
    let queues: Vec<_> = (1..job.threads).map(|_| queue()).collect();
    let done = worker_pool::run(job, |number, phase| {
        let mut stage = Stage {
            before: number.checked_sub(1).and_then(|before| queues.get(before)),
            behind: queues.get(number),
            load,
            random: Random::new(number),
        };
        worker_pool::drive(phase, &mut stage)
    })?;
    for queue in queues {
        let items = queue.items.into_inner();
        expect("what is left in a queue", items.items.len() as u64, items.pushed - items.popped)?;
    }
    Ok(Outcome::new(done))
}
