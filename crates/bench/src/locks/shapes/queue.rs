//! A bounded queue: one mutex, two condition variables.

use std::collections::VecDeque;

use super::crew::{self, Operation, Share};
use super::watch::Watch;
use super::{Job, Outcome, Wrong, expect};
use crate::locks::load;
use crate::locks::primitives::{BenchCondvar, Guarded};

/// What is in the queue, and what went through it.
#[derive(Debug, Default)]
struct Items {
    items: VecDeque<u64>,
    pushed: u64,
    popped: u64,
    /// One who left; from now on, nobody waits.
    over: bool,
}

/// Everything that the threads share.
struct Queue<C: BenchCondvar> {
    items: Guarded<C::Mutex, Items>,
    capacity: usize,
    not_empty: C,
    not_full: C,
}

/// A thread that fills it, or empties it. Its wait ends when there is room, or an item.
struct Worker<'a, C: BenchCondvar> {
    queue: &'a Queue<C>,
    is_producer: bool,
}

impl<C: BenchCondvar> Operation for Worker<'_, C> {
    #[inline]
    fn run(&mut self, watch: &mut impl Watch) -> bool {
        let Queue { items, capacity, not_empty, not_full } = self.queue;
        watch.waiting();
        let mut items = items.lock();
        if self.is_producer {
            while items.items.len() == *capacity && !items.over {
                items = items.wait(not_full);
            }
            if items.over {
                return false;
            }
            watch.acquired();
            let number = items.pushed;
            items.items.push_back(number);
            items.pushed += 1;
            not_empty.signal();
        } else {
            while items.items.is_empty() && !items.over {
                items = items.wait(not_empty);
            }
            if items.over {
                return false;
            }
            watch.acquired();
            let item = items.items.pop_front();
            // Items come out in order; a lock that lets two in at once loses one.
            items.popped += u64::from(item == Some(items.popped));
            not_full.signal();
        }
        true
    }

    fn end(&mut self) {
        self.queue.items.lock().over = true;
        self.queue.not_empty.broadcast();
        self.queue.not_full.broadcast();
    }
}

/// Half of the threads push, the others pop. An operation is a push or a pop.
pub(super) fn run<C: BenchCondvar>(load: &load::Queue, job: &Job) -> Result<Outcome, Wrong> {
    let items = Items { items: VecDeque::with_capacity(load.capacity), ..Items::default() };
    let queue = Queue::<C> {
        items: Guarded::new(items),
        capacity: load.capacity,
        not_empty: C::default(),
        not_full: C::default(),
    };
    let producers = job.threads / 2;
    let done = crew::run(job, |number, phase| {
        crew::drive(phase, &mut Worker { queue: &queue, is_producer: number < producers })
    })?;
    let sum = |shares: &[Share]| shares.iter().map(|share| share.all).sum::<u64>();
    let items = queue.items.into_inner();
    expect("the number of pushes", items.pushed, sum(&done.shares[..producers]))?;
    expect("the number of pops in order", items.popped, sum(&done.shares[producers..]))?;
    expect("what is left in the queue", items.items.len() as u64, items.pushed - items.popped)?;
    Ok(Outcome::new(done))
}
