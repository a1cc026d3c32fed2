//! What a thread of Python waits for: the GIL, a `threading.Lock` or `RLock`, or, in `threading.py` and what is
//! made of it, a signal; and who has it.
//!
//! The GIL and an `RLock` have their owner in memory. A `Lock` has none; but a thread that is in the body of a
//! `with` statement has the lock's `__exit__` on the stack of its frame until the end of the body, and the
//! table of handlers (until 3.10 the frame's blocks) tells that the statement is open. So it *seems* to have
//! the lock: the body may release it.

use std::collections::BTreeSet;

use super::frames::{PythonFrame, c_string, type_name, type_of};
use super::layout::{Layout, gil};
use crate::attach::target::Target;
use crate::attach::task::Task;
use crate::model::{Kind, Role};

/// The name of the GIL.
pub(in crate::attach) const GIL: &str = "CPython's GIL";
/// Those of locks whose owner is not in memory, and is.
pub(in crate::attach) const LOCK: &str = "Python lock";
const RLOCK: &str = "Python RLock";
/// Made of a lock.
pub(super) const QUEUE: &str = "queue.SimpleQueue";

/// A lock of Python's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lock {
    /// Its object.
    pub(super) address: u64,
    pub(super) kind: LockKind,
}

/// Whose lock it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockKind {
    Plain,
    Recursive,
    /// Of a `queue.SimpleQueue`.
    Queue,
}

impl Lock {
    /// Behind what all objects have: the semaphore's address until 3.13, then a byte; and who has it.
    const STATE: u64 = 16;
    const OWNER: u64 = 24;

    pub(super) fn name(self) -> &'static str {
        match self.kind {
            LockKind::Plain => LOCK,
            LockKind::Recursive => RLOCK,
            LockKind::Queue => QUEUE,
        }
    }

    /// What `pthread_self` returns in the thread that has an `RLock`.
    pub(super) fn owner(self, target: &Target) -> Option<u64> {
        let is_recursive = self.kind == LockKind::Recursive;
        is_recursive.then(|| target.pointer(self.address.checked_add(Self::OWNER)?)).flatten()
    }

    fn at(target: &Target, address: u64) -> Option<Self> {
        let kind = match type_name(target, type_of(target, address)?)?.as_str() {
            "_thread.lock" => LockKind::Plain,
            "_thread.RLock" => LockKind::Recursive,
            "_queue.SimpleQueue" => LockKind::Queue,
            _ => return None,
        };
        Some(Self { address, kind })
    }

    /// The lock of Python's that a thread which sleeps at this futex waits for.
    pub(super) fn of(target: &Target, layout: &Layout, task: &Task, futex: u64) -> Option<Self> {
        // The futex is in an entry of the parking lot, behind the address that is waited for.
        if layout.minor >= 14 {
            let waited_for = target.pointer(futex.checked_sub(8)?)?;
            return Self::at(target, waited_for.checked_sub(Self::STATE)?);
        }
        /// Words of the stack; the function of C that waits for the lock has its address.
        const WORDS: usize = 256;
        let stack = task.stack.as_ref()?;
        let mut words: Vec<u64> = stack.words.iter().take(WORDS).copied().collect();
        words.retain(|word| *word > 1 << 16 && word.is_multiple_of(8) && *word < 1 << 47);
        words.sort_unstable();
        words.dedup();
        let has_it = |object: &u64| target.pointer(object + Self::STATE) == Some(futex);
        words.into_iter().filter(has_it).find_map(|object| Self::at(target, object))
    }
}

/// Which lock objects, of those that are `wanted`, are held by the `with` statements that these frames are in.
pub(super) fn held(
    target: &Target,
    layout: &Layout,
    frames: &[PythonFrame],
    wanted: &BTreeSet<u64>,
) -> Vec<u64> {
    const MARKS: u64 = 3;
    let mut found = Vec::new();
    for (address, number) in frames.iter().map(|frame| frame.values).filter(|(_, number)| *number > 0) {
        let mut bytes = vec![0; 8 * number];
        if !target.read_to(&mut bytes, address) {
            continue;
        }
        let words = bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default()));
        let words: Vec<u64> = words.map(|word| word & !MARKS).collect();
        for (at, word) in words.iter().enumerate() {
            // From 3.14 on, the method and the object; before that, the method of the object.
            let object = match layout.minor {
                14.. => words.get(at + 1).copied().filter(|_| is_exit_of_class(target, *word)),
                _ => bound_exit(target, *word),
            };
            found.extend(object.filter(|object| wanted.contains(object)));
        }
    }
    found
}

/// Whether this is a method of C, `__exit__`, of a class: by its definition.
fn is_exit_of_class(target: &Target, address: u64) -> bool {
    const DEFINITION: u64 = 40;
    let is_method = || type_name(target, type_of(target, address)?);
    is_method().as_deref() == Some("method_descriptor") && is_exit(target, address.wrapping_add(DEFINITION))
}

/// The object of which this is the method `__exit__`.
fn bound_exit(target: &Target, address: u64) -> Option<u64> {
    const DEFINITION: u64 = 16;
    const OBJECT: u64 = 24;
    let kind = type_name(target, type_of(target, address)?)?;
    let is_it = kind == "builtin_function_or_method" && is_exit(target, address.checked_add(DEFINITION)?);
    is_it.then(|| target.pointer(address.checked_add(OBJECT)?)).flatten()
}

/// Whether here is the address of a definition that begins with this name.
fn is_exit(target: &Target, address: u64) -> bool {
    let name = || c_string(target, target.pointer(target.pointer(address)?)?);
    name().as_deref() == Some("__exit__")
}

/// The state of the thread that has the GIL at this address, or none.
pub(super) fn owner_of_gil(target: &Target, address: u64) -> Option<Option<u64>> {
    let copy = target.read::<{ gil::SWITCHES }>(address)?;
    let holder = u64::from_ne_bytes(copy[gil::HOLDER..gil::HOLDER + 8].try_into().ok()?);
    let locked = i32::from_ne_bytes(copy[gil::LOCKED..gil::LOCKED + 4].try_into().ok()?);
    Some((locked == 1).then_some(holder))
}

/// A wait for a signal.
pub(super) struct Signal {
    pub(super) kind: Kind,
    pub(super) role: Role,
    pub(super) name: Option<&'static str>,
}

/// Files of Python's library that make other things of locks.
const LIBRARY: [&str; 4] =
    ["/threading.py", "/queue.py", "/concurrent/futures/thread.py", "/concurrent/futures/_base.py"];

/// Whether a frame is of such a file: users look for what called it.
pub(super) fn is_library(frame: &PythonFrame) -> bool {
    LIBRARY.iter().any(|file| frame.code.file.ends_with(file))
}

/// What the functions of Python's library are there for that wait for a lock: the outermost one decides.
pub(super) fn signal(frames: &[PythonFrame]) -> Option<Signal> {
    let mut found = None;
    let mut inner = "";
    for frame in frames.iter().take_while(|frame| is_library(frame)) {
        let Some(file) = LIBRARY.iter().position(|file| frame.code.file.ends_with(file)) else { break };
        let (class, function) = frame.code.function.rsplit_once('.').unwrap_or(("", &frame.code.function));
        let known = match (file, class, function) {
            // Before 3.11 functions are known without their classes.
            (0, "Event", "wait") => (Kind::Condvar, Role::Signal, "Python Event"),
            (0, "", "wait") if inner == "wait" => (Kind::Condvar, Role::Signal, "Python Event"),
            (0, "Barrier" | "", "_wait") | (0, "Barrier", "wait") => {
                (Kind::Barrier, Role::Signal, "Python Barrier")
            }
            (0, "", "wait") if inner == "_wait" => (Kind::Barrier, Role::Signal, "Python Barrier"),
            (0, "Condition" | "", "wait" | "wait_for") => (Kind::Condvar, Role::Signal, "Python Condition"),
            (0, "Semaphore" | "BoundedSemaphore" | "", "acquire") => {
                (Kind::Semaphore, Role::Wake, "Python Semaphore")
            }
            (0, "Thread" | "", "join" | "_wait_for_tstate_lock" | "_shutdown") => {
                (Kind::Join, Role::Signal, "")
            }
            (1, _, "get" | "put" | "join") => (Kind::Channel, Role::Signal, "Python Queue"),
            (2, _, "_worker") => (Kind::Idle, Role::Signal, "Python pool worker"),
            (3, _, "result" | "exception" | "wait" | "as_completed") => {
                (Kind::Job, Role::Signal, "Python Future")
            }
            _ => {
                inner = function;
                continue;
            }
        };
        inner = function;
        found = Some(known);
    }
    let (kind, role, name) = found?;
    Some(Signal { kind, role, name: Some(name).filter(|name| !name.is_empty()) })
}
