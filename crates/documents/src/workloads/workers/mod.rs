//! Tasks — threads or processes — that start together, are counted for a while, and stop together.
//!
//! Each task counts its operations on cache lines of its own, in memory that threads and processes share
//! alike; the thread that keeps the time reads all counters at both ends of the counted phase. No clock is
//! read in between.
//!
//! ```text
//! all are ready | warm up (a quarter) | counted | over
//! ```

mod board;
mod once;
mod processes;
mod threads;

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use self::board::{Board, COUNTED, OVER, Slot, WARM_UP};
use super::job::{JobError, Report, Spread};

pub use self::once::{Once, once};
pub(crate) use self::processes::{ended, fork, wait};

/// The warm-up lasts this fraction of the counted time.
const WARM_UP_SHARE: u32 = 4;

/// What tasks are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Threads of one process: they share its address space and its file descriptors.
    Threads,
    /// Processes, forked from a process with one thread.
    Processes,
}

impl Kind {
    /// The word for tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Threads => "threads",
            Self::Processes => "processes",
        }
    }
}

/// What one task does again and again.
pub trait Task {
    /// Does it once, and says how many operations that was.
    ///
    /// # Errors
    ///
    /// If it fails: then the whole run does.
    fn step(&mut self) -> Result<u64, JobError>;

    /// Is called when it is over.
    ///
    /// # Errors
    ///
    /// If something is wrong in the end.
    fn end(&mut self) -> Result<(), JobError> {
        Ok(())
    }
}

impl<F: FnMut() -> Result<u64, JobError>> Task for F {
    fn step(&mut self) -> Result<u64, JobError> {
        self()
    }
}

/// What all tasks did together.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    /// Operations of each task in the counted phase.
    pub shares: Vec<u64>,
    /// Operations of all tasks from the beginning to the end: what results are checked against.
    pub all: u64,
    /// The length of the counted phase.
    pub elapsed: Duration,
    /// User time of all tasks in the counted phase.
    pub user: Duration,
    /// System time of all tasks in the counted phase.
    pub system: Duration,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
}

impl Done {
    /// The report of a workload that has no columns of its own.
    #[must_use]
    pub fn report(&self) -> Report {
        Report {
            operations: self.shares.iter().sum(),
            elapsed_s: self.elapsed.as_secs_f64(),
            user_s: self.user.as_secs_f64(),
            system_s: self.system.as_secs_f64(),
            voluntary_switches: self.voluntary_switches,
            involuntary_switches: self.involuntary_switches,
            spread: Spread::of(&self.shares),
            ..Report::default()
        }
    }
}

/// Runs `tasks` tasks of `kind`; `make(number)` makes what each of them does, in the task itself.
///
/// Processes must be asked for before the process has a second thread.
///
/// # Errors
///
/// The first failure of a task.
pub fn run<T: Task>(
    kind: Kind,
    tasks: usize,
    duration: Duration,
    make: impl Fn(usize) -> Result<T, JobError> + Sync,
) -> Result<Done, JobError> {
    let board = Board::new(tasks)?;
    let work = |number: usize| work(&board, number, &make);
    let (elapsed, shares) = match kind {
        Kind::Threads => threads::run(&board, duration, work)?,
        Kind::Processes => processes::run(&board, duration, work)?,
    };
    Ok(done(&board, elapsed, shares))
}

/// One task, from its start to its end.
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
    std::thread::sleep(duration / WARM_UP_SHARE);
    let before = board.operations();
    board.set(COUNTED);
    let start = Instant::now();
    std::thread::sleep(duration);
    let after = board.operations();
    let elapsed = start.elapsed();
    board.set(OVER);
    (elapsed, after.iter().zip(before).map(|(after, before)| after - before).collect())
}

fn done(board: &Board, elapsed: Duration, shares: Vec<u64>) -> Done {
    let sum = |of: fn(&Slot) -> u64| board.slots().iter().map(of).sum::<u64>();
    Done {
        shares,
        all: board.operations().iter().sum(),
        elapsed,
        user: Duration::from_micros(sum(Slot::user_us)),
        system: Duration::from_micros(sum(Slot::system_us)),
        voluntary_switches: sum(Slot::voluntary_switches),
        involuntary_switches: sum(Slot::involuntary_switches),
    }
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
        assert_eq!(done.shares.len(), 3);
        assert!(done.all >= done.shares.iter().sum() && done.all % 2 == 0, "{done:?}");
        assert!(done.elapsed >= MILLIS);
        assert_eq!(done.report().spread.unwrap().most, *done.shares.iter().max().unwrap());
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
