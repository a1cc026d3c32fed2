//! What a thread waits for that sleeps at a futex or a semaphore, by the functions on its stack: from a
//! [table](waits.toml), which a user may extend.

use std::borrow::Cow;
use std::cell::Cell;
use std::path::Path;

use serde::Deserialize;

use crate::function_names::short;
use crate::model::{Frame, Kind, Role};

/// A file of such entries.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    wait: Vec<Entry>,
    #[serde(default)]
    frames: Vec<Frames>,
}

/// See the head of the table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    is: What,
    name: String,
    functions: Vec<String>,
    #[serde(default)]
    by: By,
    /// Some stack has had one of its functions.
    #[serde(skip)]
    is_met: Cell<bool>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Frames {
    functions: Vec<String>,
    /// Only where one of these functions has called them; none: in any case.
    #[serde(default)]
    below: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum What {
    Mutex,
    Read,
    Write,
    Once,
    Condvar,
    Channel,
    Idle,
    Barrier,
    Join,
    Semaphore,
    Futex,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum By {
    #[default]
    Address,
    Function,
    Process,
}

/// What a wait is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct WaitTarget {
    pub(crate) kind: Kind,
    pub(crate) role: Role,
    /// What the object is called; none if only the kind is known.
    pub(crate) name: Option<String>,
    /// Objects that are used in one function are not distinguished.
    pub(crate) is_by_function: bool,
    /// The process has one.
    pub(crate) is_single: bool,
    /// The stack has a function that uses it, and not only those of which the wait is made.
    pub(crate) is_placed: bool,
}

impl WaitTarget {
    /// Of an object of which only the kind is known.
    pub(crate) fn of_kind(kind: Kind) -> Self {
        let role = match kind {
            Kind::Once => Role::Write,
            Kind::Barrier | Kind::Join => Role::Signal,
            _ => Role::Wake,
        };
        let is_by_function = kind == Kind::Join;
        Self { kind, role, name: None, is_by_function, is_single: false, is_placed: true }
    }

    /// Of a lock that the program made of a mutex and condition variables.
    pub(crate) fn of_made(role: Role, name: Option<String>) -> Self {
        let kind = if role == Role::Read { Kind::RwLock } else { Kind::Mutex };
        Self { kind, role, name, is_by_function: false, is_single: false, is_placed: true }
    }

    fn of(entry: &Entry, is_placed: bool) -> Self {
        let (kind, role) = match entry.is {
            What::Mutex => (Kind::Mutex, Role::Write),
            What::Read => (Kind::RwLock, Role::Read),
            What::Write => (Kind::RwLock, Role::Write),
            What::Once => (Kind::Once, Role::Write),
            What::Condvar => (Kind::Condvar, Role::Signal),
            What::Channel => (Kind::Channel, Role::Signal),
            What::Idle => (Kind::Idle, Role::Signal),
            What::Barrier => (Kind::Barrier, Role::Signal),
            What::Join => (Kind::Join, Role::Signal),
            What::Semaphore => (Kind::Semaphore, Role::Wake),
            What::Futex => (Kind::Futex, Role::Wake),
        };
        Self {
            kind,
            role,
            name: Some(entry.name.clone()),
            is_by_function: entry.by != By::Address,
            is_single: entry.by == By::Process,
            is_placed,
        }
    }
}

/// The table: ours, after a user's.
#[derive(Clone, Debug)]
pub struct Waits(Vec<File>);

impl Default for Waits {
    fn default() -> Self {
        Self(vec![toml::from_str(include_str!("waits.toml")).expect("a test reads it")])
    }
}

impl Waits {
    /// With the entries of this file before ours.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is no such table: a sentence for the user.
    pub fn with_file(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| format!("{shown}: {error}"))?;
        let file: File = toml::from_str(&text)
            .map_err(|error| format!("{shown} is no table of waits: {}", error.to_string().trim_end()))?;
        if let Some(entry) = file.wait.iter().find(|entry| entry.functions.is_empty()) {
            return Err(format!(
                "{shown} is no table of waits: the entry `{}` has no functions; name those on the stack of a thread that waits so",
                entry.name
            ));
        }
        if file.wait.is_empty() && file.frames.is_empty() {
            return Err(format!(
                "{shown} has no entry `[[wait]]`: the manual, \"Whose wait is seen\", has an example"
            ));
        }
        let mut waits = Self::default();
        waits.0.insert(0, file);
        Ok(waits)
    }

    /// Whether a user's entries come before ours.
    pub(crate) fn is_users(&self) -> bool {
        self.0.len() > 1
    }

    /// The user's entries of which no stack had a function.
    pub(crate) fn unmet(&self) -> Vec<&str> {
        let users = self.0.iter().take(self.0.len() - 1).flat_map(|file| &file.wait);
        users.filter(|entry| !entry.is_met.get()).map(|entry| entry.name.as_str()).collect()
    }

    /// What a thread with this stack waits for, the innermost function first, and how many frames of it
    /// belong to that. A stripped library's own functions have no names: what calls them from the same
    /// library tells. `is_wrapper`: of frames that wrap locks whatever they are.
    pub(crate) fn find(
        &self,
        frames: &[Frame],
        is_wrapper: impl Fn(&Frame) -> bool,
    ) -> (Option<WaitTarget>, usize) {
        let mut found: Option<&Entry> = None;
        let mut own = 0;
        let mut unnamed: Option<&str> = None;
        for (at, frame) in frames.iter().enumerate() {
            if unnamed.is_some_and(|module| module != frame.module) {
                break;
            }
            let Some(function) = frame.function.as_deref().map(plain) else {
                unnamed = Some(&frame.module);
                continue;
            };
            let function = &*function;
            unnamed = None;
            // What runs a closure may be the closure.
            if ["FnOnce", "__rust_begin_short_backtrace"].iter().any(|part| function.contains(part)) {
                break;
            }
            let entry =
                self.0.iter().flat_map(|file| &file.wait).find(|entry| fits_any(&entry.functions, function));
            let users = self.0.iter().take(self.0.len() - 1).flat_map(|file| &file.wait);
            users
                .filter(|entry| fits_any(&entry.functions, function))
                .for_each(|entry| entry.is_met.set(true));
            let is_part = || {
                let parts = self.0.iter().flat_map(|file| &file.frames);
                parts.into_iter().any(|part| {
                    fits_any(&part.functions, function) && is_below(&part.below, &frames[at + 1..])
                }) || is_of_such_a_crate(frame)
                    || is_wrapper(frame)
            };
            match (entry, found) {
                // What takes a lock of another library for something of its own is what uses it.
                (Some(entry), Some(first)) if WaitTarget::of(first, true).role.is_lock() => {
                    if entry.name != first.name {
                        break;
                    }
                }
                (Some(entry), _) => found = Some(entry),
                (None, _) if is_part() => {}
                (None, _) => break,
            }
            own = at + 1;
        }
        (found.map(|entry| WaitTarget::of(entry, own < frames.len())), own)
    }
}

/// Line tables have inlined functions without their modules: those of Rust's library, and of crates that
/// threads wait with, are known by their files.
fn is_of_such_a_crate(frame: &Frame) -> bool {
    const LIBRARY: [&str; 3] = ["/library/std/src/", "/library/core/src/", "/library/alloc/src/"];
    /// In a registry; a version follows.
    const CRATES: [&str; 5] =
        ["/crossbeam-channel-", "/crossbeam-utils-", "/flume-", "/rayon-core-", "/tokio-"];
    let is_version = |rest: &str| rest.starts_with(|first: char| first.is_ascii_digit());
    let is_there = |(path, _): &(String, u32)| {
        LIBRARY.iter().any(|directory| path.contains(directory))
            || CRATES.iter().any(|name| path.split_once(name).is_some_and(|(_, rest)| is_version(rest)))
    };
    frame.is_inlined && frame.source.as_ref().is_some_and(is_there)
}

/// A function's name as patterns have it: without its parameters, its type, and what stands before a path of
/// Rust's.
fn plain(function: &str) -> Cow<'_, str> {
    match (short(function), ["void ", "bool "]) {
        (Cow::Borrowed(name), types) => {
            Cow::Borrowed(types.iter().find_map(|of| name.strip_prefix(of)).unwrap_or(name))
        }
        (Cow::Owned(name), types) => {
            Cow::Owned(types.iter().find_map(|of| name.strip_prefix(of)).unwrap_or(&name).to_owned())
        }
    }
}

/// Whether one of these functions is among the callers; of no functions, it is not asked.
fn is_below(functions: &[String], callers: &[Frame]) -> bool {
    let mut names = callers.iter().filter_map(|caller| caller.function.as_deref());
    functions.is_empty() || names.any(|name| fits_any(functions, &plain(name)))
}

fn fits_any(patterns: &[String], function: &str) -> bool {
    patterns.iter().any(|pattern| fits(pattern, function))
}

/// Whether `text` is `pattern`, in which `*` stands for anything.
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(functions: &[&str]) -> Vec<Frame> {
        let frame = |function: &&str| Frame {
            function: Some((*function).to_owned()),
            module: String::from("m"),
            ..Frame::default()
        };
        functions.iter().map(frame).collect()
    }

    fn found(functions: &[&str]) -> (Option<(Kind, Role, String)>, usize) {
        let (wait, own) = Waits::default().find(&stack(functions), |_| false);
        (wait.map(|wait| (wait.kind, wait.role, wait.name.unwrap_or_default())), own)
    }

    #[test]
    fn the_table_can_be_read() {
        for entry in Waits::default().0.iter().flat_map(|file| &file.wait) {
            assert!(!entry.name.is_empty() && !entry.functions.is_empty());
        }
    }

    #[test]
    fn patterns() {
        assert!(fits("g_mutex_lock*", "g_mutex_lock_slowpath") && fits("g_mutex_lock*", "g_mutex_lock"));
        assert!(fits(
            "std::sys::*Mutex::lock_contended",
            "std::sys::sync::mutex::futex::Mutex::lock_contended"
        ));
        assert!(!fits("LWLockAcquire", "LWLockAcquireOrWait") && !fits("a*b", "ac") && fits("*", ""));
        assert!(!fits("ab*ba", "aba"), "parts do not overlap");
    }

    #[test]
    fn a_lock_is_decided_by_its_own_function_and_a_signal_by_what_it_is_for() {
        let (mutex, own) = found(&[
            "std::sys::pal::unix::futex::futex_wait",
            "std::sys::sync::mutex::futex::Mutex::lock_contended",
            "std::sync::poison::mutex::Mutex<T>::lock",
            "tokio::runtime::blocking::pool::Inner::run",
            "main",
        ]);
        assert_eq!(mutex, Some((Kind::Mutex, Role::Write, String::from("std Mutex"))));
        assert_eq!(own, 3, "the pool that uses the lock is named");
        let (channel, own) = found(&[
            "std::sys::pal::unix::futex::futex_wait",
            "std::sys::sync::thread_parking::futex::Parker::park",
            "std::thread::park",
            "std::sync::mpmc::context::Context::wait_until",
            "std::sync::mpmc::list::Channel<T>::recv",
            "app::consume",
        ]);
        assert_eq!(channel, Some((Kind::Channel, Role::Signal, String::from("std channel"))));
        assert_eq!(own, 5);
        assert_eq!(found(&["app::my_futex_wait", "main"]), (None, 0));
    }

    #[test]
    fn code_made_at_run_time_is_known_by_its_map() {
        let (java, own) = found(&[
            "PlatformEvent::park()",
            "ObjectMonitor::EnterI(JavaThread*)",
            "ObjectMonitor::enter(JavaThread*)",
            "monitorenter_nofpu Runtime1 stub",
            "Accounts.deposit(java.io.FileOutputStream)",
            "Interpreter",
        ]);
        assert_eq!(java, Some((Kind::Mutex, Role::Write, String::from("Java monitor"))));
        assert_eq!(own, 4);
        let (node, own) = found(&[
            "v8::base::ConditionVariable::Wait(v8::base::Mutex*)",
            "v8::internal::FutexEmulation::WaitJs32(v8::internal::Isolate*)",
            "v8::internal::Builtin_AtomicsWait(int, unsigned long*, v8::internal::Isolate*)",
            "Builtins_CEntry_Return1_ArgvOnStack_BuiltinExit",
            "JS:lock",
        ]);
        assert_eq!(node, Some((Kind::Futex, Role::Wake, String::from("Atomics.wait"))));
        assert_eq!(own, 4);
    }

    #[test]
    fn functions_of_python_are_named_where_they_are_known() {
        let known = [
            "PyThread_acquire_lock_timed",
            "acquire_timed",
            "lock_PyThread_acquire_lock",
            "method_vectorcall_VARARGS_KEYWORDS",
            "_PyEval_EvalFrameDefault",
            "py_trampoline_evaluator",
            "py::checkout:/srv/shop.py",
            "_PyEval_EvalFrameDefault",
            "py::worker:/srv/shop.py",
        ];
        let (lock, own) = found(&known);
        assert_eq!(lock, Some((Kind::Semaphore, Role::Wake, String::from("Python lock"))));
        assert_eq!(own, 6, "the function that waits comes first");
        assert_eq!(found(&known[..6]).1, 3, "without them the interpreter's stay");
    }

    #[test]
    fn runtimes_locks_are_one_each() {
        let waits = Waits::default();
        let of = |functions: &[&str]| waits.find(&stack(functions), |_| false).0.expect("a lock");
        let ruby =
            of(&["rb_native_cond_wait", "gvl_acquire_common", "gvl_acquire", "rb_nogvl", "rb_io_read"]);
        let newer = of(&["thread_sched_wait_running_turn", "thread_sched_to_running", "rb_nogvl"]);
        assert!(ruby == newer && ruby.is_single && ruby.role == Role::Write, "{ruby:?} {newer:?}");
        let mutex = of(&["rb_native_cond_wait", "rb_mutex_lock", "rb_mutex_synchronize", "rb_vm_exec"]);
        assert_eq!((mutex.name.as_deref(), mutex.role), (Some("Ruby Mutex"), Role::Write));
        assert!(of(&["mutex2_lock_timeout", "RPyGilAcquireSlowPath", "pypy_g_work"]).is_single);
    }

    #[test]
    fn functions_without_names_are_those_of_the_library_that_calls_them() {
        let find = |frames: &[(Option<&str>, &str)]| {
            let mut stack = stack(&vec![""; frames.len()]);
            for (frame, (function, module)) in stack.iter_mut().zip(frames) {
                (frame.function, frame.module) = (function.map(str::to_owned), (*module).to_owned());
            }
            let (wait, own) = Waits::default().find(&stack, |_| false);
            (wait.map(|wait| wait.kind), own)
        };
        let queue = [
            (Some("g_cond_wait"), "libglib.so"),
            (None, "libglib.so"),
            (Some("g_async_queue_pop"), "libglib.so"),
            (Some("consume"), "app"),
        ];
        assert_eq!(find(&queue), (Some(Kind::Channel), 3));
        let callback = [(None, "plugin.so"), (Some("g_async_queue_pop"), "libglib.so")];
        assert_eq!(find(&callback), (None, 0));
        let stripped = [(Some("g_cond_wait"), "libglib.so"), (None, "libglib.so"), (Some("consume"), "app")];
        assert_eq!(find(&stripped), (Some(Kind::Condvar), 1));
    }
}
