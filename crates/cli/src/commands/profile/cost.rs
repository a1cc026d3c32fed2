//! The cost of recording, without running the program again: the recorder's own measurement, and, for events
//! too short to be timed, their number × the cost of one.
//!
//! The cost of such an event is measured on this machine, with the recorder in front of the same locks: a
//! worker process locks a mutex that no thread has waited for, and one that has been waited for, faster than
//! that is recorded. The cost is the time with the recorder less the time without it.

use std::env;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context, ensure};
use spinpark_profile::cost::Untimed;

use super::launch::Launch;
use crate::say::Say;

/// The hidden command that measures.
pub(crate) const COMMAND: &str = "__profile-cost";
/// How often it runs, alternately with and without the recorder. The fastest part of the fastest run counts:
/// disturbances only make it slower.
const RUNS: usize = 3;
/// Parts of a run.
const PARTS: u32 = 10;
/// In a part. A pair takes 17 ns: all six runs take 50 ms.
const PAIRS: u32 = 10_000;

/// Nanoseconds for a pair of lock and unlock, and for one that is left out of a sample.
#[derive(Clone, Copy, Debug)]
struct Times {
    pair: f64,
    left_out: f64,
}

/// Measures them; none if that is not possible.
pub(crate) fn measure(launch: &Launch) -> Option<Untimed> {
    let (mut with, mut without) = (Times::UNKNOWN, Times::UNKNOWN);
    for _ in 0..RUNS {
        with = with.or_faster(times(Some(launch)).ok()?);
        without = without.or_faster(times(None).ok()?);
    }
    Some(Untimed {
        counted: (with.pair - without.pair).max(0.0),
        left_out: (with.left_out - without.left_out).max(0.0),
    })
}

impl Times {
    const UNKNOWN: Self = Self { pair: f64::INFINITY, left_out: f64::INFINITY };

    fn or_faster(self, other: Self) -> Self {
        Self { pair: self.pair.min(other.pair), left_out: self.left_out.min(other.left_out) }
    }
}

/// One run.
fn times(launch: Option<&Launch>) -> anyhow::Result<Times> {
    let scratch = tempfile::tempdir().context("cannot make a temporary directory")?;
    let mut command = Command::new(env::current_exe()?);
    command.arg(COMMAND).stdin(Stdio::null()).stderr(Stdio::null());
    match launch {
        Some(launch) => launch.set_environment(&mut command, scratch.path()),
        None => launch_free(&mut command),
    }
    let output = command.output()?;
    ensure!(output.status.success(), "the measurement failed");
    let text = String::from_utf8(output.stdout)?;
    let mut numbers = text.split_whitespace().map(str::parse);
    let mut next = || numbers.next().context("a number is missing")?.context("not a number");
    Ok(Times { pair: next()?, left_out: next()? })
}

/// The user's environment, unchanged.
fn launch_free(command: &mut Command) {
    command.env_remove("SPINPARK_PROFILE_DIR");
}

/// The hidden command: prints both times.
pub(crate) fn calibrate() -> anyhow::Result<ExitCode> {
    // With one thread glibc's locks leave out atomic operations.
    let other = std::thread::spawn(std::thread::park);
    let mutex = Mutex::new();
    let pair = time_of(PAIRS, || mutex.pair());
    mutex.lock();
    mutex.wait_in_vain();
    mutex.unlock();
    let left_out = time_of(PAIRS, || mutex.pair());
    other.thread().unpark();
    let _ = other.join();
    Say { on_stderr: false }.line(format_args!("{pair} {left_out}"));
    Ok(ExitCode::SUCCESS)
}

/// Nanoseconds of one of `count`, in the fastest part.
fn time_of(count: u32, mut work: impl FnMut()) -> f64 {
    (0..PARTS).fold(f64::INFINITY, |best, _| {
        let start = Instant::now();
        for _ in 0..count {
            work();
        }
        best.min(start.elapsed().as_nanos() as f64 / f64::from(count))
    })
}

/// A pthread mutex.
struct Mutex(Box<std::cell::UnsafeCell<libc::pthread_mutex_t>>);

impl Mutex {
    fn new() -> Self {
        Self(Box::new(std::cell::UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER)))
    }

    fn lock(&self) {
        // SAFETY: an initialised mutex that does not move.
        unsafe { libc::pthread_mutex_lock(self.0.get()) };
    }

    fn unlock(&self) {
        // SAFETY: this thread holds it.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }

    fn pair(&self) {
        self.lock();
        self.unlock();
    }

    /// It is held; the deadline was in 1970.
    fn wait_in_vain(&self) {
        let past = libc::timespec { tv_sec: 1, tv_nsec: 0 };
        // SAFETY: an initialised mutex, and a time.
        unsafe { libc::pthread_mutex_timedlock(self.0.get(), &past) };
    }
}
