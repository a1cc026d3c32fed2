//! Processes that each do a fixed amount of work once, from a common start.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::board::Board;
use super::processes;
use crate::workloads::job::JobError;

/// What all processes did.
#[derive(Debug, Clone, PartialEq)]
pub struct Once {
    /// From the start to the end of the last one.
    pub elapsed: Duration,
    /// What each of them wrote down.
    pub words: Vec<Vec<u64>>,
    /// User time of them and of their children.
    pub user: Duration,
    /// System time of them and of their children.
    pub system: Duration,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
}

/// Runs `work(number, prepared, words)` in `tasks` processes, once each. `prepare(number)` is called in the
/// process before the start. `words` are `words` numbers that the process may write down.
///
/// Must be called before the process has a second thread.
///
/// # Errors
///
/// The first failure of a process.
pub fn once<T>(
    tasks: usize,
    words: usize,
    prepare: impl Fn(usize) -> Result<T, JobError>,
    work: impl Fn(T, &[AtomicU64]) -> Result<(), JobError>,
) -> Result<Once, JobError> {
    let board = Board::with_words(tasks, words)?;
    let mut start = None;
    processes::run_all(
        &board,
        |number| {
            let prepared = prepare(number)?;
            board.wait_for_start();
            work(prepared, board.words(number))
        },
        || {
            start = Some(Instant::now());
            board.start();
        },
    )?;
    let elapsed = start.map(|start| start.elapsed()).unwrap_or_default();
    let usage = usage_of_children();
    let time =
        |t: libc::timeval| Duration::new(t.tv_sec.unsigned_abs(), t.tv_usec.unsigned_abs() as u32 * 1000);
    let read = |number| board.words(number).iter().map(|word| word.load(Ordering::Relaxed)).collect();
    Ok(Once {
        elapsed,
        words: (0..tasks).map(read).collect(),
        user: time(usage.ru_utime),
        system: time(usage.ru_stime),
        voluntary_switches: usage.ru_nvcsw.unsigned_abs(),
        involuntary_switches: usage.ru_nivcsw.unsigned_abs(),
    })
}

/// All that children used that were waited for, and theirs.
fn usage_of_children() -> libc::rusage {
    // SAFETY: `rusage` is plain integers; all zero is a value of it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: a live local of the right type; the call cannot fail.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    usage
}
