//! `spinpark why`: what a process that runs waits for.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use spinpark_fixtures::command::{Said, flat, said};
use spinpark_fixtures::{compile_c, dropin, profiler};

use crate::fixtures::spinpark;

/// A program that is as it stays, until this is dropped.
pub(crate) struct Hanging(pub(crate) Child);

impl Hanging {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stderr.take().expect("a pipe")).read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n");
        until_asleep(child.id());
        Self(child)
    }

    pub(crate) fn scene(scene: &str, preload: Option<&Path>) -> Self {
        let mut command = Command::new(compile_c("hangs.c", &["-O1"]));
        command.arg(scene).envs(preload.map(|library| ("LD_PRELOAD", library)));
        Self::start(command)
    }

    /// Stops it, as a shell does, or a debugger.
    fn stop(&self) {
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").args(["-STOP", &pid]).status().is_ok_and(|status| status.success()));
        let is_stopped = |task: fs::DirEntry| {
            fs::read_to_string(task.path().join("stat")).expect("it is there").contains(") T ")
        };
        let tasks = || fs::read_dir(format!("/proc/{pid}/task")).expect("threads").flatten();
        while !tasks().all(is_stopped) {
            std::thread::yield_now();
        }
    }

    fn why(&self) -> Said {
        said(spinpark(["why"]).arg(self.0.id().to_string()))
    }

    fn json(&self) -> Value {
        let said = said(spinpark(["why"]).arg(self.0.id().to_string()).arg("--json"));
        assert_eq!(said.code, Some(0), "{said:#?}");
        serde_json::from_str(&said.stdout).expect("JSON")
    }
}

impl Drop for Hanging {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until the first thread of a process sleeps, which it does after it has said that it is ready: it may lose its CPU
/// in between.
pub(crate) fn until_asleep(pid: u32) {
    let stat = format!("/proc/{pid}/stat");
    let is_asleep =
        |stat: String| stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with(['S', 'Z']));
    while !is_asleep(fs::read_to_string(&stat).expect("it runs")) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until no more threads of a process than this are awake: a stop by a debugger ends their calls, into which they go
/// back when they have a CPU.
pub(crate) fn until_at_rest(pid: u32, awake: usize) {
    let is_asleep = |task: &fs::DirEntry| {
        let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        // The first thread may have ended before the others.
        stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with(['S', 'Z']))
    };
    let tasks = || fs::read_dir(format!("/proc/{pid}/task")).expect("it runs").flatten();
    while tasks().filter(|task| !is_asleep(task)).count() > awake {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Whether a text has these words, wherever its lines end.
#[track_caller]
pub(crate) fn has(text: &str, words: &[&str]) {
    let flat = flat(text);
    for words in words {
        assert!(flat.contains(words), "no `{words}` in {text}");
    }
}

/// What `why` says of a scene, on glibc's locks and on ours: it has these words.
#[track_caller]
fn both(scene: &str, words: &[&str]) {
    for preload in [None, Some(dropin())] {
        let why = Hanging::scene(scene, preload).why();
        why.succeeds(&["Threads"]);
        has(&why.stdout, words);
    }
}

#[test]
fn a_deadlock_comes_first() {
    both(
        "deadlock",
        &[
            "7 threads Deadlock: thread",
            "in `first_then_second (hangs.c:",
            "for the mutex `audit`, which thread",
            "for the mutex `accounts`, which thread",
            "1 more thread waits for one of these.",
            "signal of the condvar jobs",
        ],
    );
    both("allocated", &["Deadlock: thread", "for a mutex at 0x"]);
    both(
        "itself",
        &["Deadlock: thread", "in `has_accounts", "for the mutex `accounts`, which it has taken itself"],
    );
    // One of them gives up in the end.
    both("timed", &["threads Thread", "held by thread", "and so on", "mutex accounts, for a time"]);
}

/// The owners are on no record: each has the other one's lock on its stack.
#[test]
fn a_deadlock_of_locks_that_do_not_tell_their_owners() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = directory.path().join("hangs");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut compile = Command::new(rustc);
    compile
        .args(["-O", "-g", "--edition", "2021", "-o"])
        .arg(&program)
        .arg(spinpark_fixtures::source("hangs.rs"));
    assert!(compile.status().is_ok_and(|status| status.success()));
    let hanging = Hanging::start(Command::new(&program));
    let text = flat(&hanging.why().stdout);
    let words = [
        "Probably a deadlock: thread",
        "in `hangs::both (hangs.rs:",
        "for a std Mutex, which thread",
        "seems to have",
    ];
    assert!(words.iter().all(|words| text.contains(words)), "{text}");
}

#[test]
fn both_sides_of_a_deadlock_are_data() {
    let hanging = Hanging::scene("deadlock", None);
    let json = hanging.json();
    let cycle = json["deadlocks"][0].as_array().expect("a cycle").clone();
    assert_eq!((json["deadlocks"].as_array().map(Vec::len), cycle.len()), (Some(1), 2), "{json:#}");
    let threads = json["threads"].as_array().expect("threads");
    let waits = |id: &Value| &threads.iter().find(|thread| thread["id"] == *id).expect("it is there")["wait"];
    assert_eq!((&waits(&cycle[0])["by"], &waits(&cycle[1])["by"]), (&cycle[1], &cycle[0]));
}

#[test]
fn holders_and_what_they_do() {
    both(
        "sleeper",
        &[
            "2 threads wait in `wants_accounts",
            "for the mutex `accounts`, held by",
            "(`teller`), which is in `clock_nanosleep` in `has_accounts",
        ],
    );
    both(
        "chain",
        &[
            "(`auditor`) waits in `wants_accounts",
            "(`teller`), which waits in `has_accounts",
            "for the rwlock `table`, to read, held by thread",
            "(`writer`), which is in `read` in `writes_table",
        ],
    );
    both("readers", &["(`writer`) waits in `wants_table", "for the rwlock `table`, held by 2 readers"]);
    both("ended", &["2 threads wait in", "which has ended: nobody will release it"]);
    both("stream", &["glibc's lock of stdout, held by thread", "(`logger`), which is in `clock_nanosleep`"]);
    both("back", &["for the mutex `accounts`", "which thread"]);
}

/// Threads without work are no news; threads of which none is left to wake another are.
#[test]
fn no_lock() {
    both("idle", &["No thread waits for a lock: 6 wait for work, events or threads' ends.", "in epoll_wait"]);
    let mut command = Command::new(compile_c("hangs.c", &["-O1", "-DAS_GO"]));
    command.arg("idle");
    Hanging::start(command).why().succeeds(&["goroutines that wait have no thread"]);
    both("semaphores", &["All 4 threads wait for each other, none with a deadline", "semaphore slots"]);
}

#[test]
fn processes_that_cannot_be_read() {
    let bad = |pid: &str, words: &[&str]| said(&mut spinpark(["why", pid])).fails(2, words);
    bad("4194305", &["there is no process 4194305"]);
    bad("x", &["is no file, and no process id", "Write a whole number"]);
    bad("0", &["the number must be at least 1"]);
    bad("2", &["a thread of the kernel"]);
    // It has ended, and this process has not read how.
    let mut child = Command::new("true").spawn().expect("it starts");
    let stat = format!("/proc/{}/stat", child.id());
    while !fs::read_to_string(&stat).expect("it is there").contains(" Z ") {
        std::thread::yield_now();
    }
    bad(&child.id().to_string(), &["has ended"]);
    let _ = child.wait();
    // A thread of a process.
    let hanging = Hanging::scene("idle", None);
    let tasks = fs::read_dir(format!("/proc/{}/task", hanging.0.id())).expect("threads");
    let ids = tasks.map(|task| task.expect("a thread").file_name().into_string().expect("a number"));
    let process = hanging.0.id().to_string();
    let thread = ids.into_iter().find(|id| *id != process).expect("another one");
    bad(&thread, &["is a thread of process", &format!("spinpark why {process}")]);
}

/// Nothing stops it, and no call of it is interrupted: it would end, since it checks what `epoll_wait` returns.
#[test]
fn the_process_does_not_notice() {
    let hanging = Hanging::scene("idle", None);
    let switches = || {
        let status = fs::read_to_string(format!("/proc/{}/status", hanging.0.id())).expect("it runs");
        status.lines().filter(|line| line.contains("ctxt_switches")).map(str::to_owned).collect::<Vec<_>>()
    };
    let before = switches();
    for _ in 0..3 {
        hanging.why().succeeds(&["No thread waits for a lock"]);
    }
    assert_eq!(switches(), before);
}

#[test]
fn a_process_that_is_stopped() {
    let hanging = Hanging::scene("sleeper", None);
    hanging.stop();
    hanging.why().succeeds(&["The process is stopped.", &format!("kill -CONT {}", hanging.0.id())]);
    // None of its threads can move: what they wait for is certain.
    for preload in [None, Some(dropin())] {
        let hanging = Hanging::scene("deadlock", preload);
        hanging.stop();
        let words = [
            "Deadlock: thread",
            "for the mutex `audit`, which thread",
            "for the mutex `accounts`, which thread",
            "The process is stopped.",
            "stopped: mutex audit",
        ];
        has(&hanging.why().stdout, &words);
    }
}

/// The functions of a program that was linked statically are in one file with those of libc.
#[test]
fn a_program_that_was_linked_statically() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = directory.path().join("hangs");
    let source = spinpark_fixtures::source("hangs.c");
    let mut compile = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    compile.args(["-O1", "-g", "-static", "-pthread", "-D_GNU_SOURCE", "-o"]).arg(&program).arg(source);
    if !compile.stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: there is no static C library");
        return;
    }
    let start = |scene: &str| {
        let mut command = Command::new(&program);
        command.arg(scene);
        Hanging::start(command)
    };
    let deadlock = start("deadlock");
    has(
        &deadlock.why().stdout,
        &["Deadlock: thread", "waits in `first_then_second (hangs.c:", "for the mutex `audit`, which thread"],
    );
    let sleeper = start("sleeper");
    has(&sleeper.why().stdout, &["2 threads wait in `wants_accounts", "for the mutex `accounts`, held by"]);
    for hanging in [deadlock, sleeper] {
        let text = hanging.why().stdout;
        assert!(!text.contains("lll_lock") && !text.contains("pthread_mutex_lock"), "{text}");
    }
}

/// At one moment: threads that run have stacks, too. A debugger's stop ends calls of this program with `EINTR`, which it
/// would report and end of.
#[test]
fn threads_that_are_stopped_for_a_moment() {
    let mut hanging = Hanging::scene("calls", None);
    let pid = hanging.0.id().to_string();
    let stop = |pid: &str| said(spinpark(["why", "--stop"]).arg(pid));
    for _ in 0..5 {
        until_at_rest(hanging.0.id(), 1);
        let why = stop(&pid);
        why.succeeds(&[
            "It was stopped for",
            "in epoll_wait",
            "in recvfrom",
            "in rt_sigtimedwait",
            "in read",
        ]);
        let mut lines = why.stdout.lines();
        assert!(
            lines.any(|line| line.contains("runs") && line.contains("counts (hangs.c:")),
            "{}",
            why.stdout
        );
    }
    assert_eq!(hanging.0.try_wait().expect("it can be asked"), None);
    let traced = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    assert!(traced.contains("TracerPid:\t0\n"), "{traced}");
    for preload in [None, Some(dropin())] {
        let hanging = Hanging::scene("deadlock", preload);
        stop(&hanging.0.id().to_string()).succeeds(&["Deadlock: thread", "for the", "mutex `audit`"]);
    }
    stop("4194305").fails(2, &["there is no process 4194305"]);
}

/// Where Yama restricts it to parents: seen by a filter, since it takes effect only there.
#[test]
fn a_process_that_lets_others_read_it() {
    let filtered = compile_c("ptracer.c", &[]);
    let run = |library: &Path, arguments: &[&Path], allow: &str| {
        let mut command = Command::new(&filtered);
        command.args(arguments).env("LD_PRELOAD", library).env("SPINPARK_ALLOW_ATTACH", allow);
        command.status().expect("it runs")
    };
    let program = Path::new("/bin/true");
    for library in [dropin(), profiler()] {
        assert_eq!(run(library, &[program], "1").signal(), Some(libc::SIGSYS), "{library:?}");
        assert!(run(library, &[program], "0").success(), "{library:?}");
    }
    // A forked child.
    assert_eq!(run(dropin(), &[], "1").code(), Some(42));
    assert_eq!(run(dropin(), &[], "0").code(), Some(0));
}

/// The library for C as it is installed: stripped, and its functions jump to others without symbols. So does the function of
/// the program: the place is that which called it.
#[test]
fn a_stripped_library_of_locks() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name);
    let library = "#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
__attribute__((noinline)) static void sleeps(int *word) {
    for (;;) { syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, *word, 0, 0, 0); __asm__ volatile(\"\"); }
}
void spinpark_mutex_lock(int *mutex) { sleeps(mutex + 1); }
";
    let program = "#include <pthread.h>
#include <unistd.h>
void spinpark_mutex_lock(int *mutex);
static int mutex[4];
__attribute__((noinline)) static void takes(int *mutex) { spinpark_mutex_lock(mutex); }
__attribute__((noinline)) static void *books(void *unused) {
    (void)unused;
    write(2, \"ready\\n\", 6);
    takes(mutex);
    __asm__ volatile(\"\");
    return 0;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, books, 0);
    return pthread_join(thread, 0);
}
";
    fs::write(path("library.c"), library).expect("a file");
    fs::write(path("program.c"), program).expect("a file");
    let compile = |options: &[&str]| {
        let mut command = Command::new("cc");
        command.args(["-O2", "-fno-stack-protector"]).args(options).current_dir(directory.path());
        assert!(command.status().expect("a compiler").success(), "{options:?}");
    };
    compile(&[
        "-shared",
        "-fPIC",
        "-Wl,-s",
        "-Wl,-soname,libspinpark.so.0",
        "-o",
        "libspinpark.so.0",
        "library.c",
    ]);
    compile(&["-pthread", "-o", "program", "program.c", "libspinpark.so.0", "-Wl,-rpath,$ORIGIN"]);
    let hanging = Hanging::start(Command::new(path("program")));
    // It says that it is ready a moment before.
    let mut text = String::new();
    for _ in 0..40 {
        text = flat(&hanging.why().stdout);
        if text.contains("waits in `books`") {
            break;
        }
    }
    assert!(text.contains("waits in `books` for a spinpark mutex"), "{text}");
    assert!(!text.contains('→'), "{text}");
}
