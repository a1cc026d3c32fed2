//! The kinds of load, each written once over the small traits, and run by one fresh process.
//!
//! Every workload checks its own result: a lock that loses an update ends the measurement.

pub(super) mod affinity;
mod barrier;
mod broadcast;
mod pair;
mod ping_pong;
mod pool;
mod queue;
mod run_result;
mod section;
mod shared;
mod wait_times;
pub mod work;
mod worker_pool;

use std::time::Duration;

use spinpark_measure::process::start_gate::NoThread;
use thiserror::Error;

use super::load::{Load, Placement};
use super::primitives::{BenchCondvar, BenchMutex, BenchRwLock};

pub use self::run_result::{Report, RunResult, WaitReport, jain};

/// CPUs that this process may use.
#[must_use]
pub fn allowed_cpus() -> usize {
    affinity::allowed().len()
}

/// What one process is to do.
#[derive(Debug, Clone)]
pub struct Job {
    /// What its threads do.
    pub load: Load,
    /// How many there are.
    pub threads: usize,
    /// Where they run, unless the load says so.
    pub cpus: Placement,
    /// Length of the counted phase.
    pub duration: Duration,
    /// Whether waits are timed; then operations take longer.
    pub time_waits: bool,
    /// Whether futex calls are counted.
    pub count_futex_calls: bool,
}

/// A run that yields nothing.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Mismatch {
    /// The lock under test let something happen that must not.
    #[error("wrong result: {what} is {found}, not {expected}: the lock under test does not exclude")]
    Result {
        /// What is wrong.
        what: &'static str,
        /// What it is.
        found: u64,
        /// What it had to be.
        expected: u64,
    },
    /// Not all threads could be created.
    #[error(transparent)]
    NoThread(#[from] NoThread),
    /// An adapter was asked for what it cannot do.
    #[error("these locks cannot run this load")]
    Unfit,
}

/// Compares a result with what it must be.
fn expect(what: &'static str, found: u64, expected: u64) -> Result<(), Mismatch> {
    if found == expected { Ok(()) } else { Err(Mismatch::Result { what, found, expected }) }
}

/// Runs a load on a mutex.
///
/// # Errors
///
/// If the result is wrong: the lock under test does not work. Or if the load is none for a mutex.
pub fn mutex<M: BenchMutex>(job: &Job) -> Result<RunResult, Mismatch> {
    match &job.load {
        Load::Pair(pair) => pair::mutex::<M>(pair, job),
        Load::Section(section) => section::run::<M>(section, job),
        _ => Err(Mismatch::Unfit),
    }
}

/// Runs a load on a read-write lock.
///
/// # Errors
///
/// As [`mutex`].
pub fn rwlock<R: BenchRwLock>(job: &Job) -> Result<RunResult, Mismatch> {
    match &job.load {
        Load::Pair(pair) => pair::rwlock::<R>(pair, job),
        Load::Shared(shared) => shared::run::<R>(shared, job),
        _ => Err(Mismatch::Unfit),
    }
}

/// Runs a load on a condition variable.
///
/// # Errors
///
/// As [`mutex`].
pub fn condvar<C: BenchCondvar>(job: &Job) -> Result<RunResult, Mismatch> {
    match &job.load {
        Load::PingPong(ping_pong) => ping_pong::run::<C>(ping_pong, job),
        Load::Broadcast(_) => broadcast::run::<C>(job),
        Load::Queue(queue) => queue::run::<C>(queue, job),
        Load::Pool(pool) => pool::run::<C>(pool, job),
        Load::Barrier(barrier) => barrier::run::<C>(barrier, job),
        Load::Pipeline(pipeline) => queue::run_stages::<C>(pipeline, job),
        _ => Err(Mismatch::Unfit),
    }
}
