//! Lock and unlock with nobody else interested: the price that every program pays.
//!
//! Nobody waits here, so the thread's CPU time is the cost, and the other programs on the machine are left out of it.

use std::hint::black_box;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use super::{Outcome, Shape, Wrong, crew, expect};
use crate::pthread::{Kind, Mutex, Protected, RwLock};

/// Pairs between two looks at the clock, which costs as much as a pair.
const BATCH: u64 = 1000;

/// Which lock, and how.
#[derive(Debug, Clone, Copy)]
enum Lock {
    Mutex(Kind),
    Read,
    Write,
}

/// An uncontended pair.
#[derive(Debug)]
pub(super) struct Pair {
    name: &'static str,
    about: &'static str,
    lock: Lock,
    /// Whether a second thread exists.
    threaded: bool,
}

pub(super) static PAIR_SINGLE: Pair = Pair {
    name: "pair-single",
    about: "mutex, in a process that never created a thread",
    lock: Lock::Mutex(Kind::Normal),
    threaded: false,
};
pub(super) static PAIR_THREADED: Pair = Pair {
    name: "pair-threaded",
    about: "mutex, with a second thread alive and asleep",
    lock: Lock::Mutex(Kind::Normal),
    threaded: true,
};
pub(super) static RECURSIVE_PAIR: Pair = Pair {
    name: "recursive-pair",
    about: "recursive mutex, second thread asleep",
    lock: Lock::Mutex(Kind::Recursive),
    threaded: true,
};
pub(super) static ERRORCHECK_PAIR: Pair = Pair {
    name: "errorcheck-pair",
    about: "error-checking mutex, second thread asleep",
    lock: Lock::Mutex(Kind::ErrorCheck),
    threaded: true,
};
pub(super) static READ_PAIR: Pair = Pair {
    name: "read-pair",
    about: "rwlock for reading, second thread asleep",
    lock: Lock::Read,
    threaded: true,
};
pub(super) static WRITE_PAIR: Pair = Pair {
    name: "write-pair",
    about: "rwlock for writing, second thread asleep",
    lock: Lock::Write,
    threaded: true,
};

impl Shape for Pair {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn threads(&self) -> &'static [usize] {
        &[1]
    }

    fn run(&self, _threads: usize, duration: Duration) -> Result<Outcome, Wrong> {
        if self.threaded { crew::beside_a_sleeper(|| self.pairs(duration)) } else { self.pairs(duration) }
    }
}

impl Pair {
    fn pairs(&self, duration: Duration) -> Result<Outcome, Wrong> {
        match self.lock {
            Lock::Mutex(kind) => {
                let mutex = Mutex::new(kind);
                measure(duration, || mutex.lock(), || mutex.unlock())
            }
            Lock::Read => {
                let lock = RwLock::default();
                measure(duration, || lock.read(), || lock.unlock())
            }
            Lock::Write => {
                let lock = RwLock::default();
                measure(duration, || lock.write(), || lock.unlock())
            }
        }
    }
}

#[inline]
fn measure(duration: Duration, lock: impl Fn(), unlock: impl Fn()) -> Result<Outcome, Wrong> {
    let counter = Protected::new(0u64);
    let mut operations = 0;
    let start = Instant::now();
    let cpu_start = cpu_time();
    while start.elapsed() < duration {
        for _ in 0..BATCH {
            lock();
            // SAFETY: nobody else knows of the counter. `black_box` makes it a memory access inside the pair.
            unsafe { *black_box(counter.get()) += 1 };
            unlock();
        }
        operations += BATCH;
    }
    let elapsed = cpu_time() - cpu_start;
    expect("the counter", counter.into_inner(), operations)?;
    Ok(Outcome { operations, elapsed, fairness: None })
}

/// CPU time of this thread.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
