//! Waking a thread that sleeps: what the waker pays, and how long it takes until the thread runs.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::calls::busy;
use super::cpus::{Cpus, pin};
use super::spread::quick;
use super::{CalibrateError, futex};

/// Waking a thread of another CPU that is idle since 20 µs: the waker's part, ns.
pub(super) fn other_cpu(cpus: &Cpus) -> Result<Option<f64>, CalibrateError> {
    Ok(elsewhere(cpus, Duration::from_micros(20), 200)?.and_then(|seen| quick(&seen.costs)))
}

/// Waking a thread of another CPU that is idle since `idle`: from the waker's call until the thread runs, ns.
pub(super) fn until_it_runs(cpus: &Cpus, idle: Duration) -> Result<Option<f64>, CalibrateError> {
    let count = if idle < Duration::from_millis(5) { 200 } else { 40 };
    Ok(elsewhere(cpus, idle, count)?.and_then(|seen| quick(&seen.latencies)))
}

/// The part of wake-ups on the waker's own CPU after which the woken thread preempts the waker, which had
/// computed for 2 ms, at once.
pub(super) fn preempts(cpus: &Cpus) -> Result<Option<f64>, CalibrateError> {
    /// Sooner is at once.
    const AT_ONCE: f64 = 200e3;
    let main = cpus.main().cpu;
    let wakes = Wakes { waker: main, sleeper: main, count: 40 };
    let before = || {
        thread::sleep(Duration::from_millis(2));
        busy(Duration::from_millis(2));
    };
    // Computing goes on after the wake-up, or there would be nothing to preempt.
    let seen = wakes.run(before)?;
    let at_once = seen.latencies.iter().filter(|&&latency| latency < AT_ONCE).count();
    let count = seen.latencies.len();
    Ok((count > 0).then(|| at_once as f64 / count as f64))
}

fn elsewhere(cpus: &Cpus, idle: Duration, count: u32) -> Result<Option<Seen>, CalibrateError> {
    let Some(other) = cpus.other() else { return Ok(None) };
    let wakes = Wakes { waker: cpus.main().cpu, sleeper: other.cpu, count };
    wakes.run(|| busy(idle)).map(Some)
}

fn wait(done: impl Fn() -> bool) {
    while !done() {
        std::hint::spin_loop();
    }
}

/// A thread that is woken again and again.
struct Wakes {
    /// The waker's CPU.
    waker: usize,
    /// The sleeper's CPU.
    sleeper: usize,
    count: u32,
}

/// What was seen, ns.
struct Seen {
    /// What the waker's call took.
    costs: Vec<f64>,
    /// From the begin of that call until the sleeper ran.
    latencies: Vec<f64>,
}

impl Wakes {
    /// Calls `before` when the sleeper is about to sleep (it has to take longer than falling asleep), wakes
    /// the sleeper, and computes until it has run.
    fn run(&self, before: impl Fn()) -> Result<Seen, CalibrateError> {
        let start = Instant::now();
        let now = || start.elapsed().as_nanos() as u64;
        let (word, asleep, ran_at) = (AtomicU32::new(0), AtomicU32::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                let is_ready = pin(self.sleeper);
                for round in 0..self.count {
                    asleep.store(round + 1, Ordering::Release);
                    while word.load(Ordering::Acquire) == round {
                        futex::wait(&word, round, None);
                    }
                    ran_at.store(now(), Ordering::Release);
                }
                is_ready
            });
            let is_bound = pin(self.waker);
            let mut seen = Seen { costs: Vec::new(), latencies: Vec::new() };
            for round in 0..self.count {
                wait(|| asleep.load(Ordering::Acquire) == round + 1);
                before();
                ran_at.store(0, Ordering::Relaxed);
                word.store(round + 1, Ordering::Release);
                let called = now();
                let woken = futex::wake(&word, 1);
                let returned = now();
                wait(|| ran_at.load(Ordering::Acquire) != 0);
                // Otherwise it was not asleep yet.
                if woken == 1 {
                    seen.costs.push((returned - called) as f64);
                    seen.latencies.push(ran_at.load(Ordering::Acquire).saturating_sub(called) as f64);
                }
            }
            sleeper.join().unwrap_or(Ok(())).and(is_bound)?;
            Ok(seen)
        })
    }
}
