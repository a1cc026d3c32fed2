//! `spinpark profile` of programs that never come back: what they waited for when they were ended.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::profile::recording;
use spinpark_fixtures::command::{Said, flat, said, waits};

/// The program that waits, ended after a while, and its report as JSON. It is run for longer if so many threads had not
/// waited for 100 ms by then: on a busy machine they may come late.
fn ended(directory: &Path, locks: &str, detail: &str, (what, waiting): (&str, usize)) -> (Said, Value) {
    let name = format!("{what}-{locks}-{detail}");
    for time in ["700ms", "7s"] {
        let (result, json) = ended_after(time, directory, locks, detail, what, &name);
        let all = json[0]["waiting"].as_array().into_iter().flatten();
        if all.filter(|wait| wait["time"].as_u64() > Some(100_000_000)).count() >= waiting {
            return (result, json);
        }
        fs::remove_dir_all(directory.join(&name)).expect("it was kept");
    }
    ended_after("40s", directory, locks, detail, what, &name)
}

fn ended_after(
    time: &str,
    directory: &Path,
    locks: &str,
    detail: &str,
    what: &str,
    name: &str,
) -> (Said, Value) {
    let mut command = recording(directory, ["profile", "--duration", time, "--html", "x.html"]);
    command.args(["--locks", locks, "--detail", detail, "--output", name, "--"]).arg(waits()).arg(what);
    let result = said(&mut command);
    assert_eq!(result.code, Some(128 + 15), "{result:#?}");
    let json = said(recording(directory, ["report"]).args([name, "--json"]));
    assert_eq!(json.code, Some(0), "{json:#?}");
    (result, serde_json::from_str(&json.stdout).expect("JSON"))
}

#[test]
fn a_deadlock_is_called_one() {
    let directory = tempfile::tempdir().expect("a directory");
    for (locks, detail) in [("glibc", "contended"), ("glibc", "full"), ("spinpark", "contended")] {
        let (result, json) = ended(directory.path(), locks, detail, ("deadlock", 2));
        let text = flat(&result.stderr);
        for words in [
            "Deadlock: thread",
            "in `leftwards` for the mutex `left_lock`, which thread",
            "in `rightwards` for the mutex `right_lock`, which thread",
            "They had waited for each other for",
            "Still waiting at the end",
        ] {
            assert!(text.contains(words), "{locks}, {detail}: {text}");
        }
        if detail == "full" {
            assert!(
                text.contains("has taken in `leftwards`") && text.contains("has taken in `rightwards`"),
                "{text}"
            );
        }
        assert_eq!(json[0]["deadlocks"].as_array().map(Vec::len), Some(1));
        assert_eq!(json[0]["deadlocks"][0].as_array().map(Vec::len), Some(2));
        let waiting = json[0]["waiting"].as_array().expect("waits");
        assert_eq!(waiting.len(), 2);
        // Both in all numbers, until the end.
        let total: u64 = waiting.iter().filter_map(|wait| wait["time"].as_u64()).sum();
        let locks = json[0]["locks"].as_array().expect("locks");
        let mutexes = locks.iter().filter(|lock| lock["kind"] == "mutex");
        let counted: u64 = mutexes.filter_map(|lock| lock["roles"][0]["wait"]["total"].as_u64()).sum();
        assert!(counted.abs_diff(total) <= 2, "{counted} of {total} ns");
        assert!(total > 100_000_000, "{total} ns");
        let page = fs::read_to_string(directory.path().join("x.html")).expect("a page");
        assert!(page.contains("Still waiting at the end") && page.contains("Deadlock"));
    }
    let diff = said(&mut recording(
        directory.path(),
        ["diff", "deadlock-glibc-full", "deadlock-spinpark-contended"],
    ));
    diff.succeeds(&["left_lock", "right_lock"]);
}

#[test]
fn who_never_gets_it_is_no_deadlock() {
    let directory = tempfile::tempdir().expect("a directory");
    let (result, json) = ended(directory.path(), "glibc", "full", ("sleeper", 1));
    let text = flat(&result.stderr);
    assert!(text.contains("1 thread was still waiting when the recording ended, for"), "{text}");
    assert!(text.contains("in `flush` for the mutex `cache_lock`, held by `sleeper`"), "{text}");
    assert!(!text.contains("Deadlock"), "{text}");
    assert_eq!(json[0]["deadlocks"].as_array().map(Vec::len), Some(0));
}

/// A semaphore with a count of 1 that only its last owner posts is a lock; with a count of 0 it is a signal.
#[test]
fn semaphores_that_are_locks_are_in_cycles() {
    let directory = tempfile::tempdir().expect("a directory");
    for (what, left, right) in [
        ("seats", "the semaphore `left_seat`", "the semaphore `right_seat`"),
        ("mixed", "the semaphore `left_seat`", "the mutex `right_lock`"),
    ] {
        let (result, json) = ended(directory.path(), "glibc", "contended", (what, 2));
        let text = flat(&result.stderr);
        assert!(text.contains("Deadlock: thread"), "{what}: {text}");
        assert!(text.contains(&format!("in `sit_left` for {left}, which thread")), "{what}: {text}");
        assert!(text.contains(&format!("in `sit_right` for {right}, which thread")), "{what}: {text}");
        assert_eq!(json[0]["deadlocks"][0].as_array().map(Vec::len), Some(2), "{what}");
    }
    let (result, json) = ended(directory.path(), "glibc", "contended", ("signals", 2));
    let text = flat(&result.stderr);
    assert!(!text.contains("Deadlock"), "{text}");
    assert_eq!(json[0]["deadlocks"].as_array().map(Vec::len), Some(0));
    for words in [
        "in `sit_left` for the semaphore `left_seat`",
        "all wait, and none is left in this process to wake another",
    ] {
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn trying_for_a_semaphore_is_waiting() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut command = recording(directory.path(), ["profile", "--output", "tries", "--"]);
    let result = said(command.arg(waits()).arg("tries"));
    assert_eq!(result.code, Some(0), "{result:#?}");
    let text = flat(&result.stderr);
    assert!(text.contains("for locks or for work") && text.contains("semaphore `left_seat`"), "{text}");
}

#[test]
fn a_signal_that_never_comes() {
    let directory = tempfile::tempdir().expect("a directory");
    for locks in ["glibc", "spinpark"] {
        let (result, json) = ended(directory.path(), locks, "contended", ("lost", 1));
        let text = flat(&result.stderr);
        assert!(text.contains("No thread waited for a pthread lock"), "{text}");
        assert!(
            text.contains("1 thread was still waiting when the recording ended for a signal of a condvar"),
            "{text}"
        );
        assert!(text.contains("`queue_filled` in `wait_in_vain`"), "{text}");
        assert!(!text.contains("Deadlock"), "{text}");
        assert_eq!(json[0]["waiting"][0]["role"], "signal");
    }
}

#[test]
fn top_shows_it_live() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut command = recording(directory.path(), ["top", "--once", "--"]);
    let result = said(command.arg(waits()).arg("deadlock"));
    let text = flat(&result.stdout);
    assert!(text.contains("Deadlock: thread") && text.contains("Waiting now"), "{result:#?}");
}

#[test]
fn all_recordings_of_a_process() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut command = recording(directory.path(), ["profile", "--output", "two", "--"]);
    let result = said(command.arg(waits()).arg("become"));
    assert_eq!(result.code, Some(0), "{result:#?}");
    // The report mentions the process that it does not show, though it has the same number.
    assert!(result.stderr.contains("Other processes waited less"), "{}", result.stderr);
    let json = said(recording(directory.path(), ["report"]).args(["two", "--json"]));
    let json: Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!((json.as_array().map(Vec::len), &json[0]["pid"]), (Some(2), &json[1]["pid"]));
    let pid = json[0]["pid"].to_string();
    let report =
        said(recording(directory.path(), ["report"]).args(["two", "--process", &pid, "--html", "two.html"]));
    report.succeeds(&[
        &format!("Recording 1 of 2 of process {pid}"),
        &format!("Recording 2 of 2 of process {pid}"),
    ]);
    let page = fs::read_to_string(directory.path().join("two.html")).expect("a page");
    assert!(page.contains("recording 1") && page.contains("recording 2"));
}
