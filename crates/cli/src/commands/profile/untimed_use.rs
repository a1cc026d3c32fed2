//! What the recorder costs where it does not time itself: a use of a lock that no thread has waited for.
//!
//! It is measured on this machine, with the recorder in front of the same locks: a worker process locks such a
//! mutex again and again. The cost is the time with the recorder less the time without it.

use std::env;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context, ensure};

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

/// Nanoseconds for a use of a lock that no thread has waited for; none if that cannot be measured.
pub(crate) fn measure(launch: &Launch) -> Option<f64> {
    let (mut with, mut without) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..RUNS {
        with = with.min(time_of_pair(Some(launch)).ok()?);
        without = without.min(time_of_pair(None).ok()?);
    }
    Some((with - without).max(0.0))
}

/// Nanoseconds for a pair of lock and unlock, in one run.
fn time_of_pair(launch: Option<&Launch>) -> anyhow::Result<f64> {
    let scratch = tempfile::tempdir().context("cannot make a temporary directory")?;
    let mut command = Command::new(env::current_exe()?);
    command.arg(COMMAND).stdin(Stdio::null()).stderr(Stdio::null());
    match launch {
        Some(launch) => launch.set_environment(&mut command, scratch.path()),
        None => launch_free(&mut command),
    }
    let output = command.output()?;
    ensure!(output.status.success(), "the measurement failed");
    String::from_utf8(output.stdout)?.trim_ascii().parse().context("not a number")
}

/// The user's environment, unchanged.
fn launch_free(command: &mut Command) {
    command.env_remove("SPINPARK_PROFILE_DIR");
}

/// The hidden command: prints the time.
pub(crate) fn calibrate() -> anyhow::Result<ExitCode> {
    // With one thread glibc's locks leave out atomic operations.
    let other = std::thread::spawn(std::thread::park);
    let mutex = Mutex::new();
    let pair = time_of(PAIRS, || mutex.pair());
    other.thread().unpark();
    let _ = other.join();
    Say { on_stderr: false }.line(pair);
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

    fn pair(&self) {
        // SAFETY: an initialised mutex that does not move; this thread unlocks what it has locked.
        unsafe { libc::pthread_mutex_lock(self.0.get()) };
        // SAFETY: as above.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }
}
