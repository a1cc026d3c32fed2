//! Shares of time, of programs whose threads measure themselves what they wait: `truth N`, %.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use spinpark_fixtures::compile_c;

use super::{flat, recording};
use spinpark_fixtures::command::said;

fn shares() -> PathBuf {
    compile_c("shares.c", &[])
}

/// The report of a run, in one line, and what the program printed.
fn report(directory: &Path, how: &[&str]) -> (String, String) {
    // That of a run before.
    drop(fs::remove_dir_all(directory.join("kept")));
    let mut command = recording(directory, ["profile", "--output", "kept", "--"]);
    let result = said(command.arg(shares()).args(how));
    assert_eq!(result.code, Some(0), "{result:#?}");
    let report = flat(&said(&mut recording(directory, ["report", "kept"])).stdout);
    (report, result.stdout.as_str().to_owned())
}

/// The number before ` % of the time of`.
#[track_caller]
fn said_share(report: &str) -> f64 {
    let (before, _) = report.split_once(" % of the time of ").unwrap_or_else(|| panic!("no share: {report}"));
    let number = before.rsplit(' ').next().expect("words");
    number.parse().unwrap_or_else(|_| panic!("no number: {number} in {report}"))
}

#[track_caller]
fn is_near(report: &str, printed: &str) {
    let truth = printed.lines().find_map(|line| line.strip_prefix("truth ")).expect("a truth");
    let (said, truth) = (said_share(report), truth.parse::<f64>().expect("a number"));
    // Looks at threads are a sample.
    assert!((said - truth).abs() <= 10.0, "said {said} %, and {truth} % in truth: {report}");
}

#[test]
fn threads_that_live_briefly() {
    let directory = tempfile::tempdir().expect("a directory");
    let (report, printed) = report(directory.path(), &["crowd"]);
    is_near(&report, &printed);
    let (_, number) = report.split_once(" % of the time of ").expect("a share");
    let words: Vec<&str> = number.split(' ').take(5).collect();
    let at_a_time: f64 = words[2].parse().unwrap_or_else(|_| panic!("{words:?}"));
    assert_eq!((words[1], words[3], words[4]), ("threads,", "at", "a"), "{report}");
    assert!((10.0..30.0).contains(&at_a_time), "20 at a time, and the main thread: {report}");
}

#[test]
fn a_daemon() {
    let directory = tempfile::tempdir().expect("a directory");
    report(directory.path(), &["daemon"]);
    let truth = directory.path().join("truth");
    let late = Instant::now() + Duration::from_secs(60);
    while !truth.exists() {
        assert!(Instant::now() < late, "the daemon goes on");
        thread::sleep(Duration::from_millis(20));
    }
    let report = flat(&said(&mut recording(directory.path(), ["report", "kept"])).stdout);
    is_near(&report, &fs::read_to_string(&truth).expect("the truth"));
}

#[test]
fn idle_workers_that_end_before_the_program() {
    let directory = tempfile::tempdir().expect("a directory");
    // The sleepers' time is for futexes that are not recorded, and what the idle ones, eight and the main one, waited for
    // is not taken from it.
    let is_right = |report: &str| {
        let signals = report.split_once("%, signals ").and_then(|(_, rest)| rest.split(' ').next());
        let share: u64 = signals.and_then(|share| share.parse().ok()).expect("a number");
        let are_idle = report.contains("%). 9 of ") && report.contains(" threads idle, not counted.");
        share <= 5 && are_idle && report.contains("(other futexes ")
    };
    let report = of_idle(directory.path(), "condvars", is_right);
    assert!(is_right(&report), "{report}");
}

/// The report of a run that is right, or of the first one on a machine that was not busy: a thread that waited for a CPU for
/// a tenth of the run is not idle. The program lives longer each time, in tenths of a second, as what threads wait for a CPU
/// when they start and end does not.
fn of_idle(directory: &Path, how: &str, is_right: impl Fn(&str) -> bool) -> String {
    let mut latest = String::new();
    for tenths in ["9", "9", "30", "90", "200"] {
        latest = report(directory, &[how, tenths]).0;
        if is_right(&latest) || !latest.contains("Other programs used") {
            break;
        }
    }
    latest
}

#[test]
fn idle_workers_at_semaphores() {
    let directory = tempfile::tempdir().expect("a directory");
    let is_right = |report: &str| {
        let (_, headline) = report.split_once("detail contended. ").expect("a first line");
        let words =
            "No thread waited for a pthread lock: these are not what makes this program slow. Its threads ";
        headline.starts_with(words) && report.contains("8 of 9 threads idle, not counted.")
    };
    let report = of_idle(directory.path(), "semaphores", is_right);
    assert!(is_right(&report), "{report}");
    assert!(!report.contains("for locks or for work, the stacks"), "{report}");
}
