//! CPython in a process: the functions and lines that its threads are at, the GIL and its holder, and Python's
//! locks.
//!
//! | module   | what it has                                                             |
//! |----------|-------------------------------------------------------------------------|
//! | `layout` | where the interpreter keeps what is read, by version                      |
//! | `frames` | the frames of a thread, link by link                                     |
//! | `lines`  | the line of an instruction, by the code's tables                         |
//! | `locks`  | the GIL, Python's locks and what is made of them: what is waited for, and whose it is |
//!
//! Frames of Python take the place of the interpreter's own. A thread that has not run since is not read again.

mod frames;
mod layout;
mod lines;
mod locks;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

use self::frames::{Codes, Copy, PythonFrame, frames};
use self::layout::{DESCRIPTION, Gil, Layout, Unknown, gil};
pub(super) use self::locks::{GIL, LOCK};
use self::locks::{Lock, LockKind, QUEUE, held, is_library, owner_of_gil, signal};
use super::object::{Held, Object};
use super::target::Target;
use super::task::{Call, Task};
use crate::machine;
use crate::maps::Mapping;
use crate::model::{CallSite, Frame, Kind, Role};
use crate::symbols::Symbols;
use crate::watch::Sched;

/// The interpreter of a process.
#[derive(Debug, Default)]
pub(super) enum Interpreter {
    /// It was not yet looked for.
    #[default]
    Unsought,
    None,
    /// It is there, but its frames cannot be read: why, as a sentence.
    Unknown(String),
    Found(Box<Python>),
}

/// CPython in a process.
#[derive(Debug)]
pub(super) struct Python {
    layout: Layout,
    /// Where `_PyRuntime` is.
    runtime: u64,
    /// The file name of the program or library that it is in.
    module: String,
    codes: Codes,
    /// The states of threads, by the threads' numbers.
    states: HashMap<u32, u64>,
    /// Threads that had none when all were read.
    strangers: HashSet<u32>,
    /// Threads by what `pthread_self` returns in them.
    owners: HashMap<u64, u32>,
    /// The GILs, and who has them.
    gils: BTreeMap<u64, Held>,
    seen: HashMap<u32, Seen>,
}

/// A thread as it was read last.
#[derive(Debug)]
struct Seen {
    was: (Call, Option<Sched>),
    frames: Vec<PythonFrame>,
}

/// What a thread's functions of C tell.
pub(super) struct Native<'a> {
    /// Where it is.
    pub(super) site: Option<&'a CallSite>,
    /// What it waits for: what kind of thing, its name, and whether it is a lock.
    pub(super) wait: Option<(Kind, Option<&'a str>, bool)>,
    /// Where that is: on the drop-in's locks, it is not where the thread sleeps. 0 if that is not known.
    pub(super) address: u64,
}

/// What is known of a thread of Python.
#[derive(Debug)]
pub(super) struct Look {
    /// Where it is.
    pub(super) place: Option<CallSite>,
    /// What it waits for, and whether that ends by itself, if that is more than its functions of C tell.
    pub(super) wait: Option<(Object, bool)>,
}

impl Interpreter {
    /// Reads what these threads, which were just read, do in Python, and who has the GIL.
    pub(super) fn read(&mut self, target: &Target, symbols: &mut Symbols, tasks: &[Task]) {
        if matches!(self, Self::Unsought) {
            *self = match Python::find(target, symbols) {
                None => Self::None,
                Some(Ok(python)) => Self::Found(Box::new(python)),
                Some(Err(unknown)) => Self::Unknown(unknown.sentence()),
            };
        }
        if let Self::Found(python) = self {
            python.read(target, tasks);
        }
    }

    /// Reads what this thread does in Python, which was just read.
    pub(super) fn read_thread(&mut self, target: &Target, task: &Task) {
        if let Self::Found(python) = self {
            python.read_thread(target, task);
        }
    }

    /// A thread has ended.
    pub(super) fn forget(&mut self, thread: u32) {
        if let Self::Found(python) = self {
            python.seen.remove(&thread);
        }
    }

    /// What is known of one of these threads.
    pub(super) fn look(&self, target: &Target, task: &Task, native: &Native<'_>) -> Option<Look> {
        match self {
            Self::Found(python) => python.look(target, task, native),
            _ => None,
        }
    }

    /// What of Python's one of these threads waits for at a semaphore, and where: `Python lock`, `Store.load (shop.py:12)`.
    pub(super) fn site(&self, target: &Target, task: &Task) -> Option<(String, String)> {
        let Self::Found(python) = self else { return None };
        let futex = task.call.futex().filter(|_| python.layout.minor < 14)?;
        let frames = &python.seen.get(&task.id).filter(|seen| !seen.frames.is_empty())?.frames;
        let lock = Lock::of(target, &python.layout, task, futex.address)?;
        let what = python.waited_for(target, frames, Some(lock))?.name?;
        Some((what, place(frames, Vec::new()).label()))
    }

    /// Who has the GILs now.
    pub(super) fn holders_of_gils(&self, target: &Target) -> BTreeSet<u32> {
        let Self::Found(python) = self else { return BTreeSet::new() };
        let holders = python.gils.keys().map(|gil| python.holder(target, *gil));
        holders.filter_map(|held| if let Held::Thread(id) = held { Some(id) } else { None }).collect()
    }

    /// Who has the GIL at this address now.
    pub(super) fn holder_of_gil(&self, target: &Target, gil: u64) -> Held {
        match self {
            Self::Found(python) => python.holder(target, gil),
            _ => Held::Unknown,
        }
    }

    /// Whether it knows this thread.
    pub(super) fn has(&self, thread: u32) -> bool {
        matches!(self, Self::Found(python) if python.states.contains_key(&thread))
    }

    /// Why its frames cannot be read, if there is one.
    pub(super) fn why_not(&self) -> Option<&str> {
        match self {
            Self::Unknown(sentence) => Some(sentence),
            _ => None,
        }
    }

    /// Who seems to have which of these locks.
    pub(super) fn holders(&self, target: &Target, locks: &BTreeSet<u64>) -> BTreeMap<u64, BTreeSet<u32>> {
        match self {
            Self::Found(python) if !locks.is_empty() => python.holders(target, locks),
            _ => BTreeMap::new(),
        }
    }
}

impl Python {
    fn find(target: &Target, symbols: &mut Symbols) -> Option<Result<Self, Unknown>> {
        let name =
            |mapping: &Mapping| mapping.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_program = |mapping: &Mapping| mapping.path == Path::new(target.program());
        let is_one = |mapping: &Mapping| {
            let name = name(mapping);
            name.starts_with("libpython") || name.starts_with("python") || is_program(mapping)
        };
        let files = target.maps.snapshot(0).iter();
        let mut files: Vec<&Mapping> =
            files.filter(|it| it.is_file() && it.is_executable && is_one(it)).collect();
        // A program named `python` may have the interpreter in its library.
        files.sort_by_key(|mapping| !name(mapping).starts_with("libpython"));
        let runtime = files
            .iter()
            .find_map(|mapping| Some((*mapping, symbols.exported(&target.maps, mapping, "_PyRuntime")?)));
        let Some((mapping, runtime)) = runtime else {
            // Before 3.7 there was none.
            return files
                .iter()
                .find_map(|it| version(&name(it)))
                .map(|version| Err(Unknown::Version(version)));
        };
        let module = name(mapping);
        let described = target.read::<DESCRIPTION>(runtime).and_then(|bytes| Layout::described(&bytes));
        let layout = described.unwrap_or_else(|| {
            let version_at = symbols.exported(&target.maps, mapping, "Py_Version");
            let version = match version_at.and_then(|at| target.pointer(at)) {
                Some(number) => Some(format!("{}.{}", number >> 24, number >> 16 & 0xff)),
                None => version(&module),
            };
            let version = version.ok_or(Unknown::NoVersion)?;
            let minor = version.strip_prefix("3.").and_then(|minor| minor.parse().ok());
            minor.and_then(Layout::of).ok_or(Unknown::Version(version))
        });
        Some(layout.and_then(|layout| {
            let version = format!("3.{}", layout.minor);
            let mut python = Self {
                layout,
                runtime,
                module,
                codes: Codes::default(),
                states: HashMap::new(),
                strangers: HashSet::new(),
                owners: HashMap::new(),
                gils: BTreeMap::new(),
                seen: HashMap::new(),
            };
            if python.read_threads(target) { Ok(python) } else { Err(Unknown::Layout(version)) }
        }))
    }

    /// Reads the states of all threads. False if there are interpreters, and none has a thread of its own.
    fn read_threads(&mut self, target: &Target) -> bool {
        const INTERPRETERS: usize = 1024;
        const THREADS: usize = 1 << 16;
        self.states.clear();
        self.owners.clear();
        self.gils.clear();
        let at = |start: u64, offset: u64| target.pointer(start.checked_add(offset)?).filter(|at| *at != 0);
        let mut next = at(self.runtime, self.layout.interpreters);
        let is_empty = next.is_none();
        for _ in 0..INTERPRETERS {
            let Some(interpreter) = next else { break };
            let gil = match self.layout.gil {
                Gil::InRuntime(offset) => self.runtime.checked_add(offset),
                Gil::OfInterpreter(offset) => at(interpreter, offset),
            };
            self.gils.extend(gil.map(|gil| (gil, self.holder(target, gil))));
            let mut thread = at(interpreter, self.layout.threads);
            for _ in 0..THREADS {
                let Some(state) = thread else { break };
                let Some(copy) = Copy::read(target, state, self.layout.thread.bytes) else { break };
                if copy.word(self.layout.thread.interpreter) != Some(interpreter) {
                    break;
                }
                if let Some(id) = self.number(target, &copy) {
                    self.states.insert(id, state);
                    self.owners.extend(copy.word(self.layout.thread.id).map(|own| (own, id)));
                }
                thread = copy.word(self.layout.thread.next).filter(|next| *next != 0);
            }
            next = at(interpreter, self.layout.next_interpreter);
        }
        is_empty || !self.states.is_empty()
    }

    /// The number of the thread with this state.
    fn number(&self, target: &Target, state: &Copy) -> Option<u32> {
        let number = match self.layout.thread.native {
            Some(at) => u32::try_from(state.word(at)?).ok()?,
            // With glibc, `pthread_self` is the address of its descriptor.
            None => target.word(state.word(self.layout.thread.id)?.checked_add(machine::THREAD_ID)?)?,
        };
        (number != 0).then(|| target.thread(number))
    }

    /// The address of a thread's state.
    fn state(&mut self, target: &Target, id: u32) -> Option<u64> {
        let is_its = |python: &Self, state: u64| {
            let copy = Copy::read(target, state, python.layout.thread.bytes);
            copy.and_then(|copy| python.number(target, &copy)) == Some(id)
        };
        if let Some(state) = self.states.get(&id).copied().filter(|state| is_its(self, *state)) {
            return Some(state);
        }
        if self.states.remove(&id).is_none() && self.strangers.contains(&id) {
            return None;
        }
        self.read_threads(target);
        let found = self.states.get(&id).copied();
        if found.is_none() {
            self.strangers.insert(id);
        }
        found
    }

    fn look(&self, target: &Target, task: &Task, native: &Native<'_>) -> Option<Look> {
        let futex = task.call.futex();
        let gil = futex.and_then(|futex| self.gil_at(futex.address).or_else(|| self.gil_at(native.address)));
        let frames: &[PythonFrame] = self.seen.get(&task.id).map_or(&[], |seen| &seen.frames);
        if gil.is_none() && frames.is_empty() {
            return None;
        }
        let Native { site, wait, .. } = *native;
        if let Some((gil, held)) = gil {
            let name = Some(String::from(GIL));
            let object = Object { kind: Kind::Mutex, role: Role::Write, address: gil, name, held };
            // It waits for 5 ms, again and again.
            return Some(Look { place: Some(place(frames, Vec::new())), wait: Some((object, false)) });
        }
        let is_pythons = wait.is_some_and(|(kind, name, _)| match name {
            Some(name) => OWN.contains(&name),
            None => kind == Kind::Semaphore,
        });
        let found = futex.filter(|_| is_pythons).and_then(|futex| {
            let lock = Lock::of(target, &self.layout, task, futex.address);
            Some((self.waited_for(target, frames, lock)?, futex.is_timed))
        });
        // Functions of other libraries stay in front if they wait for a lock of theirs.
        let is_native_lock = found.is_none() && wait.is_some_and(|(_, _, is_lock)| is_lock);
        let outer = site.filter(|_| is_native_lock).map_or_else(Vec::new, |site| {
            site.frames.iter().take_while(|frame| frame.module != self.module).cloned().collect()
        });
        Some(Look { place: Some(place(frames, outer)), wait: found })
    }

    /// What a thread waits for at a lock of Python's.
    fn waited_for(&self, target: &Target, frames: &[PythonFrame], lock: Option<Lock>) -> Option<Object> {
        if let Some(signal) = signal(frames) {
            let name = signal.name.map(str::to_owned);
            return Some(Object {
                kind: signal.kind,
                role: signal.role,
                address: 0,
                name,
                held: Held::Unknown,
            });
        }
        let lock = lock?;
        let name = Some(lock.name().to_owned());
        if lock.kind == LockKind::Queue {
            let (kind, role) = (Kind::Channel, Role::Signal);
            return Some(Object { kind, role, address: 0, name, held: Held::Unknown });
        }
        let held = match lock.owner(target) {
            Some(0) => Held::Free,
            Some(own) => self.owners.get(&own).map_or(Held::Unknown, |id| Held::Thread(*id)),
            None => Held::Unknown,
        };
        Some(Object { kind: Kind::Mutex, role: Role::Write, address: lock.address, name, held })
    }

    /// The GIL, and who has it, if threads wait for it at this address.
    fn gil_at(&self, futex: u64) -> Option<(u64, Held)> {
        let (start, held) = self.gils.range(..=futex).next_back()?;
        gil::WAITS.contains(&(futex - start)).then_some((*start, *held))
    }

    fn holder(&self, target: &Target, gil: u64) -> Held {
        let Some(owner) = owner_of_gil(target, gil) else { return Held::Unknown };
        let Some(state) = owner else { return Held::Free };
        let copy = Copy::read(target, state, self.layout.thread.bytes);
        copy.and_then(|copy| self.number(target, &copy)).map_or(Held::Unknown, Held::Thread)
    }

    fn read(&mut self, target: &Target, tasks: &[Task]) {
        let gils: Vec<u64> = self.gils.keys().copied().collect();
        self.gils.extend(gils.into_iter().map(|gil| (gil, self.holder(target, gil))).collect::<Vec<_>>());
        for task in tasks {
            self.read_thread(target, task);
        }
    }

    fn read_thread(&mut self, target: &Target, task: &Task) {
        if self.seen.get(&task.id).is_some_and(|seen| task.is_still(seen.was)) {
            return;
        }
        match self.frames(target, task) {
            Some(frames) => {
                self.seen.insert(task.id, Seen { was: (task.call, task.sched), frames });
            }
            None => {
                self.seen.remove(&task.id);
            }
        }
    }

    /// The frames of a thread. None if it is none of Python's, or has gone on.
    fn frames(&mut self, target: &Target, task: &Task) -> Option<Vec<PythonFrame>> {
        let state = self.state(target, task.id)?;
        let found = frames(target, &self.layout, &mut self.codes, state)?;
        // What it does was read before. One that waits for the GIL wakes every 5 ms, but stays where it is.
        let gil = task.call.futex().and_then(|futex| self.gil_at(futex.address));
        let is_there = match gil {
            Some((gil, _)) => self.holder(target, gil) != Held::Thread(task.id),
            None => task.call == Call::Running || target.is_in(task),
        };
        is_there.then_some(found)
    }

    fn holders(&self, target: &Target, locks: &BTreeSet<u64>) -> BTreeMap<u64, BTreeSet<u32>> {
        let mut found: BTreeMap<u64, BTreeSet<u32>> = BTreeMap::new();
        for (id, seen) in &self.seen {
            for lock in held(target, &self.layout, &seen.frames, locks) {
                found.entry(lock).or_default().insert(*id);
            }
        }
        found
    }
}

/// What functions of C say that threads wait for in CPython's locks.
const OWN: [&str; 5] = [LOCK, QUEUE, "PyMutex", "Python event", "CPython parking lot"];

/// Where a thread is, to its users: functions of another library first, if there are any, then those of Python
/// from the one on that uses Python's library.
fn place(frames: &[PythonFrame], outer: Vec<Frame>) -> CallSite {
    let own = frames.iter().take_while(|frame| is_library(frame)).count();
    let own = if own < frames.len() { own } else { 0 };
    let mut all = outer;
    all.extend(frames[own..].iter().map(PythonFrame::frame));
    CallSite { frames: all, is_cut: false }
}

/// The version in the name of a program or library: `3.11` of `libpython3.11d.so.1.0`.
fn version(name: &str) -> Option<String> {
    let rest = name.strip_prefix("lib").unwrap_or(name).strip_prefix("python")?;
    let (major, rest) = rest.split_once('.')?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let is_number = major.parse::<u8>().is_ok() && rest[..end].parse::<u8>().is_ok();
    is_number.then(|| format!("{major}.{}", &rest[..end]))
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn versions_in_names() {
        for (name, expected) in [
            ("python3.8", Some("3.8")),
            ("libpython3.11d.so.1.0", Some("3.11")),
            ("libpython2.7.so.1.0", Some("2.7")),
            ("python3", None),
            ("libpython3.so", None),
            ("pythonista1.2", None),
        ] {
            assert_eq!(version(name).as_deref(), expected, "{name}");
        }
    }
}
