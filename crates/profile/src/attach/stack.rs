//! The stack of a thread with symbols: where it is in the program, and what it waits for. What was looked up once is
//! kept.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use spinpark_measure::text::one_line;

use super::object::{self, Held, Object};
use super::python::{Interpreter, Native};
use super::target::Target;
use super::task::{Call, Task};
use super::thread_now::{State, ThreadNow, Wait};
use crate::glibc_locks::{self, Place};
use crate::model::{CallSite, Frame, Kind};
use crate::symbols::{ANONYMOUS, Symbols};
use crate::waits::WaitTarget;

/// What was looked up already.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// By their return addresses.
    stacks: HashMap<Vec<u64>, Arc<Stack>>,
    /// Names of variables, by addresses in them.
    variables: HashMap<u64, Option<String>>,
    /// Where words are that may be locks of glibc.
    places: HashMap<u64, Place>,
    /// CPython, if it has it.
    python: Interpreter,
}

impl Known {
    /// To be called right behind a snapshot, or before its threads are read one by one: what threads do in Python
    /// changes, and who has the GIL.
    pub(super) fn read_python(&mut self, target: &Target, symbols: &mut Symbols, tasks: &[Task]) {
        self.python.read(target, symbols, tasks);
    }

    /// To be called when a thread was read.
    pub(super) fn read_python_of(&mut self, target: &Target, task: &Task) {
        self.python.read_thread(target, task);
    }

    /// A thread has ended.
    pub(super) fn forget_python_of(&mut self, thread: u32) {
        self.python.forget(thread);
    }

    pub(super) fn python(&self) -> &Interpreter {
        &self.python
    }

    /// Whether there may be locks whose holders [`name_holders`](Self::name_holders) knows.
    pub(super) fn has_python(&self) -> bool {
        matches!(self.python, Interpreter::Found(_))
    }

    /// Why Python's frames are missing, if they are.
    pub(super) fn why_not(&self) -> Option<&str> {
        self.python.why_not()
    }

    /// Who seems to have the locks of Python's that nothing else tells of: threads in `with` statements of them.
    pub(super) fn name_holders(&self, target: &Target, threads: &mut [&mut ThreadNow]) {
        let is_silent = |wait: &Wait| wait.is_pythons() && wait.held == Held::Unknown;
        let waits = threads.iter().filter_map(|thread| thread.wait()).filter(|wait| is_silent(wait));
        let locks: BTreeSet<u64> = waits.map(|wait| wait.address).collect();
        let holders = self.python.holders(target, &locks);
        for thread in threads {
            let Some(wait) = thread.wait_mut() else { continue };
            let one = holders.get(&wait.address).filter(|all| all.len() == 1 && is_silent(wait));
            wait.held = one.and_then(BTreeSet::first).map_or(wait.held, |id| Held::Perhaps(*id));
        }
    }

    /// Forgets what may have become wrong, though the process' files are what they were: names of code that is
    /// made at run time; and all if it is much.
    pub(super) fn renew(&mut self) {
        const MOST: usize = 1 << 16;
        if self.stacks.len() + self.variables.len() + self.places.len() > MOST {
            *self = Self::default();
        }
        self.stacks.retain(|_, stack| stack.is_of_files());
    }
}

/// A stack with symbols.
#[derive(Clone, Debug, Default)]
pub(super) struct Stack {
    /// Where it goes on, and the return addresses, the innermost first.
    pub(super) addresses: Vec<u64>,
    frames: Vec<Frame>,
    /// The function of glibc that the program called.
    called: Option<String>,
    /// Where it waits for another thread, without the functions that make the wait.
    site: Option<Arc<CallSite>>,
    /// The frames from the program's own on.
    part: Option<Arc<CallSite>>,
    wanted: Option<WaitTarget>,
}

impl Stack {
    fn of(target: &Target, symbols: &mut Symbols, stack: &[u64]) -> Self {
        let is_static = target.is_static();
        let outside = program_stack(target, symbols, stack, is_static);
        let (site, wanted, _) = symbols.call_site_and_wait(&target.maps, u32::MAX, outside, false);
        let frames = symbols.frames(&target.maps, u32::MAX, stack);
        Self {
            addresses: stack.to_owned(),
            called: symbols.called_of_glibc(&target.maps, stack),
            site: Some(site).filter(|site| !site.frames.is_empty()).map(Arc::new),
            part: program_part(frames.clone(), is_static).map(Arc::new),
            frames,
            wanted,
        }
    }

    /// One of these addresses, without names.
    #[cfg(test)]
    pub(super) fn at(addresses: Vec<u64>) -> Self {
        Self { addresses, ..Self::default() }
    }

    /// Whether all its code is of files, which does not become other code.
    pub(super) fn is_of_files(&self) -> bool {
        self.frames.iter().all(|frame| !matches!(frame.module.as_str(), "?" | ANONYMOUS))
    }
}

/// The stack of a thread with symbols; and how much of the copy that took, if more would have no more frames.
pub(super) fn stack(
    target: &Target,
    (symbols, known): (&mut Symbols, &mut Known),
    task: &Task,
) -> (Arc<Stack>, Option<usize>) {
    let unwound = task.stack.as_ref().map(|stack| symbols.unwound(&target.maps, stack)).unwrap_or_default();
    if let Some(stack) = known.stacks.get(&unwound.stack) {
        return (Arc::clone(stack), unwound.bytes);
    }
    let stack = Arc::new(Stack::of(target, symbols, &unwound.stack));
    known.stacks.insert(unwound.stack, Arc::clone(&stack));
    (stack, unwound.bytes)
}

/// A thread of a snapshot, with symbols. `stays`: as [`ThreadNow::stays`].
pub(super) fn thread(
    target: &Target,
    (symbols, known): (&mut Symbols, &mut Known),
    task: &Task,
    ids: &BTreeSet<u32>,
    stays: bool,
) -> ThreadNow {
    let (stack, _) = stack(target, (symbols, known), task);
    thread_with(target, (symbols, known), (task, &stack), ids, stays)
}

/// The same, of which the stack is known.
pub(super) fn thread_with(
    target: &Target,
    (symbols, known): (&mut Symbols, &mut Known),
    (task, stack): (&Task, &Stack),
    ids: &BTreeSet<u32>,
    stays: bool,
) -> ThreadNow {
    let part = || stack.part.clone();
    let (state, place) = match task.call {
        // The stack of one that runs is in core dumps, and known of one that was stopped.
        Call::Running => (State::Running, part()),
        Call::Fault => (State::Fault, part()),
        Call::Unknown => (State::Unknown, None),
        Call::Blocked { .. } => match task.call.futex() {
            None => (task.call.name().map_or(State::Unknown, State::Call), part()),
            Some(futex) => {
                let place = known
                    .places
                    .entry(futex.address)
                    .or_insert_with(|| symbols.glibc_place(&target.maps, futex.address));
                let found = object::object(
                    target,
                    (task, futex),
                    &stack.frames,
                    (place, stack.called.as_deref()),
                    ids,
                );
                let mut found = found;
                // What functions of libraries wait for is more than what they wait with.
                if !found.role.is_lock()
                    && found.kind != Kind::Join
                    && let Some(wanted) = stack.wanted.clone().filter(|wanted| wanted.name.is_some())
                {
                    let address = if wanted.is_by_function { 0 } else { found.address };
                    let held = Held::Unknown;
                    found = Object { kind: wanted.kind, role: wanted.role, address, name: wanted.name, held };
                }
                let variable = match found.address {
                    0 => None,
                    at => known
                        .variables
                        .entry(at)
                        .or_insert_with(|| symbols.variable(&target.maps, at))
                        .clone(),
                };
                let wait = Wait {
                    kind: found.kind,
                    role: found.role,
                    address: found.address,
                    // What glibc calls it says less.
                    name: if found.name.as_ref().is_some_and(|name| name.ends_with(" (glibc)")) {
                        found.name
                    } else {
                        variable.or(found.name)
                    },
                    is_timed: futex.is_timed,
                    is_private: futex.is_private || found.kind == Kind::Join,
                    held: found.held,
                };
                (State::Waits(wait), stack.site.clone())
            }
        },
    };
    let state = match state {
        // What it waits for it will wait for when it goes on, if that is not released by then.
        State::Waits(wait) if task.stat.is_stopped() => State::Stopped(Some(wait)),
        _ if task.stat.is_stopped() => State::Stopped(None),
        state => state,
    };
    let mut now = ThreadNow { id: task.id, name: one_line(&task.stat.name), state, place, stays };
    let wait = now.wait().map(|wait| (wait.kind, wait.name.as_deref(), wait.is_lock()));
    let address = now.wait().map_or(0, |wait| wait.address);
    let native = Native { site: now.place.as_deref(), wait, address };
    if let Some(look) = known.python.look(target, task, &native) {
        now.place = look.place.filter(|place| !place.frames.is_empty()).map(Arc::new);
        if let Some((found, is_timed)) = look.wait {
            let Object { kind, role, address, name, held } = found;
            now.state = State::Waits(Wait { kind, role, address, name, is_timed, is_private: true, held });
        }
    }
    now
}

/// The return addresses from the program's own on: without those of libc, if there are others. `is_static`: as
/// [`Target::is_static`].
fn program_stack<'a>(target: &Target, symbols: &mut Symbols, stack: &'a [u64], is_static: bool) -> &'a [u64] {
    let mut is_libcs = |address: &&u64| {
        if is_static {
            let frames = symbols.frames(&target.maps, u32::MAX, std::slice::from_ref(*address));
            return frames.last().is_some_and(object::is_static);
        }
        let mapping = target.maps.find(0, address.wrapping_sub(1));
        let name = mapping.and_then(|mapping| mapping.path.file_name()).unwrap_or_default();
        // The recorder calls `syscall` for the program.
        name == object::RECORDER || glibc_locks::is_glibc(&name.to_string_lossy())
    };
    let own = stack.iter().take_while(|address| is_libcs(address)).count();
    if own < stack.len() { &stack[own..] } else { stack }
}

/// The frames from the program's own on: without those of libc.
fn program_part(mut frames: Vec<Frame>, is_static: bool) -> Option<CallSite> {
    let is_libcs =
        |frame: &&Frame| glibc_locks::is_glibc(&frame.module) || is_static && object::is_static(frame);
    // C++ sleeps by a template of its own.
    let is_cpps =
        |frame: &&Frame| frame.function.as_ref().is_some_and(|name| name.starts_with("std::this_thread::"));
    let own = frames.iter().take_while(|frame| is_libcs(frame) || is_cpps(frame)).count();
    if own < frames.len() {
        frames.drain(..own);
    }
    (!frames.is_empty()).then_some(CallSite { frames, is_cut: false })
}
