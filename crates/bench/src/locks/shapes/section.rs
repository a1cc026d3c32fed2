//! A critical section and work outside, on one mutex or on many.

use std::hint::black_box;

use super::crew::{self, Operation, Share};
use super::watch::Watch;
use super::work::Random;
use super::{Job, MAX_LINES, Outcome, Wrong, expect};
use crate::locks::load::Section;
use crate::locks::primitives::{BenchMutex, Guarded};

/// A cache line with two counters, which are equal unless somebody else was inside as well.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
struct Line([u64; 2]);

type Lines = [Line; MAX_LINES];

/// What one thread does.
struct Worker<'a, M: BenchMutex> {
    section: &'a Section,
    locks: &'a [Guarded<M, Lines>],
    random: Random,
}

impl<M: BenchMutex> Operation for Worker<'_, M> {
    #[inline]
    fn run(&mut self, watch: &mut impl Watch) -> bool {
        let lock = match self.locks {
            [lock] => lock,
            locks => &locks[self.random.next() as usize % locks.len()],
        };
        watch.waiting();
        let mut lines = lock.lock();
        watch.acquired();
        for Line([first, second]) in black_box(&mut lines[..self.section.lines]) {
            *first += 1;
            *second += 1;
        }
        self.random.work(self.section.inside);
        drop(lines);
        self.random.work(self.section.outside);
        true
    }
}

/// Every thread counts under the locks.
pub(super) fn run<M: BenchMutex>(section: &Section, job: &Job) -> Result<Outcome, Wrong> {
    let locks: Vec<_> = (0..section.locks).map(|_| Guarded::<M, Lines>::new(Lines::default())).collect();
    let done = crew::run(job, |number, phase| {
        crew::drive(phase, &mut Worker { section, locks: &locks, random: Random::new(number) })
    })?;
    let mut counters = [[0; 2]; MAX_LINES];
    for lines in locks.into_iter().map(Guarded::into_inner) {
        for (sum, Line(counter)) in counters.iter_mut().zip(lines) {
            *sum = [sum[0] + counter[0], sum[1] + counter[1]];
        }
    }
    let all = done.shares.iter().map(|share: &Share| share.all).sum();
    for [first, second] in counters.into_iter().take(section.lines) {
        expect("the counter", first, all)?;
        expect("the second counter", second, all)?;
    }
    Ok(Outcome::new(done))
}
