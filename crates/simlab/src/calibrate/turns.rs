//! Two threads on one CPU: how they take turns.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::cpus::{Cpus, pin};
use super::spread::{median, quick};
use super::{CalibrateError, futex};

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
    /// Lets the first player call `batch`, which takes `turns` turns, so many times; the lower quartile of
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
            futex::wait(&self.number, number, None);
            number = self.number.load(Ordering::Acquire);
        }
        self.number.store(number.wrapping_add(1), Ordering::Release);
        let start = Instant::now();
        futex::wake(&self.number, 1);
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
