//! Locks of glibc's own, whose calls no recorder sees: the report names them, and the function that calls glibc.

use std::path::Path;

use spinpark_fixtures::compile_c;

use super::recording;
use spinpark_fixtures::command::{flat, said};

/// What the report of the program begins with, doing `what`; the same as it is shown again.
fn headline(program: &Path, what: &str) -> String {
    let directory = tempfile::tempdir().expect("a directory");
    let mut command = recording(directory.path(), ["profile", "--output", "kept", "--"]);
    let result = said(command.arg(program).arg(what).env("MALLOC_ARENA_MAX", "1"));
    assert_eq!(result.code, Some(0), "{result:#?}");
    let first = flat(&result.stderr);
    let again = flat(&said(&mut recording(directory.path(), ["report", "kept"])).stdout);
    let (_, headline) = again.split_once("detail contended. ").unwrap_or_else(|| panic!("{again}"));
    let sentence = headline.split(". ").next().unwrap_or_default();
    assert!(first.contains(sentence), "`{sentence}` was not in the first report: {first}");
    headline.to_owned()
}

/// The lock comes first, and its waiting is not among what is not recorded.
#[track_caller]
fn names(program: &Path, what: &str, lock: &str, advice: &str) {
    let headline = headline(program, what);
    // The holder waits for it, too.
    let all = format!("All waiting is on glibc's lock of {lock}");
    assert!(headline.starts_with(&all), "no `{all}` in {headline}");
    for words in ["Threads waited at least ", " for locks, ", "It is inside of glibc: ", advice] {
        assert!(headline.contains(words), "no `{words}` in {headline}");
    }
    assert!(!headline.contains("not recorded"), "{headline}");
}

#[test]
fn of_a_stream() {
    let program = compile_c("glibc_locks.c", &[]);
    names(&program, "stdout", "`stdout`, below `printf` in `log_line`", "setvbuf");
    names(&program, "file", "a FILE, below `fprintf` in `note`", "FILE of its own");
}

#[test]
fn of_an_arena() {
    let program = compile_c("glibc_locks.c", &[]);
    let headline = headline(&program, "arena");
    let lock = "All waiting is on glibc's lock of malloc's main arena, below `";
    assert!(headline.starts_with(lock), "{headline}");
    assert!(
        headline.contains("` in `parse_request`. ") && headline.contains("MALLOC_ARENA_MAX"),
        "{headline}"
    );
}

#[test]
fn of_the_time_zone() {
    let program = compile_c("glibc_locks.c", &[]);
    names(&program, "zone", "the time zone, below `localtime_r` in `stamp`", "the result");
}

#[test]
fn of_the_random_state() {
    let program = compile_c("glibc_locks.c", &[]);
    let headline = headline(&program, "random");
    assert!(
        headline.starts_with("All waiting is on glibc's lock of the random state, below `"),
        "{headline}"
    );
}

/// Neither the program nor libc needs symbols for the lock and the function of glibc.
#[test]
fn of_a_stripped_program() {
    let program = compile_c("glibc_locks.c", &["-s"]);
    let headline = headline(&program, "stdout");
    assert!(
        headline.starts_with("All waiting is on glibc's lock of `stdout`, below `printf` in `"),
        "{headline}"
    );
}
