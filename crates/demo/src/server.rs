//! The bundled demonstration: a small server, as far as its locks are concerned.
//!
//! Four threads accept requests and put them, in batches, into a bounded queue (a mutex and two condition
//! variables). Four more take them out, look each one up in a table that is nearly always read (a rwlock),
//! and account for it in statistics that all threads share (one hot mutex). The amount of work is fixed; its
//! results are checked.

use std::collections::VecDeque;
use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use thiserror::Error;

use crate::pthread_calls::{Condvar, Kind, Mutex, Protected, RwLock};

const PRODUCERS: u64 = 4;
const CONSUMERS: u64 = 4;
/// Requests per batch.
const BATCH: u64 = 16;
/// Batches that the queue holds.
const QUEUE: usize = 32;
/// Entries of the table.
const ENTRIES: usize = 1024;
/// One request in this many changes the table.
const WRITE_EVERY: u64 = 128;

/// Printed before the number, and searched for by `compare`.
pub const LABEL: &str = "operations per second";

/// The demonstration's result is wrong: the locks do not exclude.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("wrong result: {what} is {found}, not {expected}")]
pub struct WrongResult {
    what: &'static str,
    found: u64,
    expected: u64,
}

/// What it did.
#[derive(Debug, Clone, Copy)]
pub struct Done {
    /// Requests that were handled.
    pub operations: u64,
    /// How long that took.
    pub elapsed: Duration,
}

impl Done {
    /// The demonstration's number.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        self.operations as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// The statistics behind the hot mutex.
#[derive(Default)]
struct Statistics {
    handled: u64,
    sum: u64,
}

/// Everything that the threads share.
struct Server {
    queue_mutex: Mutex,
    not_empty: Condvar,
    not_full: Condvar,
    queue: Protected<VecDeque<u64>>,
    table_lock: RwLock,
    table: Protected<Vec<u64>>,
    hot_mutex: Mutex,
    statistics: Protected<Statistics>,
}

/// Handles at least `operations` requests (rounded up to whole batches per thread), and checks the result.
///
/// # Errors
///
/// If the result is wrong.
pub fn run(operations: u64) -> Result<Done, WrongResult> {
    let step = PRODUCERS * BATCH;
    let batches = operations.div_ceil(step).max(1) * PRODUCERS;
    let server = Server {
        queue_mutex: Mutex::new(Kind::Normal),
        not_empty: Condvar::default(),
        not_full: Condvar::default(),
        queue: Protected::new(VecDeque::with_capacity(QUEUE)),
        table_lock: RwLock::default(),
        table: Protected::new(vec![0; ENTRIES]),
        hot_mutex: Mutex::new(Kind::Normal),
        statistics: Protected::new(Statistics::default()),
    };
    let start = Instant::now();
    thread::scope(|scope| {
        let server = &server;
        for number in 0..PRODUCERS {
            scope.spawn(move || {
                for batch in (number..batches).step_by(PRODUCERS as usize) {
                    server.push(batch);
                }
            });
        }
        for _ in 0..CONSUMERS {
            scope.spawn(move || {
                for _ in 0..batches / CONSUMERS {
                    server.handle(server.pop());
                }
            });
        }
    });
    let elapsed = start.elapsed();
    server.check(batches * BATCH)?;
    Ok(Done { operations: batches * BATCH, elapsed })
}

impl Server {
    fn push(&self, batch: u64) {
        self.queue_mutex.lock();
        // SAFETY: the mutex is held; the value is copied out before `wait` gives it up.
        while unsafe { (*self.queue.get()).len() } == QUEUE {
            self.not_full.wait(&self.queue_mutex);
        }
        // SAFETY: the mutex is held, and `wait` is not called any more.
        unsafe { (*self.queue.get()).push_back(batch) };
        self.not_empty.signal();
        self.queue_mutex.unlock();
    }

    fn pop(&self) -> u64 {
        self.queue_mutex.lock();
        let batch = loop {
            // SAFETY: the mutex is held; the value is moved out before `wait` gives it up.
            match unsafe { (*self.queue.get()).pop_front() } {
                Some(batch) => break batch,
                None => self.not_empty.wait(&self.queue_mutex),
            }
        };
        self.not_full.signal();
        self.queue_mutex.unlock();
        batch
    }

    fn handle(&self, batch: u64) {
        for request in batch * BATCH..(batch + 1) * BATCH {
            let entry = request as usize % ENTRIES;
            if request.is_multiple_of(WRITE_EVERY) {
                self.table_lock.write();
                // SAFETY: the lock is held for writing.
                unsafe { (&mut *self.table.get())[entry] += 1 };
            } else {
                self.table_lock.read();
                // SAFETY: the lock is held for reading.
                black_box(unsafe { (&*self.table.get())[entry] });
            }
            self.table_lock.unlock();
            self.hot_mutex.lock();
            // SAFETY: the mutex is held.
            let statistics = unsafe { &mut *self.statistics.get() };
            statistics.handled += 1;
            statistics.sum = statistics.sum.wrapping_add(request);
            self.hot_mutex.unlock();
        }
    }

    /// Every request was handled once, and every change of the table counted once.
    fn check(self, operations: u64) -> Result<(), WrongResult> {
        let expect = |what, found, expected| {
            if found == expected { Ok(()) } else { Err(WrongResult { what, found, expected }) }
        };
        let statistics = self.statistics.into_inner();
        expect("the number of requests", statistics.handled, operations)?;
        let sum = (0..operations).fold(0u64, u64::wrapping_add);
        expect("the sum of requests", statistics.sum, sum)?;
        let writes: u64 = self.table.into_inner().iter().sum();
        expect("the number of changes", writes, operations.div_ceil(WRITE_EVERY))?;
        expect("the rest in the queue", self.queue.into_inner().len() as u64, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_right_for_any_amount() {
        for operations in [0, 1, 64, 1000, 20_000] {
            let done = run(operations).unwrap();
            assert!(done.operations >= operations && done.operations < operations + 128);
        }
    }
}
