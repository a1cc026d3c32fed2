//! `spinpark why` and `profile --pid` of Python programs: with each CPython from 3.8 on that is installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use spinpark_fixtures::command::{Said, flat, said};
use spinpark_fixtures::{compile_c, dropin};

use crate::fixtures::spinpark;
use crate::profile::recording;
use crate::why::Hanging;

/// The interpreters that are installed, by `PATH` and in the directories of pyenv, each version once; without one, a
/// line says that the test is skipped.
pub(crate) fn interpreters() -> Vec<PathBuf> {
    let mut found: Vec<(String, PathBuf)> = Vec::new();
    let mut names: Vec<PathBuf> = (8..15).map(|minor| PathBuf::from(format!("python3.{minor}"))).collect();
    names.push(PathBuf::from("python3"));
    let pyenv = std::env::var_os("PYENV_ROOT").map(PathBuf::from);
    let versions = pyenv.into_iter().flat_map(|root| fs::read_dir(root.join("versions"))).flatten().flatten();
    names.extend(versions.map(|version| version.path().join("bin/python3")));
    let code = "import sys; v = sys.version_info; print(sys.implementation.name, v[0], v[1], hasattr(sys, 'gettotalrefcount'))";
    for path in names {
        let Ok(output) = Command::new(&path).args(["-S", "-c", code]).output() else { continue };
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let minor: u32 = version
            .strip_prefix("cpython 3 ")
            .and_then(|rest| rest.strip_suffix(" False")?.parse().ok())
            .unwrap_or(0);
        if (8..=14).contains(&minor) && found.iter().all(|(known, _)| *known != version) {
            found.push((version, path));
        }
    }
    if found.is_empty() {
        println!("skipped: no CPython from 3.8 to 3.14 is installed");
    }
    found.into_iter().map(|(_, path)| path).collect()
}

/// Runs a program of Python's that says `ready` on its standard error when it is as it stays.
fn hanging(interpreter: &Path, directory: &Path, program: &str) -> Hanging {
    Hanging::start(running(interpreter, directory, program))
}

fn running(interpreter: &Path, directory: &Path, program: &str) -> Command {
    let path = directory.join("app.py");
    fs::write(&path, program).expect("a file");
    let mut command = Command::new(interpreter);
    command.arg("-S").arg(path);
    command
}

fn why(hanging: &Hanging) -> String {
    let said = said(spinpark(["why"]).arg(hanging.0.id().to_string()));
    assert_eq!(said.code, Some(0), "{said:#?}");
    flat(&said.stdout)
}

/// What `why` says of a program, with every interpreter: it has these words, at the latest after some tries.
#[track_caller]
fn all(program: &str, words: &[&str]) {
    let directory = tempfile::tempdir().expect("a directory");
    for interpreter in interpreters() {
        let hanging = hanging(&interpreter, directory.path(), program);
        let mut text = String::new();
        for _ in 0..40 {
            text = why(&hanging);
            if words.iter().all(|words| text.contains(words)) {
                break;
            }
        }
        for words in words {
            assert!(text.contains(words), "{}: no `{words}` in {text}", interpreter.display());
        }
    }
}

/// A deadlock of two locks of this kind, each taken by the first of these ways.
fn deadlock(kind: &str, take: &str) -> String {
    format!(
        "import sys, threading
one, other = threading.{kind}(), threading.{kind}()
both = threading.Barrier(3)
def transfer():
    {take}:
        both.wait()
        with other:
            pass
def report():
    with other:
        both.wait()
        with one:
            pass
for function in transfer, report:
    threading.Thread(target=function, daemon=True).start()
both.wait()
print('ready', file=sys.stderr, flush=True)
threading.Event().wait()
"
    )
}

#[test]
fn a_deadlock_of_locks() {
    let words = [
        "Probably a deadlock: thread",
        "waits in `transfer (app.py:7)` for a Python lock, which thread",
        "waits in `report (app.py:12)` for a Python lock, which thread",
        "seems to have",
        "signal of a Python Event",
        "module (app.py:18)",
    ];
    all(&deadlock("Lock", "with one"), &words);
}

/// Sampled, it is judged as by `why`, and the holders are shown where they are.
#[test]
fn a_sampled_deadlock_of_locks() {
    let directory = tempfile::tempdir().expect("a directory");
    for interpreter in interpreters() {
        let hanging = hanging(&interpreter, directory.path(), &deadlock("Lock", "with one"));
        let mut command = recording(directory.path(), ["profile", "--for", "1s", "--pid"]);
        let result = said(command.arg(hanging.0.id().to_string()));
        assert_eq!(result.code, Some(0), "{result:#?}");
        let words = [
            "Probably a deadlock: thread",
            "waits in `transfer` for the Python lock, which thread",
            "waits in `report` for the Python lock #2, which thread",
            "seems to have",
        ];
        let text = flat(&result.stdout);
        for words in words {
            assert!(text.contains(words), "{}: no `{words}` in {text}", interpreter.display());
        }
        let (_, table) = text.split_once("Waiting now").expect("the table");
        let (table, _) = table.split_once("Locks").expect("another table");
        assert!(!table.contains("not known"), "{}: {text}", interpreter.display());
        let places = ["transfer (app.py:7)", "report (app.py:12)"];
        assert!(places.iter().all(|place| table.matches(place).count() == 2), "{text}");
    }
}

/// These have their owner in memory, however they were taken.
#[test]
fn a_deadlock_of_recursive_locks() {
    let words = [
        "Deadlock: thread",
        "waits in `transfer (app.py:7)` for a Python RLock, which thread",
        "waits in `report (app.py:12)` for a Python RLock, which thread",
    ];
    all(&deadlock("RLock", "if one.acquire()"), &words);
}

/// A lock that was taken without `with` has no owner that is known; nor has one that such a statement had before.
#[test]
fn no_holder_is_made_up() {
    let program = deadlock("Lock", "with one: pass\n    if one.acquire()");
    let words = ["transfer (app.py:8)", "report (app.py:13)"];
    all(&program, &words);
    let directory = tempfile::tempdir().expect("a directory");
    for interpreter in interpreters() {
        let text = why(&hanging(&interpreter, directory.path(), &program));
        assert!(!text.contains("eadlock"), "{text}");
    }
}

#[test]
fn the_holder_of_the_gil() {
    let program = "import sys, threading
def spin():
    while True:
        sum(range(1000))
for _ in range(3):
    threading.Thread(target=spin, daemon=True).start()
print('ready', file=sys.stderr, flush=True)
threading.Event().wait()
";
    all(program, &["in `spin (app.py:4)` for the GIL, held by thread", "runs in `spin (app.py:4)`"]);
}

/// One thread has the GIL and waits for a mutex of C, whose owner waits for the GIL, and wakes to ask for it.
fn deadlock_with_the_gil() -> String {
    let extension = compile_c("extension.c", &["-shared", "-fPIC"]);
    format!(
        "import ctypes, sys, threading, time
keeps, releases = ctypes.PyDLL('{path}'), ctypes.CDLL('{path}')
has_it = threading.Event()
def audit():
    releases.take_accounts()
    has_it.set()
    while True:
        time.sleep(0.001)
def transfer():
    has_it.wait()
    print('ready', file=sys.stderr, flush=True)
    keeps.take_accounts()
for function in audit, transfer:
    threading.Thread(target=function).start()
",
        path = extension.display()
    )
}

/// It says these words at last: at the one moment that it sees, a thread may be about to ask for the GIL.
#[track_caller]
fn until(words: &[&str], mut say: impl FnMut() -> Said) {
    let mut text = String::new();
    for _ in 0..20 {
        text = flat(&say().stdout);
        if words.iter().all(|words| text.contains(words)) {
            return;
        }
    }
    panic!("{words:?} are not in {text}");
}

const OF_THE_GIL: [&str; 3] = [
    "Deadlock: thread",
    "waits in `take_accounts (extension.c:8)` for the mutex `accounts`, which thread",
    "waits in `audit (app.py:8)` for the GIL, which thread",
];

#[test]
fn a_deadlock_of_the_gil_and_a_mutex() {
    let program = deadlock_with_the_gil();
    all(&program, &OF_THE_GIL);
    let directory = tempfile::tempdir().expect("a directory");
    for interpreter in interpreters() {
        let hanging = hanging(&interpreter, directory.path(), &program);
        let say = || {
            let mut command = recording(directory.path(), ["profile", "--for", "1s", "--pid"]);
            let result = said(command.arg(hanging.0.id().to_string()));
            assert_eq!(result.code, Some(0), "{result:#?}");
            result
        };
        let words =
            ["Deadlock: thread", "in `take_accounts` for the mutex `accounts`", "in `audit` for the mutex"];
        // On a busy machine snapshots are up to 400 ms apart, and the last one may see `audit` about to ask for the GIL.
        until(&words, say);
    }
}

/// Where its owner is read from a core dump, is one of the drop-in's, or all threads are stopped: each with one
/// interpreter.
#[test]
fn a_deadlock_of_the_gil_seen_otherwise() {
    let Some(interpreter) = interpreters().pop() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let program = deadlock_with_the_gil();
    let mut command = running(&interpreter, directory.path(), &program);
    command.env("LD_PRELOAD", dropin());
    let preloaded = Hanging::start(command);
    until(&OF_THE_GIL, || said(spinpark(["why"]).arg(preloaded.0.id().to_string())));
    let hanging = hanging(&interpreter, directory.path(), &program);
    let pid = hanging.0.id().to_string();
    until(&OF_THE_GIL, || said(spinpark(["why", "--stop"]).arg(&pid)));
    if crate::core::has_gcore() {
        let prefix = directory.path().join("core");
        let core = prefix.with_extension(&pid);
        let say = || {
            let gcore = Command::new("gcore").arg("-o").arg(&prefix).arg(&pid).output().expect("it starts");
            assert!(core.is_file(), "{gcore:?}");
            said(spinpark(["why"]).arg(&core))
        };
        until(&OF_THE_GIL, say);
    }
}

#[test]
fn threads_without_work() {
    let program = "import sys, threading, queue
def works(jobs):
    jobs.get()
for jobs in queue.Queue(), queue.SimpleQueue():
    threading.Thread(target=works, args=(jobs,), daemon=True).start()
threading.Timer(0.2, lambda: print('ready', file=sys.stderr, flush=True)).start()
threading.Event().wait()
";
    let words = [
        "works (app.py:3)",
        "Python Queue",
        "queue.SimpleQueue",
        "signal of a Python Event",
        "module (app.py:7)",
    ];
    all(program, &words);
}

/// A recording has the interpreter's functions, and names locks by the lines that wait for them.
#[test]
fn a_recording_by_lines() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = "import threading, time
lock = threading.Lock()
end = time.monotonic() + 3
def flush():
    while time.monotonic() < end:
        with lock:
            time.sleep(0.1)
        time.sleep(0.001)
def load():
    while time.monotonic() < end:
        with lock:
            pass
threads = [threading.Thread(target=function) for function in (flush, load, load)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
";
    fs::write(directory.path().join("app.py"), program).expect("a file");
    for interpreter in interpreters() {
        let ask = "import sys; sys.exit(sys.version_info >= (3, 14))";
        if !Command::new(&interpreter).args(["-S", "-c", ask]).status().expect("it starts").success() {
            continue;
        }
        let mut command = recording(directory.path(), ["profile", "--"]);
        let result = said(command.arg(&interpreter).args(["-S", "app.py"]));
        assert_eq!(result.code, Some(0), "{result:#?}");
        let text = flat(&result.stderr);
        assert!(text.contains("Python lock used in `load` (app.py:11)"), "{}: {text}", interpreter.display());
    }
}

#[test]
fn a_profile_by_lines() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = "import sys, threading, time
class Store:
    def __init__(self):
        self.lock = threading.Lock()
    def flush(self):
        while True:
            with self.lock:
                time.sleep(0.1)
            time.sleep(0.001)
    def load(self):
        while True:
            with self.lock:
                pass
store = Store()
for function in store.flush, store.load, store.load:
    threading.Thread(target=function, daemon=True).start()
print('ready', file=sys.stderr, flush=True)
threading.Event().wait()
";
    for interpreter in interpreters() {
        let hanging = hanging(&interpreter, directory.path(), program);
        let say = || {
            let mut command = recording(directory.path(), ["profile", "--for", "1s", "--pid"]);
            let result = said(command.arg(hanging.0.id().to_string()));
            assert_eq!(result.code, Some(0), "{result:#?}");
            result
        };
        // On a busy machine threads that have their lock may wait longer for the GIL.
        until(&["load", "app.py:12", "held by `", "flush", "was in `"], say);
    }
}
