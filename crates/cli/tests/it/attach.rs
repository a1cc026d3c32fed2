//! `spinpark profile --pid` and `top PID`: a process that was not started by spinpark, sampled.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use spinpark_fixtures::command::{Said, said};
use spinpark_fixtures::dropin;

use crate::profile::recording;
use crate::why::{Hanging, has};

fn sampled(directory: &Path, pid: u32, arguments: &[&str]) -> Said {
    let mut command = recording(directory, ["profile", "--for", "600ms", "--pid"]);
    said(command.arg(pid.to_string()).args(arguments))
}

#[test]
fn a_holder_that_sleeps() {
    for preload in [None, Some(dropin())] {
        let directory = tempfile::tempdir().expect("a directory");
        let hanging = Hanging::scene("sleeper", preload);
        let result = sampled(directory.path(), hanging.0.id(), &["--output", "x"]);
        assert_eq!(result.code, Some(0), "{result:#?}");
        let words = [
            "still running",
            "sampled every",
            "All waiting is on one mutex, `accounts`, held by `has_accounts` while `wants_accounts` waits.",
            "While threads waited for it, its holder was in `clock_nanosleep` in `has_accounts` (100 %).",
            "How often threads waited is not known.",
        ];
        has(&result.stdout, &words);
        // It is kept as a recording is.
        has(&said(&mut recording(directory.path(), ["report", "x"])).stdout, &words);
        let json = said(&mut recording(directory.path(), ["report", "x", "--json"]));
        let json: Value = serde_json::from_str(&json.stdout).expect("JSON");
        let waited = json[0]["locks"][0]["roles"][0]["wait"]["total"].as_u64().expect("a time");
        let duration = json[0]["duration"].as_u64().expect("a time");
        // Two threads, all the time.
        assert!((1.9..=2.0).contains(&(waited as f64 / duration as f64)), "{waited} of {duration}");
        assert!(json[0]["sampling"]["snapshots"].as_u64() > Some(0), "{json:#}");
        let folded = said(&mut recording(directory.path(), ["report", "x", "--folded"]));
        assert!(folded.stdout.contains("wants_accounts"), "{folded:#?}");
    }
}

#[test]
fn a_deadlock() {
    let directory = tempfile::tempdir().expect("a directory");
    let hanging = Hanging::scene("deadlock", None);
    let result = sampled(directory.path(), hanging.0.id(), &[]);
    has(&result.stdout, &["Deadlock: thread", "for the mutex `audit`, which thread", "Waiting now"]);
}

#[test]
fn without_a_lock() {
    let directory = tempfile::tempdir().expect("a directory");
    let hanging = Hanging::scene("idle", None);
    let result = sampled(directory.path(), hanging.0.id(), &[]);
    assert_eq!(result.code, Some(0), "{result:#?}");
    assert!(!result.stdout.contains("Deadlock") && !result.stdout.contains("All waiting"), "{result:#?}");
    has(&result.stdout, &["No thread waited for a lock in any snapshot"]);
}

#[test]
fn a_process_that_ends_meanwhile() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut sleeper = Command::new("sleep").arg("0.5").spawn().expect("it starts");
    let waiter = sleeper.id();
    let ended = std::thread::spawn(move || sleeper.wait());
    let mut command = recording(directory.path(), ["profile", "--for", "20s", "--pid"]);
    let result = said(command.arg(waiter.to_string()));
    assert_eq!(result.code, Some(0), "{result:#?}");
    assert!(!result.stdout.contains("still running"), "{result:#?}");
    let _ = ended.join();
}

/// It is another program then, of which nothing is known.
#[test]
fn a_process_that_becomes_another_program() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut shell = Command::new("sh").args(["-c", "sleep 1; exec sleep 30"]).spawn().expect("it starts");
    let mut command = recording(directory.path(), ["profile", "--for", "20s", "--pid"]);
    let result = said(command.arg(shell.id().to_string()));
    let _ = shell.kill();
    let _ = shell.wait();
    assert_eq!(result.code, Some(0), "{result:#?}");
    has(
        &result.stdout,
        &["became another program (exec)", "Warning: Process", "of which nothing was sampled"],
    );
}

/// Readers do not see each other.
#[test]
fn two_at_once() {
    let hanging = Hanging::scene("sleeper", None);
    let pid = hanging.0.id();
    let sample = || {
        let directory = tempfile::tempdir().expect("a directory");
        sampled(directory.path(), pid, &[])
    };
    let (one, other) = std::thread::scope(|scope| {
        let one = scope.spawn(sample);
        let other = sample();
        (one.join().expect("it ends"), other)
    });
    for result in [one, other] {
        has(&result.stdout, &["All waiting is on one mutex, `accounts`, held by `has_accounts`"]);
    }
}

#[test]
fn top_of_a_process_that_is_not_recorded() {
    let directory = tempfile::tempdir().expect("a directory");
    let hanging = Hanging::scene("sleeper", None);
    let pid = hanging.0.id().to_string();
    let mut top = recording(directory.path(), ["top", "--updates", "2", "--interval", "300ms"]);
    let result = said(top.arg(&pid));
    assert_eq!(result.code, Some(0), "{result:#?}");
    has(
        &result.stdout,
        &[&format!("(process {pid}), the last 0."), "held by `has_accounts` while `wants_accounts` waits"],
    );
    assert_eq!(result.stdout.as_str().matches("All waiting is on one mutex").count(), 2, "{result:#?}");
}

#[test]
fn options_of_a_recording() {
    let directory = tempfile::tempdir().expect("a directory");
    let with =
        |arguments: &[&str]| said(recording(directory.path(), ["profile", "--pid", "1"]).args(arguments));
    with(&["--detail", "full"]).fails(2, &["cannot be used with"]);
    with(&["--", "true"]).fails(2, &["cannot be used with"]);
    said(&mut recording(directory.path(), ["profile", "--for", "1s", "--", "true"]))
        .fails(2, &["cannot be used with"]);
}
