//! Tasks — threads or processes — that start together, are counted for a while, and stop together; or do a
//! fixed amount of work once.
//!
//! Each task counts its operations on cache lines of its own, in memory that threads and processes share
//! alike; the thread that keeps the time reads all counters at both ends of the counted phase. No clock is
//! read in between.
//!
//! ```text
//! all are ready | warm up (a quarter) | counted | over
//! ```

mod board;
mod processes;

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use self::board::{Board, COUNTED, OVER, WARM_UP, account};
use super::job::{JobError, Report, Spread};

pub(crate) use self::processes::{ended, fork, fork_task, wait};

/// The warm-up lasts this fraction of the counted time.
const WARM_UP_SHARE: u32 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Threads of one process: they share its address space and its file descriptors.
    Threads,
    /// Processes, forked from a process with one thread.
    Processes,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Threads => "threads",
            Self::Processes => "processes",
        }
    }
}

/// What one task does again and again.
pub(crate) trait Task {
    /// Does it once, and says how many operations that was. If it fails, the whole run does.
    fn step(&mut self) -> Result<u64, JobError>;

    /// Is called when it is over.
    fn end(&mut self) -> Result<(), JobError> {
        Ok(())
    }
}

impl<F: FnMut() -> Result<u64, JobError>> Task for F {
    fn step(&mut self) -> Result<u64, JobError> {
        self()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Done {
    /// Operations from the beginning to the end: what results are checked against.
    pub(crate) all: u64,
    /// Of the counted phase.
    pub(crate) report: Report,
}

/// Runs `tasks` tasks of `kind`; `make(number)` makes what each of them does, in the task itself.
///
/// Processes must be asked for before the process has a second thread.
pub(crate) fn run<T: Task>(
    kind: Kind,
    tasks: usize,
    duration: Duration,
    make: impl Fn(usize) -> Result<T, JobError> + Sync,
) -> Result<Done, JobError> {
    let board = Board::new(tasks, 0)?;
    let work = |number: usize| work(&board, number, &make);
    let (elapsed, shares) = match kind {
        Kind::Threads => in_threads(&board, duration, work)?,
        Kind::Processes => {
            let mut counted = None;
            processes::run(&board, work, || counted = Some(conduct(&board, duration)))?;
            counted.unwrap_or_default()
        }
    };
    let sum = |index: usize| board.slots().iter().map(|slot| slot.used(index)).sum::<u64>();
    let mut report = report(elapsed, [0, 1, 2, 3].map(sum));
    report.operations = shares.iter().sum();
    report.spread = Spread::of(&shares);
    Ok(Done { all: board.operations().iter().sum(), report })
}

/// A report with what the kernel counted, as [`account`] has it.
fn report(elapsed: Duration, account: [u64; 4]) -> Report {
    let [user_us, system_us, voluntary_switches, involuntary_switches] = account;
    Report {
        elapsed_s: elapsed.as_secs_f64(),
        user_s: user_us as f64 / 1e6,
        system_s: system_us as f64 / 1e6,
        voluntary_switches,
        involuntary_switches,
        ..Report::default()
    }
}

fn work<T: Task>(
    board: &Board,
    number: usize,
    make: &impl Fn(usize) -> Result<T, JobError>,
) -> Result<(), JobError> {
    let slot = board.slot(number);
    let mut task = make(number)?;
    board.wait_for_start();
    let mut seen = WARM_UP;
    let mut operations = 0;
    loop {
        let phase = board.phase();
        if phase != seen {
            match (seen, phase) {
                // A task that slept through the counted phase used nothing in it. If it has not done anything
                // at all, it does so now: what a workload checks in the end is what each task does.
                (WARM_UP, OVER) => {
                    if operations == 0 {
                        slot.publish(task.step()?);
                    }
                    return task.end();
                }
                (_, OVER) => {
                    slot.note_end();
                    return task.end();
                }
                _ => slot.note_start(),
            }
            seen = phase;
        }
        operations += task.step()?;
        slot.publish(operations);
    }
}

/// Lets the phases pass. Returns the length of the counted one, and each task's operations in it.
fn conduct(board: &Board, duration: Duration) -> (Duration, Vec<u64>) {
    board.start();
    thread::sleep(duration / WARM_UP_SHARE);
    let before = board.operations();
    board.set(COUNTED);
    let start = Instant::now();
    thread::sleep(duration);
    let after = board.operations();
    let elapsed = start.elapsed();
    board.set(OVER);
    (elapsed, after.iter().zip(before).map(|(after, before)| after - before).collect())
}

/// Runs `work(number)` in a thread for each slot, and lets the phases pass.
fn in_threads(
    board: &Board,
    duration: Duration,
    work: impl Fn(usize) -> Result<(), JobError> + Sync,
) -> Result<(Duration, Vec<u64>), JobError> {
    let work = &work;
    thread::scope(|scope| {
        let mut handles = Vec::new();
        for number in 0..board.slots().len() {
            let spawned = thread::Builder::new().spawn_scoped(scope, move || {
                // A thread that fails stops the others.
                work(number).inspect_err(|_| board.stop())
            });
            match spawned {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    board.stop();
                    return Err(JobError::failed(format!("cannot start thread {number}"))(error));
                }
            }
        }
        // A thread that ends before the start has failed.
        let has_ended = || handles.iter().any(thread::ScopedJoinHandle::is_finished);
        while !board.are_all_ready() && !has_ended() {
            thread::sleep(Duration::from_micros(100));
        }
        let counted = if has_ended() { <_>::default() } else { conduct(board, duration) };
        for handle in handles {
            handle.join().unwrap_or_else(|_| std::process::abort())?;
        }
        Ok(counted)
    })
}

/// Runs `work(prepared, words)` in `tasks` processes, once each. `prepare(number)` is called in the process
/// before the start. `words` are `words` numbers that the process may write down. Returns the time from the
/// start to the end of the last one, with what all of them and their children used; and the words of each.
///
/// Must be called before the process has a second thread.
pub(crate) fn once<T>(
    tasks: usize,
    words: usize,
    prepare: impl Fn(usize) -> Result<T, JobError>,
    work: impl Fn(T, &[AtomicU64]) -> Result<(), JobError>,
) -> Result<(Report, Vec<Vec<u64>>), JobError> {
    let board = Board::new(tasks, words)?;
    let mut start = None;
    let task = |number| {
        let prepared = prepare(number)?;
        board.wait_for_start();
        work(prepared, board.words(number))
    };
    processes::run(&board, task, || {
        start = Some(Instant::now());
        board.start();
    })?;
    let elapsed = start.map(|start| start.elapsed()).unwrap_or_default();
    let read = |number| board.words(number).iter().map(|word| word.load(Ordering::Relaxed)).collect();
    Ok((report(elapsed, account(libc::RUSAGE_CHILDREN)), (0..tasks).map(read).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLIS: Duration = Duration::from_millis(20);

    #[test]
    fn threads_count_for_themselves() {
        let done = run(Kind::Threads, 3, MILLIS, |_| {
            Ok(|| {
                std::thread::sleep(Duration::from_micros(100));
                Ok(2)
            })
        })
        .unwrap();
        let (report, spread) = (&done.report, done.report.spread.unwrap());
        assert!(done.all >= report.operations && done.all % 2 == 0, "{done:?}");
        assert!(report.elapsed_s >= MILLIS.as_secs_f64());
        let middle = report.operations.checked_sub(spread.least + spread.most).unwrap();
        assert!((spread.least..=spread.most).contains(&middle), "three shares: {done:?}");
    }

    #[test]
    fn a_failure_ends_the_run() {
        let fail = |number: usize| {
            Ok(move || {
                std::thread::yield_now();
                // In its first step: more than one it need not have, on a busy machine.
                if number == 1 { Err(JobError::Mismatch(String::from("one"))) } else { Ok(1) }
            })
        };
        assert_eq!(run(Kind::Threads, 2, MILLIS, fail).unwrap_err().to_string(), "wrong result: one");
    }

    #[test]
    fn a_task_that_cannot_be_made_ends_the_run() {
        let make = |number: usize| match number {
            0 => Ok(|| Ok(1)),
            _ => Err(JobError::Refused(String::from("no"))),
        };
        assert_eq!(run(Kind::Threads, 2, MILLIS, make).unwrap_err().to_string(), "no");
    }
}
