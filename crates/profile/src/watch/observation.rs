//! The result of observing a run: its file, and how it becomes part of the profiles of the run.

use std::cmp::Reverse;
use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::glibc::{self, GlibcLock};
use super::image::Image;
use super::lock_waits::LockWaits;
use crate::model::{
    LocksOf, Observed, OtherProgram, Profile, Recorder, Rest, Role, Thread, ThreadTime, Threads,
};
use crate::read::is_never_woken;
use crate::symbols::Symbols;

/// The file of a recording's directory.
pub const FILE: &str = "observed.json";
/// Its first field.
pub(super) const FORMAT: &str = "spinpark-observation";
pub(super) const VERSION: u32 = 1;

/// Programs that are kept one by one.
const MOST: usize = 64;
/// Other programs that a profile lists.
const LISTED: usize = 8;

/// What was seen during a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// `spinpark-observation`.
    pub format: String,
    /// 1.
    pub version: u32,
    /// When it began, ns since 1970.
    pub started: u64,
    /// How long it lasted, ns.
    pub duration: u64,
    /// How often the observer read all threads.
    #[serde(rename = "looks")]
    pub snapshots: u64,
    /// CPU time of the observer, ns.
    pub cost: u64,
    /// CPU time of all processes that have ended, as the kernel counted it, ns.
    pub cpu: u64,
    /// CPU time of all programs of the machine meanwhile, on the CPUs that the command could use, ns.
    #[serde(default)]
    pub machine: Option<u64>,
    /// The programs.
    pub programs: Programs,
}

/// Programs of a run: those with the most time, and how many others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Programs {
    /// Those that are kept.
    pub kept: Vec<Program>,
    /// The others.
    pub rest: Rest,
}

/// A program that a process ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// The process.
    pub pid: u32,
    /// Its number in its own namespace of processes.
    pub inner_pid: u32,
    /// The path.
    pub program: String,
    /// When it was first seen, ns after the start of the run.
    pub from: u64,
    /// When it was last seen, ns after the start of the run.
    pub until: u64,
    /// It still ran when the run had ended.
    pub is_left: bool,
    /// Whether it had the recorder.
    pub recorder: Recorder,
    /// Its threads.
    pub threads: Threads,
    /// Those of its idle threads that lived longest, with their time.
    pub idle: Vec<(u32, ThreadTime)>,
    /// The locks of glibc's own at which its threads were seen sleeping.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub glibcs: Vec<GlibcLock>,
    /// What these are made of, in the process that has observed it.
    #[serde(skip)]
    pub(super) lock_waits: LockWaits,
}

impl Program {
    pub(super) fn new(pid: u32, mut image: Image, is_left: bool) -> Self {
        for (id, task) in std::mem::take(&mut image.tasks) {
            image.end(id, &task);
        }
        image.keep_idle();
        Self {
            pid,
            inner_pid: image.inner_pid,
            program: image.program,
            from: image.from,
            until: image.until,
            is_left,
            recorder: image.recorder,
            threads: image.ended,
            idle: image.idle,
            glibcs: Vec::new(),
            lock_waits: image.lock_waits,
        }
    }

    /// What it weighs among the others: time of threads that were not idle, then all time.
    fn weight(&self) -> (bool, u64, u64) {
        (self.is_left, self.threads.time.total(), self.threads.idle_time.total())
    }

    fn count_in(&self, rest: &mut Rest) {
        let (number, time) = match self.recorder.is_missing() {
            true => (&mut rest.unrecorded, &mut rest.unrecorded_time),
            false => (&mut rest.recorded, &mut rest.recorded_time),
        };
        *number += 1;
        *time += self.threads.time.total();
        rest.cpu += self.cpu();
    }

    fn cpu(&self) -> u64 {
        self.threads.time.running + self.threads.idle_time.running
    }
}

impl Extend<Program> for Programs {
    fn extend<I: IntoIterator<Item = Program>>(&mut self, programs: I) {
        self.kept.extend(programs);
        if self.kept.len() > 2 * MOST {
            self.keep(MOST);
        }
    }
}

impl Programs {
    /// Keeps the `most` with the most time, in the order in which they began.
    fn keep(&mut self, most: usize) {
        self.kept.sort_by_key(|program| Reverse(program.weight()));
        for program in self.kept.drain(most.min(self.kept.len())..) {
            program.count_in(&mut self.rest);
        }
        self.kept.sort_by_key(|program| (program.from, program.pid));
    }
}

impl Observation {
    /// Reads the one of a directory; none if there is none that this version reads.
    #[must_use]
    pub fn of(directory: &Path) -> Option<Self> {
        let text = fs::read(directory.join(FILE)).ok()?;
        let found: Self = serde_json::from_slice(&text).ok()?;
        (found.format == FORMAT && found.version == VERSION).then_some(found)
    }

    /// Writes it into `directory`, unless that would then have more than `most` bytes more on the disk.
    ///
    /// # Errors
    /// As the system has them.
    pub fn save(&mut self, directory: &Path, most: u64) -> io::Result<()> {
        self.programs.keep(MOST);
        let text = serde_json::to_string(self)?;
        /// Files take whole pages.
        const PAGE: usize = 4096;
        if text.len().next_multiple_of(PAGE) as u64 > most {
            return Ok(());
        }
        let unfinished = directory.join(format!(".{FILE}.{}", std::process::id()));
        let written =
            fs::write(&unfinished, text).and_then(|()| fs::rename(&unfinished, directory.join(FILE)));
        if written.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        written
    }

    /// The program that a profile is of, by its process, its path, and when it began.
    fn program_of(&self, profile: &Profile) -> Option<usize> {
        /// The recorder's start and the first sample.
        const NEAR: u64 = 100_000_000;
        let started = profile.started.saturating_sub(self.started);
        // The program may have become one without the recorder before the first sample of it. The library
        // records without.
        let may_be = |it: &Program| profile.locks_of == LocksOf::Library || !it.recorder.is_missing();
        let candidates = || {
            let programs = self.programs.kept.iter().enumerate();
            programs.filter(|(_, it)| {
                it.inner_pid == profile.pid && started < it.until.saturating_add(NEAR) && may_be(it)
            })
        };
        let file = |path: &str| path.trim_end_matches(" (deleted)").to_owned();
        let same = candidates().filter(|(_, it)| file(&it.program) == file(&profile.program));
        let nearest = same.min_by_key(|(_, it)| it.from.abs_diff(started));
        // Its path may differ from within another root.
        let only = || candidates().next().filter(|_| candidates().count() == 1);
        Some(nearest.or_else(only)?.0)
    }
}

impl Observation {
    /// Finds out which of the waits that were seen are for glibc's own locks, and names them. To be called
    /// once, by the process that has observed them.
    pub fn name_glibcs(&mut self, symbols: &mut Symbols) {
        for program in &mut self.programs.kept {
            let waits = std::mem::take(&mut program.lock_waits);
            if !waits.waits.is_empty() {
                program.glibcs = glibc::locks_of(&waits, (program.pid, self.started + program.from), symbols);
            }
        }
    }

    /// The profiles of a run, each with what was seen of it and of the other programs.
    pub(crate) fn added_to(&self, profiles: Vec<Profile>) -> Vec<Profile> {
        let profiles: Vec<Profile> = profiles.into_iter().map(glibc::without).collect();
        let programs: Vec<Option<usize>> = profiles.iter().map(|profile| self.program_of(profile)).collect();
        let recorded: Vec<Waited> = profiles.iter().map(Waited::of).collect();
        // Of several recordings of one program, one has glibc's locks.
        let rank = |at: &usize| (profiles[*at].locks_of == LocksOf::Library, *at);
        let first_of: Vec<Option<usize>> = programs
            .iter()
            .map(|own| (0..programs.len()).filter(|other| programs[*other] == *own).min_by_key(rank))
            .collect();
        let complete = |(at, profile): (usize, Profile)| {
            let own = programs[at];
            // Locks of glibc and of the library are recorded apart.
            let together =
                (0..programs.len()).filter(|other| *other == at || own.is_some() && programs[*other] == own);
            let waited = together.fold(Waited::default(), |sum, other| sum.and(&recorded[other]));
            let is_first = first_of[at] == Some(at);
            let glibcs = own.filter(|_| is_first).map_or(&[][..], |own| &self.programs.kept[own].glibcs);
            glibc::with(profile, self.seen_from(own, &waited), glibcs)
        };
        profiles.into_iter().enumerate().map(complete).collect()
    }

    /// What a reader without a profile gets.
    pub(crate) fn seen_by_none(&self) -> Observed {
        self.seen_from(None, &Waited::default())
    }

    /// What a profile gets, which is of the program number `own` and recorded `waited`.
    fn seen_from(&self, own: Option<usize>, waited: &Waited) -> Observed {
        let all = &self.programs;
        let program = own.map(|own| &all.kept[own]);
        let mut others: Vec<&Program> = all
            .kept
            .iter()
            .enumerate()
            .filter(|(at, _)| Some(*at) != own)
            .map(|(_, program)| program)
            .collect();
        others.sort_by_key(|program| Reverse(program.weight()));
        let mut rest = all.rest;
        others
            .split_off(LISTED.min(others.len()))
            .into_iter()
            .for_each(|program| program.count_in(&mut rest));
        let listed = |program: &Program| OtherProgram {
            pid: program.pid,
            program: program.program.clone(),
            from: program.from,
            until: program.until,
            is_left: program.is_left,
            recorder: program.recorder,
            threads: program.threads.clone(),
        };
        let cpu_seen = all.kept.iter().map(Program::cpu).sum::<u64>() + all.rest.cpu;
        Observed {
            duration: self.duration,
            interval: self.duration / self.snapshots.max(1),
            cost: self.cost,
            cpu: self.cpu,
            cpu_seen,
            cpu_of_others: self
                .machine
                .map(|machine| machine.saturating_sub(self.cpu.max(cpu_seen) + self.cost)),
            seen: program.map_or(0, |program| program.until - program.from),
            is_left: program.is_some_and(|program| program.is_left),
            threads: program.map_or_else(Threads::default, |program| combined(program, waited)),
            others: others.into_iter().map(listed).collect(),
            rest,
        }
    }
}

/// What was recorded of a process.
#[derive(Clone, Debug, Default)]
struct Waited {
    locks: u64,
    signals: u64,
    /// For what may be either.
    unclear: u64,
    /// By thread.
    threads: Vec<ThreadWaits>,
    /// For how long it was recorded.
    duration: u64,
}

/// What was recorded of a thread.
#[derive(Clone, Copy, Debug)]
struct ThreadWaits {
    id: u32,
    /// For locks; 0 of one that took over from others, of which this may be.
    locks: u64,
    signals: u64,
    unclear: u64,
}

impl ThreadWaits {
    fn of(profile: &Profile, thread: &Thread) -> Self {
        let locks = if thread.users == 1 { thread.locks() } else { 0 };
        let unclear = thread.unclear.iter().map(|(_, waited)| waited).sum::<u64>();
        let unclear = unclear + never_woken(profile, Some(thread.id));
        Self { id: thread.id, locks, signals: thread.signals, unclear }
    }
}

/// The time of waits, of all threads or of one, that have lasted so long that they are in no sum.
fn never_woken(profile: &Profile, id: Option<u32>) -> u64 {
    let waits = profile.waiting.iter().filter(|wait| id.is_none_or(|id| id == wait.thread));
    let waits = waits.filter(|wait| is_never_woken(wait.role == Role::Wake, wait.time, profile.duration));
    waits.map(|wait| wait.time).sum()
}

impl Waited {
    fn of(profile: &Profile) -> Self {
        Self {
            locks: profile.waited(),
            signals: profile.signal_wait(),
            unclear: profile.wait_in(Role::Wake) + never_woken(profile, None),
            duration: profile.duration,
            threads: profile.threads.iter().map(|thread| ThreadWaits::of(profile, thread)).collect(),
        }
    }

    fn and(mut self, other: &Self) -> Self {
        self.locks += other.locks;
        self.signals += other.signals;
        self.unclear += other.unclear;
        self.duration = self.duration.max(other.duration);
        self.threads.extend(&other.threads);
        self
    }
}

/// The program's threads, with what was recorded: from the time in futexes that of locks and signals is
/// taken, and where that is not enough, from the time without a CPU (a waiter that was woken) and on one
/// (spinning), so that the parts stay the whole.
fn combined(program: &Program, waited: &Waited) -> Threads {
    /// A thread that waited for a lock for more than this share of its time is not idle.
    const FEW: f64 = 0.05;
    let mut threads = program.threads.clone();
    // Of a run that was observed in part, that part of what was recorded is taken.
    let seen = program.until.saturating_sub(program.from) as f64;
    let part = if waited.duration > 0 { (seen / waited.duration as f64).min(1.0) } else { 1.0 };
    let of_part = |recorded: u64| (recorded as f64 * part).round() as u64;
    let (mut signals, mut unclear) = (of_part(waited.signals), of_part(waited.unclear));
    for (id, time) in &program.idle {
        let known = waited.threads.iter().rfind(|known| known.id == *id);
        if known.is_some_and(|known| known.locks as f64 > FEW * time.total() as f64) {
            threads.idle -= 1;
            threads.time.add(time);
            threads.idle_time.subtract(time);
            continue;
        }
        threads.idle_ids.push(*id);
        let Some(known) = known else { continue };
        let mut futexes = time.futexes.min(threads.idle_time.futexes);
        let mut taken = |recorded: u64, left: &mut u64| {
            let some = recorded.min(futexes).min(*left);
            *left -= some;
            futexes -= some;
            threads.idle_time.futexes -= some;
            some
        };
        let (signal, work) = (taken(known.signals, &mut signals), taken(known.unclear, &mut unclear));
        threads.idle_time.signals += signal;
        threads.idle_time.unclear += work;
    }
    let time = &mut threads.time;
    // What the observer saw itself is of the time that it saw.
    let glibcs = program.glibcs.iter().map(GlibcLock::time).sum::<u64>();
    let glibcs = take(glibcs, [&mut time.futexes]);
    let locks = glibcs
        + take(
            of_part(waited.locks),
            // Threads that try for a lock sleep in between.
            [&mut time.futexes, &mut time.unknown, &mut time.runnable, &mut time.sleep, &mut time.running],
        );
    let signals = take(signals, [&mut time.futexes, &mut time.unknown, &mut time.runnable]);
    // A loop of `sched_yield` runs.
    let unclear =
        take(unclear, [&mut time.futexes, &mut time.unknown, &mut time.runnable, &mut time.running]);
    (time.locks, time.signals, time.unclear) = (locks, signals, unclear);
    threads
}

/// Takes up to `wanted` from `parts`, from the first of them first; what was taken.
fn take<const N: usize>(wanted: u64, parts: [&mut u64; N]) -> u64 {
    let mut taken = 0;
    for part in parts {
        let some = (wanted - taken).min(*part);
        *part -= some;
        taken += some;
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn program(pid: u32, path: &str, from: u64, until: u64, time: ThreadTime) -> Program {
        Program {
            pid,
            inner_pid: pid,
            program: path.to_owned(),
            from: from * MS,
            until: until * MS,
            is_left: false,
            recorder: Recorder::Loaded,
            threads: Threads { number: 3, idle: 1, time, samples: 100, ..Threads::default() },
            idle: Vec::new(),
            glibcs: Vec::new(),
            lock_waits: LockWaits::default(),
        }
    }

    fn waits(id: u32, locks: u64, signals: u64) -> ThreadWaits {
        ThreadWaits { id, locks, signals, unclear: 0 }
    }

    #[test]
    fn what_was_recorded_is_part_of_the_time() {
        let time =
            ThreadTime { running: 300 * MS, runnable: 50 * MS, futexes: 600 * MS, ..ThreadTime::default() };
        let mut program = program(7, "/bin/app", 0, 1_000, time);
        program.threads.idle_time.futexes = 500 * MS;
        program.idle = vec![(70, ThreadTime { futexes: 500 * MS, ..ThreadTime::default() })];
        // An idle worker waited for signals, and so did others; locks took more than the futexes that are
        // left have.
        let waited = Waited {
            locks: 520 * MS,
            signals: 620 * MS,
            unclear: 0,
            duration: 0,
            threads: vec![waits(70, 0, 500 * MS), waits(71, 520 * MS, 0)],
        };
        let threads = combined(&program, &waited);
        assert_eq!(threads.time.total(), time.total());
        assert_eq!((threads.time.locks, threads.time.signals), (520 * MS, 120 * MS));
        assert_eq!(
            (threads.time.futexes, threads.time.runnable, threads.time.running),
            (0, 10 * MS, 300 * MS)
        );
        assert_eq!((threads.idle, threads.idle_time.signals), (1, 500 * MS));
        // A thread that waited for a lock was not idle, however little it ran.
        let waited = Waited { locks: 400 * MS, threads: vec![waits(70, 400 * MS, 0)], ..Waited::default() };
        let threads = combined(&program, &waited);
        assert_eq!((threads.idle, threads.time.locks), (0, 400 * MS));
        assert_eq!(threads.time.total(), time.total() + 500 * MS);
    }

    /// `env -i prog`: the recording is of `env`, which had become `prog` before the first sample of it.
    #[test]
    fn a_program_without_the_recorder_is_not_the_recorded_one() {
        let profile = Profile {
            program: String::from("/usr/bin/env"),
            pid: 7,
            started: 1,
            duration: MS,
            ..Profile::default()
        };
        let time = ThreadTime { futexes: 600 * MS, ..ThreadTime::default() };
        let observation = |recorder| {
            let seen = Program { recorder, ..program(7, "/bin/prog", 3, 1_000, time) };
            let programs = Programs { kept: vec![seen], rest: Rest::default() };
            Observation {
                format: FORMAT.to_owned(),
                version: VERSION,
                started: 0,
                duration: 1_000 * MS,
                snapshots: 100,
                cost: 0,
                cpu: 0,
                machine: None,
                programs,
            }
        };
        assert_eq!(observation(Recorder::NoPreload).program_of(&profile), None);
        // Its path may differ from within another root.
        assert_eq!(observation(Recorder::Loaded).program_of(&profile), Some(0));
        // The library needs no recorder.
        let library = Profile { locks_of: LocksOf::Library, ..profile };
        assert_eq!(observation(Recorder::NoPreload).program_of(&library), Some(0));
    }

    #[test]
    fn small_programs_are_counted() {
        let mut programs = Programs::default();
        programs.extend((0..1_000).map(|number| {
            let time = ThreadTime { running: u64::from(number) * MS, ..ThreadTime::default() };
            program(number, "/bin/one", number.into(), 2_000, time)
        }));
        programs.keep(MOST);
        assert_eq!((programs.kept.len(), programs.rest.recorded), (MOST, 1_000 - MOST as u32));
        assert!(programs.kept.iter().all(|program| program.threads.time.running >= 936 * MS));
        let left: u64 = (0..936).map(|number| number * MS).sum();
        assert_eq!((programs.rest.recorded_time, programs.rest.cpu), (left, left));
    }
}
