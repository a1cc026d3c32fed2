//! What system calls take, and how late a timer is.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::{ptr, thread};

use super::cpus::{Cpus, pin};
use super::{cost, median, quick};

const BATCHES: usize = 200;
const CALLS: usize = 200;

/// `getppid`, ns.
pub(super) fn system_call() -> f64 {
    cost(BATCHES, CALLS, || {
        // SAFETY: takes nothing and cannot fail.
        unsafe { libc::syscall(libc::SYS_getppid) };
    })
}

/// `FUTEX_WAKE` without sleepers, ns.
pub(super) fn futex_wake() -> f64 {
    let word = AtomicU32::new(0);
    cost(BATCHES, CALLS, || {
        wake(&word, 1);
    })
}

/// `FUTEX_WAIT` that returns at once since the value is another one, ns.
pub(super) fn futex_wait() -> f64 {
    let word = AtomicU32::new(0);
    cost(BATCHES, CALLS, || wait(&word, 1, None))
}

/// Reading the monotonic clock, ns.
pub(super) fn clock() -> f64 {
    cost(BATCHES, CALLS, || {
        std::hint::black_box(Instant::now());
    })
}

/// The CPU time of a thread that runs on another CPU (or sleeps, if there is no other), ns.
pub(super) fn cpu_clock(cpus: &Cpus) -> Option<f64> {
    const NONE: i32 = i32::MAX;
    let (is_over, clock) = (AtomicBool::new(false), AtomicI32::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut id = NONE;
            // SAFETY: cannot fail.
            let own = unsafe { libc::pthread_self() };
            // SAFETY: the calling thread lives; `id` is a local.
            let failed = unsafe { libc::pthread_getcpuclockid(own, &raw mut id) };
            clock.store(if failed == 0 { id } else { NONE }, Ordering::Relaxed);
            let is_elsewhere = cpus.other().is_some_and(|other| pin(other.cpu).is_ok());
            while !is_over.load(Ordering::Relaxed) {
                if is_elsewhere { std::hint::spin_loop() } else { thread::sleep(Duration::from_millis(1)) }
            }
        });
        while clock.load(Ordering::Relaxed) == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        let id = clock.load(Ordering::Relaxed);
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let value = (id != NONE).then(|| {
            cost(BATCHES, CALLS, || {
                // SAFETY: writes a local.
                unsafe { libc::clock_gettime(id, &raw mut time) };
            })
        });
        is_over.store(true, Ordering::Relaxed);
        value
    })
}

/// What a `membarrier` takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Membarrier {
    /// While the process's other thread sleeps, ns.
    pub(super) asleep: Option<f64>,
    /// While it runs on another CPU, ns.
    pub(super) running: Option<f64>,
    /// For how long that CPU does not come to its own work, ns.
    pub(super) interrupt: Option<f64>,
}

/// What a `membarrier` takes, measured.
pub(super) fn membarrier(cpus: &Cpus) -> Membarrier {
    const ROUNDS: usize = 400;
    // SAFETY: a system call without pointers; both commands take no flags.
    let call = |command: libc::c_int| unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
    if call(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) != 0 {
        return Membarrier { asleep: None, running: None, interrupt: None };
    }
    let barrier = || {
        let start = Instant::now();
        call(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED);
        start.elapsed().as_nanos() as f64
    };
    let (may_run, is_over, is_up) = (AtomicBool::new(false), AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            let is_elsewhere = cpus.other().is_some_and(|other| pin(other.cpu).is_ok());
            while !may_run.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(10));
            }
            is_up.store(true, Ordering::Relaxed);
            if is_elsewhere { gaps(&is_over) } else { Vec::new() }
        });
        let asleep: Vec<f64> = (0..ROUNDS).map(|_| barrier()).collect();
        may_run.store(true, Ordering::Relaxed);
        while !is_up.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(1));
        }
        let mut running = Vec::with_capacity(ROUNDS);
        if cpus.other().is_some() {
            for _ in 0..ROUNDS {
                running.push(barrier());
                busy(Duration::from_micros(20));
            }
        }
        is_over.store(true, Ordering::Relaxed);
        let gaps = other.join().unwrap_or_default();
        // Fewer interrupts than barriers: something else was seen.
        let interrupt = (gaps.len() > ROUNDS / 2).then(|| median(&gaps)).flatten();
        Membarrier { asleep: quick(&asleep), running: median(&running), interrupt }
    })
}

/// How long this thread did not come to its work, each time, ns: readings of the clock that are too far
/// apart.
fn gaps(is_over: &AtomicBool) -> Vec<f64> {
    const LEAST: f64 = 250.0;
    let mut gaps = Vec::new();
    let mut last = Instant::now();
    while !is_over.load(Ordering::Relaxed) {
        let now = Instant::now();
        let gap = (now - last).as_nanos() as f64;
        if gap > LEAST {
            gaps.push(gap);
        }
        last = now;
    }
    gaps
}

/// Computes for so long.
pub(super) fn busy(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// Wakes at most `count` threads that wait for `word`; how many were woken.
pub(super) fn wake(word: &AtomicU32, count: i32) -> i64 {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word lives; the call reads nothing else.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, count) }
}

/// Waits while `word` is `value`, at most for `timeout`.
pub(super) fn wait(word: &AtomicU32, value: u32, timeout: Option<Duration>) {
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    let timeout = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs() as libc::time_t,
        tv_nsec: timeout.subsec_nanos().into(),
    });
    let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the word and the timeout live; a null timeout is none.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, timeout) };
}

/// How much later than asked a thread runs again that waits for a futex for 50 µs, ns: the timer, the CPU
/// that was idle, the way back.
pub(super) fn lateness() -> Option<f64> {
    const TIMEOUT: Duration = Duration::from_micros(50);
    let word = AtomicU32::new(0);
    let late: Vec<f64> = (0..200)
        .map(|_| {
            let start = Instant::now();
            wait(&word, 0, Some(TIMEOUT));
            start.elapsed().saturating_sub(TIMEOUT).as_nanos() as f64
        })
        .collect();
    quick(&late)
}
