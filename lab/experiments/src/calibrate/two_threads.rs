//! Two threads: how they take turns on one CPU, and what it takes to wake one that sleeps.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

use super::cpus::{Cpus, pin};
use super::system_calls::busy;
use super::{CalibrateError, median, quick, system_calls};

/// One turn of two threads that wake each other through a futex and sleep, on one CPU, ns: a wake-up, a wait,
/// a switch.
pub(super) fn hand_over(cpus: &Cpus) -> Result<Option<f64>, CalibrateError> {
    const TURNS: u32 = 200;
    let batch = |game: &Game| {
        let start = Instant::now();
        for _ in 0..TURNS {
            game.turn(0);
        }
        start.elapsed().as_nanos() as f64 / f64::from(2 * TURNS)
    };
    Game::play(cpus, 40, TURNS, batch)
}

/// The part of such a turn that is the waker's call, ns.
pub(super) fn wake(cpus: &Cpus) -> Result<Option<f64>, CalibrateError> {
    Game::play(cpus, 2000, 1, |game| game.turn(0).as_nanos() as f64)
}

/// Two threads that take turns on one CPU.
struct Game {
    /// Its lowest bit says whose turn it is.
    number: AtomicU32,
}

impl Game {
    /// Lets the first player call `batch`, which takes `turns` turns, several times; the lower quartile of
    /// what it returns.
    fn play(
        cpus: &Cpus,
        batches: u32,
        turns: u32,
        batch: impl Fn(&Self) -> f64 + Sync,
    ) -> Result<Option<f64>, CalibrateError> {
        let game = Self { number: AtomicU32::new(0) };
        // Woken threads must not preempt, or the one who wakes would be switched away before it waits.
        let ready = || pin(cpus.main().cpu).and_then(|()| become_batch());
        thread::scope(|scope| {
            let first = scope.spawn(|| {
                let is_ready = ready();
                let values: Vec<f64> = (0..batches).map(|_| batch(&game)).collect();
                is_ready.map(|()| values)
            });
            let second = scope.spawn(|| {
                let is_ready = ready();
                for _ in 0..batches * turns {
                    game.turn(1);
                }
                is_ready
            });
            second.join().unwrap_or(Ok(()))?;
            Ok(quick(&first.join().unwrap_or_else(|_| Ok(Vec::new()))?))
        })
    }

    /// Waits for its turn, and ends it; how long it took to wake the other one.
    fn turn(&self, own: u32) -> Duration {
        let mut number = self.number.load(Ordering::Acquire);
        while number % 2 != own {
            system_calls::wait(&self.number, number, None);
            number = self.number.load(Ordering::Acquire);
        }
        self.number.store(number.wrapping_add(1), Ordering::Release);
        let start = Instant::now();
        system_calls::wake(&self.number, 1);
        start.elapsed()
    }
}

/// Makes the calling thread one that never preempts when it is woken.
fn become_batch() -> Result<(), CalibrateError> {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameters live; the call changes the class of this thread only.
    if unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const parameters) } == 0 {
        Ok(())
    } else {
        Err(CalibrateError::Refused("make a thread SCHED_BATCH", io::Error::last_os_error()))
    }
}

/// For how long one of two threads that compute on one CPU runs, before the other one does, ns.
pub(super) fn slice(cpus: &Cpus) -> Result<Option<f64>, CalibrateError> {
    const TIME: Duration = Duration::from_millis(600);
    /// A shorter gap is an interrupt.
    const LEAST_GAP: Duration = Duration::from_micros(400);
    let main = cpus.main().cpu;
    let is_over = AtomicBool::new(false);
    // The lengths of runs between gaps.
    let runs = || {
        let is_bound = pin(main);
        let mut runs = Vec::new();
        let (mut began, mut last) = (Instant::now(), Instant::now());
        while !is_over.load(Ordering::Relaxed) {
            let now = Instant::now();
            if now - last > LEAST_GAP {
                runs.push((last - began).as_nanos() as f64);
                began = now;
            }
            last = now;
        }
        is_bound.map(|()| runs)
    };
    thread::scope(|scope| {
        let both = [scope.spawn(runs), scope.spawn(runs)];
        thread::sleep(TIME);
        is_over.store(true, Ordering::Relaxed);
        let mut all = Vec::new();
        for one in both {
            all.extend(one.join().unwrap_or_else(|_| Ok(Vec::new()))?);
        }
        Ok(median(&all))
    })
}

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

fn until(done: impl Fn() -> bool) {
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
                        system_calls::wait(&word, round, None);
                    }
                    ran_at.store(now(), Ordering::Release);
                }
                is_ready
            });
            let is_bound = pin(self.waker);
            let mut seen = Seen { costs: Vec::new(), latencies: Vec::new() };
            for round in 0..self.count {
                until(|| asleep.load(Ordering::Acquire) == round + 1);
                before();
                ran_at.store(0, Ordering::Relaxed);
                word.store(round + 1, Ordering::Release);
                let called = now();
                let woken = system_calls::wake(&word, 1);
                let returned = now();
                until(|| ran_at.load(Ordering::Acquire) != 0);
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
