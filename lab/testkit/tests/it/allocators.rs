//! Other preloaded libraries beside the drop-in and the recorder, before and behind them: allocators, which
//! call lock functions before anything else and in fork handlers; heaptrack, which intercepts the allocator;
//! eatmydata.
//!
//! None of Debian's registers restartable sequences of its own. Where a program does (`own_rseq`), glibc has
//! been told not to (`glibc.pthread.rseq=0`), and then the drop-in uses none.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use spinpark_testkit::{Run, compile_c, dropin, find_program, profiler};

/// Debian's directory of libraries.
const LIBRARIES: &str = "/usr/lib/x86_64-linux-gnu";

fn skipped(what: &str) {
    assert!(
        std::env::var_os("SPINPARK_REQUIRE_PROGRAMS").is_none_or(|value| value != "1"),
        "{what} is not installed"
    );
    eprintln!("skipped: {what} is not installed");
}

/// What is preloaded beside another library: the drop-in, the recorder, both.
fn ours() -> [Vec<&'static Path>; 3] {
    [vec![dropin()], vec![profiler()], vec![profiler(), dropin()]]
}

fn preload<'a>(libraries: impl IntoIterator<Item = &'a Path>) -> OsString {
    let libraries: Vec<_> = libraries.into_iter().map(Path::as_os_str).collect();
    let mut variable = OsString::from("LD_PRELOAD=");
    variable.push(libraries.join(":".as_ref()));
    variable
}

/// Runs `command` with these libraries, and with everything recorded if the recorder is among them.
fn run(libraries: OsString, command: &[PathBuf]) {
    let directory = tempfile::tempdir().expect("a directory");
    let outcome = Run::new("env")
        .arg(libraries)
        .args(command)
        .env("SPINPARK_PROFILE_DIR", directory.path())
        .env("SPINPARK_PROFILE_DETAIL", "full")
        .current_dir(directory.path())
        .succeed();
    assert!(outcome.stdout_text().contains("done"), "{}", outcome.report());
}

/// Before ours and behind them.
fn beside(library: &str) {
    let library = Path::new(LIBRARIES).join(library);
    if !library.exists() {
        return skipped(&library.display().to_string());
    }
    let program = compile_c("posix/allocators.c", &[]);
    for ours in ours() {
        run(preload(ours.iter().copied().chain([library.as_path()])), std::slice::from_ref(&program));
        run(preload([library.as_path()].into_iter().chain(ours)), std::slice::from_ref(&program));
    }
}

#[test]
fn jemalloc() {
    beside("libjemalloc.so.2");
}

#[test]
fn tcmalloc() {
    beside("libtcmalloc_minimal.so.4");
}

#[test]
fn mimalloc() {
    beside("libmimalloc.so.2.0");
}

#[test]
fn eatmydata() {
    beside("libeatmydata.so");
}

/// Its script puts its library before ours. Children start no thread here: heaptrack's lock may be held at a
/// fork, by a thread that the child does not have, and a second thread of the child then waits for it for
/// ever (on glibc in a third of the runs).
#[test]
fn heaptrack() {
    let Some(heaptrack) = find_program("heaptrack") else { return skipped("heaptrack") };
    let program = compile_c("posix/allocators.c", &[]);
    let command = [heaptrack, "--output".into(), "trace".into(), program, "no-threads-in-children".into()];
    for ours in ours() {
        run(preload(ours), &command);
    }
}

/// A program that registers restartable sequences itself, as Google's tcmalloc does where glibc leaves them
/// alone.
#[test]
fn own_rseq() {
    let program = compile_c("posix/own_rseq.c", &[]);
    for ours in ours() {
        let tunables = OsString::from("GLIBC_TUNABLES=glibc.pthread.rseq=0");
        let directory = tempfile::tempdir().expect("a directory");
        let run = Run::new("env").args([preload(ours), tunables]).arg(&program);
        run.env("SPINPARK_PROFILE_DIR", directory.path()).succeed();
    }
}
