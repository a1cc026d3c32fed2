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

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::mm::MapFlags;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use rustix::thread::futex;
use serde::{Deserialize, Serialize};

use super::job::{JobError, Report, Spread};
use super::mapping::Mapping;

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
            in_processes(&board, work, || counted = Some(conduct(&board, duration)))?;
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
    in_processes(&board, task, || {
        start = Some(Instant::now());
        board.start();
    })?;
    let elapsed = start.map(|start| start.elapsed()).unwrap_or_default();
    let read = |number| board.words(number).iter().map(|word| word.load(Ordering::Relaxed)).collect();
    Ok((report(elapsed, account(libc::RUSAGE_CHILDREN)), (0..tasks).map(read).collect()))
}

/// No task has started.
const READY: u32 = 0;
/// Operations do not count yet.
const WARM_UP: u32 = 1;
/// Operations count.
const COUNTED: u32 = 2;
/// All tasks stop.
const OVER: u32 = 3;

/// The phase: read by all after each operation, written three times.
#[derive(Debug)]
#[repr(align(256))]
struct Head {
    phase: AtomicU32,
    /// Tasks that wait for the start.
    ready: AtomicU32,
}

/// What one task counts, 256 bytes from the next one's: no line is shared, and none is fetched with a
/// neighbour's.
#[derive(Debug)]
#[repr(align(256))]
struct Slot {
    /// Operations from the beginning.
    operations: AtomicU64,
    /// The kernel's account when the counted phase began, and at its end: user and system time in
    /// microseconds, voluntary and involuntary switches.
    before: [AtomicU64; 4],
    after: [AtomicU64; 4],
}

/// Memory that all tasks share: the phase, and a slot of counters for each. It is a mapping of its own, so
/// that processes that are forked later share it, too.
#[derive(Debug)]
struct Board {
    _memory: Mapping,
    head: NonNull<Head>,
    slots: NonNull<Slot>,
    words: NonNull<AtomicU64>,
    tasks: usize,
    words_per_task: usize,
}

// SAFETY: what is in the mapping is atomic, and the mapping lives as long as the board.
unsafe impl Sync for Board {}

impl Board {
    /// A board for `tasks` tasks, with `words` numbers for each besides.
    fn new(tasks: usize, words: usize) -> Result<Self, JobError> {
        let length = size_of::<Head>() + tasks * (size_of::<Slot>() + words * size_of::<AtomicU64>());
        let memory = Mapping::anonymous(length, MapFlags::SHARED);
        let memory = memory.map_err(JobError::failed("cannot map memory for counters"))?;
        // Mappings begin with a page, so all types are aligned; all zero is a value of each.
        let head = memory.start.cast::<Head>();
        // SAFETY: inside of the mapping, whose length has the head in it.
        let slots = unsafe { head.add(1) }.cast::<Slot>();
        // SAFETY: still inside, or at its end if there are no words.
        let first_word = unsafe { slots.add(tasks) }.cast::<AtomicU64>();
        Ok(Self { _memory: memory, head, slots, words: first_word, tasks, words_per_task: words })
    }

    fn head(&self) -> &Head {
        // SAFETY: mapped, zeroed at first, and changed through atomics only.
        unsafe { self.head.as_ref() }
    }

    fn slots(&self) -> &[Slot] {
        // SAFETY: as in `head`; there are that many.
        unsafe { std::slice::from_raw_parts(self.slots.as_ptr(), self.tasks) }
    }

    fn slot(&self, number: usize) -> &Slot {
        &self.slots()[number]
    }

    /// What task `number` writes down.
    fn words(&self, number: usize) -> &[AtomicU64] {
        assert!(number < self.tasks, "there are {} tasks", self.tasks);
        // SAFETY: behind the slots there are that many words for each task.
        let first = unsafe { self.words.add(number * self.words_per_task) };
        // SAFETY: as before, and they are changed through atomics only.
        unsafe { std::slice::from_raw_parts(first.as_ptr(), self.words_per_task) }
    }

    /// Each task's operations so far.
    fn operations(&self) -> Vec<u64> {
        self.slots().iter().map(|slot| slot.operations.load(Ordering::Relaxed)).collect()
    }

    #[inline]
    fn phase(&self) -> u32 {
        self.head().phase.load(Ordering::Relaxed)
    }

    /// Waits for the start. Tasks may be processes, so the futex is not private.
    fn wait_for_start(&self) {
        let head = self.head();
        head.ready.fetch_add(1, Ordering::Release);
        // Acquire: what was there before the start is seen.
        while head.phase.load(Ordering::Acquire) == READY {
            // Any error means: look again.
            let _ = futex::wait(&head.phase, futex::Flags::empty(), READY, None);
        }
    }

    /// Whether all tasks wait for the start.
    fn are_all_ready(&self) -> bool {
        self.head().ready.load(Ordering::Acquire) as usize == self.tasks
    }

    fn start(&self) {
        self.head().phase.store(WARM_UP, Ordering::Release);
        self.wake();
    }

    fn set(&self, phase: u32) {
        self.head().phase.store(phase, Ordering::Relaxed);
    }

    /// Stops all tasks, whether they wait or work: something has failed.
    fn stop(&self) {
        self.set(OVER);
        self.wake();
    }

    fn wake(&self) {
        let _ = futex::wake(&self.head().phase, futex::Flags::empty(), i32::MAX as u32);
    }
}

impl Slot {
    /// Says how many operations its task has done. No other task writes it.
    #[inline]
    fn publish(&self, operations: u64) {
        self.operations.store(operations, Ordering::Relaxed);
    }

    /// Notes the kernel's account of the calling task when it sees that the counted phase has begun.
    fn note_start(&self) {
        store(&self.before);
        store(&self.after);
    }

    /// Notes it again when the task sees that all is over.
    fn note_end(&self) {
        store(&self.after);
    }

    /// What its task used in the counted phase, by the index in [`account`].
    fn used(&self, index: usize) -> u64 {
        let value = |of: &[AtomicU64; 4]| of[index].load(Ordering::Relaxed);
        value(&self.after).saturating_sub(value(&self.before))
    }
}

fn store(to: &[AtomicU64; 4]) {
    let account = account(libc::RUSAGE_THREAD);
    to.iter().zip(account).for_each(|(to, value)| to.store(value, Ordering::Relaxed));
}

/// User and system time in microseconds, voluntary and involuntary switches: of the calling thread, or of the
/// children that were waited for, and theirs.
fn account(who: libc::c_int) -> [u64; 4] {
    // SAFETY: `rusage` is plain integers; all zero is a value of it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: a live local of the right type; the call cannot fail for ourselves.
    unsafe { libc::getrusage(who, &raw mut usage) };
    let us = |t: libc::timeval| t.tv_sec.unsigned_abs() * 1_000_000 + t.tv_usec.unsigned_abs();
    [us(usage.ru_utime), us(usage.ru_stime), usage.ru_nvcsw.unsigned_abs(), usage.ru_nivcsw.unsigned_abs()]
}

/// The exit status of a task that failed and said why.
const FAILED: i32 = 1;

/// Runs `work(number)` in a process for each slot. Once all are ready, `go` is called here. They are forked
/// from a process with one thread, so everything works in them that works here; and they end with their
/// parent, even if it is killed.
fn in_processes(
    board: &Board,
    work: impl Fn(usize) -> Result<(), JobError>,
    go: impl FnOnce(),
) -> Result<(), JobError> {
    let mut children = Children(Vec::new());
    for number in 0..board.slots().len() {
        children.0.push(fork_task(number, || work(number))?);
    }
    let mut waiting = 0;
    while !board.are_all_ready() {
        thread::sleep(Duration::from_micros(100));
        // Now and then: has one ended before the start?
        waiting += 1;
        if waiting % 100 == 0 {
            children.check_alive()?;
        }
    }
    go();
    children.join()
}

/// Starts a process that does `work` and ends, with its parent at the latest.
pub(crate) fn fork_task(number: usize, work: impl FnOnce() -> Result<(), JobError>) -> Result<Pid, JobError> {
    fork(|| said(work())).map_err(JobError::failed(format!("cannot fork process {number}")))
}

/// Starts a process that does `work` and ends with the status that it returns, and with its parent. The
/// calling process has one thread.
pub(crate) fn fork(work: impl FnOnce() -> i32) -> io::Result<Pid> {
    let parent = rustix::process::getpid();
    // SAFETY: there is no other thread (the callers say so), so the child may do whatever we may.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
            // The parent may be gone already: then there will be no signal.
            let is_orphan = rustix::process::getppid() != Some(parent);
            let status = if is_orphan { FAILED } else { work() };
            // SAFETY: ends this process; nothing of the parent's is flushed or removed a second time.
            unsafe { libc::_exit(status) }
        }
        child => Pid::from_raw(child).ok_or_else(|| io::ErrorKind::InvalidData.into()),
    }
}

/// The exit status for a result; an error is said on standard error.
fn said(result: Result<(), JobError>) -> i32 {
    match result {
        Ok(()) => 0,
        Err(trouble) => {
            eprintln!("{trouble}");
            FAILED
        }
    }
}

/// Processes that are not reaped yet. Those that are left are killed.
struct Children(Vec<Pid>);

impl Children {
    fn check_alive(&mut self) -> Result<(), JobError> {
        for index in 0..self.0.len() {
            if let Some(status) = wait(self.0[index], WaitOptions::NOHANG)? {
                self.0.swap_remove(index);
                return Err(ended(status)
                    .err()
                    .unwrap_or(JobError::Mismatch(String::from("a task ended by itself"))));
            }
        }
        Ok(())
    }

    fn join(&mut self) -> Result<(), JobError> {
        while let Some(child) = self.0.pop() {
            if let Some(status) = wait(child, WaitOptions::empty())? {
                ended(status)?;
            }
        }
        Ok(())
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        for child in &self.0 {
            let _ = rustix::process::kill_process(*child, Signal::KILL);
        }
        for child in &self.0 {
            let _ = wait(*child, WaitOptions::empty());
        }
    }
}

/// Waits for `child`; none if it still runs.
pub(crate) fn wait(child: Pid, options: WaitOptions) -> Result<Option<WaitStatus>, JobError> {
    loop {
        match rustix::process::waitpid(Some(child), options) {
            Err(rustix::io::Errno::INTR) => {}
            result => {
                return Ok(result
                    .map_err(JobError::failed("cannot wait for a process"))?
                    .map(|(_, status)| status));
            }
        }
    }
}

/// What the end of a process means.
pub(crate) fn ended(status: WaitStatus) -> Result<(), JobError> {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(0), _) => Ok(()),
        (Some(FAILED), _) => Err(JobError::Refused(String::from("a process failed; its message is above"))),
        (_, Some(signal)) => Err(JobError::Mismatch(format!("a process was killed by signal {signal}"))),
        (code, _) => Err(JobError::Mismatch(format!("a process ended with status {}", code.unwrap_or(-1)))),
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
