//! Python's lines that wait for its locks, of a program that is recorded meanwhile.
//!
//! A recording has the interpreter's functions: what they wait with is a semaphore, and CPython calls the functions of
//! Python without frames of C. So the interpreter is read while it runs, as [`python`](super::python) does: what of
//! Python's a thread waits for, and at which line, by the semaphore's address. That is sampled, and names what was recorded.
//!
//! | what is not known        | why                                                                     |
//! |--------------------------|-------------------------------------------------------------------------|
//! | a lock with short waits  | no sample has found a thread that waits for it: it keeps its name of C    |
//! | locks of CPython 3.14 on | they are bytes, and threads wait in the interpreter's parking lot         |

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use super::python::Interpreter;
use super::sampler::own_time;
use super::target::Target;
use crate::live_process;
use crate::model::{Kind, Profile};
use crate::symbols::Symbols;

/// Between two samples, at least.
const PAUSE: Duration = Duration::from_millis(50);
/// Between two searches for interpreters.
const SEARCH: Duration = Duration::from_millis(500);
/// A pause is so many times as long as the CPU time of the sample before: 1 % of a CPU,
const SHARE: u32 = 100;
/// but no longer than this: that of the first sample has the search for the interpreter.
const LONGEST: Duration = Duration::from_secs(1);
/// Of more processes and more locks, what is found last is left out.
const PROCESSES: usize = 256;
const LOCKS: usize = 1 << 16;

/// What a semaphore was found to be, and where: `Python lock`, `Store.load (shop.py:12)`.
type Found = (String, String);

/// What was found of semaphores, by process and address, and how often.
#[derive(Debug, Default)]
pub struct PythonSites {
    seen: BTreeMap<(u32, u64), BTreeMap<Found, u32>>,
}

/// The search, at work.
#[derive(Debug)]
pub struct PythonWatch {
    /// None if no thread could be made.
    thread: Option<JoinHandle<PythonSites>>,
    stop: Sender<()>,
}

impl PythonWatch {
    /// Begins with a process, and all below it.
    #[must_use]
    pub fn start(pid: u32) -> Self {
        let (stop, stopped) = mpsc::channel::<()>();
        let run = move || {
            let mut search = Search::new(pid);
            loop {
                let before = own_time();
                search.sample();
                let pause = PAUSE.max((own_time().saturating_sub(before) * SHARE).min(LONGEST));
                // It ends when the other end goes.
                if stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
                    return search.sites;
                }
            }
        };
        let thread = thread::Builder::new().name(String::from("python")).spawn(run).ok();
        Self { thread, stop }
    }

    /// Ends it.
    #[must_use]
    pub fn finish(self) -> PythonSites {
        drop(self.stop);
        self.thread.and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

/// A process with an interpreter.
struct Process {
    target: Target,
    symbols: Symbols,
    interpreter: Interpreter,
}

struct Search {
    first: u32,
    /// None: there is no interpreter in it, for now.
    processes: BTreeMap<u32, Option<Process>>,
    searched: Option<Instant>,
    sites: PythonSites,
}

impl Search {
    fn new(first: u32) -> Self {
        Self { first, processes: BTreeMap::new(), searched: None, sites: PythonSites::default() }
    }

    fn sample(&mut self) {
        if self.searched.is_none_or(|searched| searched.elapsed() >= SEARCH) {
            self.search();
            self.searched = Some(Instant::now());
        }
        for (pid, process) in &mut self.processes {
            let Some(known) = process else { continue };
            // It has ended, is another program, or may not be read any more.
            if known.sample(*pid, &mut self.sites).is_none() {
                *process = None;
            }
        }
    }

    /// Finds processes with interpreters. A process may become one: `python3` may be a script that starts it.
    fn search(&mut self) {
        let all = below(self.first);
        self.processes.retain(|pid, _| all.contains(pid));
        for pid in all {
            let process = self.processes.entry(pid).or_default();
            if process.is_none() {
                *process = Process::open(pid);
            }
        }
    }
}

impl Process {
    fn open(pid: u32) -> Option<Self> {
        // Most programs have none: that costs them no more than this.
        let maps = fs::read(live_process::directory(pid).join("maps")).ok()?;
        if !maps.windows(6).any(|part| part == b"python") {
            return None;
        }
        let mut target = Target::open(pid, "spinpark profile").ok()?;
        target.read_maps();
        let mut symbols = Symbols::new().with_kept(std::mem::take(&mut target.kept));
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        symbols.begin_running(pid, u64::try_from(since.as_nanos()).unwrap_or(u64::MAX));
        let mut interpreter = Interpreter::default();
        interpreter.read(&target, &mut symbols, &[]);
        // Before it is set up, there are no threads of it.
        matches!(interpreter, Interpreter::Found(_)).then_some(Self { target, symbols, interpreter })
    }

    fn sample(&mut self, pid: u32, sites: &mut PythonSites) -> Option<()> {
        if self.target.is_replaced() {
            return None;
        }
        let tasks = self.target.snapshot().ok()?;
        self.interpreter.read(&self.target, &mut self.symbols, &tasks);
        for task in &tasks {
            let Some(found) = self.interpreter.site(&self.target, task) else { continue };
            let address = task.call.futex()?.address;
            if sites.seen.len() < LOCKS || sites.seen.contains_key(&(pid, address)) {
                *sites.seen.entry((pid, address)).or_default().entry(found).or_default() += 1;
            }
        }
        Some(())
    }
}

/// A process, and all that it has started.
fn below(first: u32) -> BTreeSet<u32> {
    let mut all = BTreeSet::new();
    let mut next = vec![first];
    while let Some(pid) = next.pop() {
        if all.len() >= PROCESSES || !all.insert(pid) {
            continue;
        }
        let tasks = fs::read_dir(Path::new("/proc").join(pid.to_string()).join("task"));
        for task in tasks.into_iter().flatten().flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            next.extend(children.split_ascii_whitespace().filter_map(|child| child.parse::<u32>().ok()));
        }
    }
    all
}

impl PythonSites {
    /// Names the semaphores of profiles by what they were most often found to be.
    pub fn name(&self, profiles: &mut [Profile]) {
        for profile in profiles {
            let mut numbers: BTreeMap<String, u32> = BTreeMap::new();
            let pid = profile.pid;
            for lock in
                profile.locks.iter_mut().filter(|lock| lock.kind == Kind::Semaphore && lock.name.is_none())
            {
                let found = self.seen.get(&(pid, lock.address));
                let Some(((what, place), _)) =
                    found.and_then(|all| all.iter().max_by_key(|(_, times)| **times))
                else {
                    continue;
                };
                let label = format!("{what} in {place}");
                let number = numbers.entry(label.clone()).or_default();
                *number += 1;
                lock.label = if *number == 1 { label } else { format!("{label} #{number}") };
                lock.type_name = Some(what.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Lock;

    #[test]
    fn semaphores_are_named_by_what_they_were_found_to_be() {
        let lock = |address, kind| Lock { address, kind, label: String::from("old"), ..Lock::default() };
        let mut profiles = [Profile {
            pid: 7,
            locks: vec![
                lock(8, Kind::Semaphore),
                lock(16, Kind::Semaphore),
                lock(24, Kind::Semaphore),
                lock(32, Kind::Mutex),
            ],
            ..Profile::default()
        }];
        let mut sites = PythonSites::default();
        let found = |what: &str, place: &str| (what.to_owned(), place.to_owned());
        for address in [8, 16, 32] {
            let all = sites.seen.entry((7, address)).or_default();
            all.insert(found("Python lock", "load (app.py:3)"), 9);
            all.insert(found("Python Event", "main (app.py:9)"), 2);
        }
        sites.seen.entry((8, 24)).or_default().insert(found("Python lock", "other (app.py:3)"), 1);
        sites.name(&mut profiles);
        let labels = profiles[0].locks.iter().map(|lock| lock.label.as_str());
        let expected = ["Python lock in load (app.py:3)", "Python lock in load (app.py:3) #2", "old", "old"];
        assert_eq!(labels.collect::<Vec<_>>(), expected);
        assert_eq!(profiles[0].locks[0].type_name.as_deref(), Some("Python lock"));
    }

    #[test]
    fn processes_below_one() {
        let own = std::process::id();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("it starts");
        let all = below(own);
        assert!(all.contains(&own) && all.contains(&child.id()), "{all:?}");
        let _ = child.kill();
        let _ = child.wait();
    }
}
