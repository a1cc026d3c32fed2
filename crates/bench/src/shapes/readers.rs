//! A rwlock that is mostly read.

use std::hint::black_box;
use std::time::Duration;

use super::crew::{self, Random, Tally};
use super::{Outcome, Shape, Wrong, expect};
use crate::pthread::{Protected, RwLock};

/// Threads that read, and write with some probability.
#[derive(Debug)]
pub(super) struct Readers {
    name: &'static str,
    about: &'static str,
    threads: &'static [usize],
    percent_writes: u64,
}

pub(super) static READERS: Readers = Readers {
    name: "readers",
    about: "one rwlock, two threads that only read",
    threads: &[2],
    percent_writes: 0,
};
pub(super) static MIXED_1: Readers =
    Readers { name: "mixed-1", about: "one rwlock, 1 % writes", threads: &[2, 16], percent_writes: 1 };
pub(super) static MIXED_10: Readers =
    Readers { name: "mixed-10", about: "one rwlock, 10 % writes", threads: &[2, 16], percent_writes: 10 };

/// Operations of one thread.
#[derive(Default)]
struct Share {
    tally: Tally,
    writes: u64,
    torn: u64,
}

impl Shape for Readers {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn threads(&self) -> &'static [usize] {
        self.threads
    }

    fn run(&self, threads: usize, duration: Duration) -> Result<Outcome, Wrong> {
        let lock = RwLock::default();
        // Always equal, unless a reader gets between the two writes.
        let pair = Protected::new([0u64; 2]);
        let (shares, elapsed) = crew::run(threads, duration, |number, phase| {
            let mut random = Random::new(number);
            let mut share = Share::default();
            while !phase.is_over() {
                if random.next() % 100 < self.percent_writes {
                    lock.write();
                    // SAFETY: the lock is held for writing.
                    unsafe { write(pair.get()) };
                    share.writes += 1;
                } else {
                    lock.read();
                    // SAFETY: the lock is held for reading.
                    share.torn += u64::from(unsafe { is_torn(pair.get()) });
                }
                lock.unlock();
                share.tally.count(phase);
            }
            share
        });
        let sum = |of: fn(&Share) -> u64| shares.iter().map(of).sum::<u64>();
        expect("the number of torn reads", sum(|share| share.torn), 0)?;
        expect("the counter", pair.into_inner()[0], sum(|share| share.writes))?;
        Ok(Outcome { operations: sum(|share| share.tally.measured), elapsed, fairness: None })
    }
}

/// # Safety
///
/// The caller has exclusive access.
#[inline]
unsafe fn write(pair: *mut [u64; 2]) {
    let pair = black_box(pair);
    // SAFETY: exclusive access, by this function's contract.
    let [first, second] = unsafe { &mut *pair };
    *first += 1;
    *second += 1;
}

/// # Safety
///
/// The caller has shared access.
#[inline]
unsafe fn is_torn(pair: *mut [u64; 2]) -> bool {
    // SAFETY: shared access, by this function's contract; both are read from memory.
    let [first, second] = unsafe { *black_box(pair) };
    first != second
}
