//! Holders that no waiting thread can see, and threads that wait without blocking: what the first sentence
//! says.

use std::path::PathBuf;

use spinpark_fixtures::compile_c;

use super::{flat, recording};
use spinpark_fixtures::command::said;

fn sight() -> PathBuf {
    compile_c("sight.c", &[])
}

/// The report of a run, in one line, from its headline on; the run's options before.
fn report(options: &[&str], how: &str) -> String {
    let directory = tempfile::tempdir().expect("a directory");
    let mut command = recording(directory.path(), ["profile", "--output", "kept"]);
    said(command.args(options).arg("--").arg(sight()).arg(how));
    let report = flat(&said(&mut recording(directory.path(), ["report", "kept"])).stdout);
    let (_, rest) = report.split_once("detail ").unwrap_or_else(|| panic!("no first line: {report}"));
    rest.to_owned()
}

#[track_caller]
fn says(report: &str, words: &[&str]) {
    for words in words {
        assert!(report.contains(words), "no `{words}` in {report}");
    }
}

/// The report of a program that never comes back, ended after a while: of a run with these words, which on a busy machine may
/// have to be longer.
#[track_caller]
fn of_one_that_stays(options: &[&str], how: &str, words: &[&str]) -> String {
    let ended_after = |time| report(&[options, &["--duration", time]].concat(), how);
    let mut report = ended_after("1s");
    for time in ["7s", "40s"] {
        if words.iter().all(|words| report.contains(words)) {
            break;
        }
        report = ended_after(time);
    }
    says(&report, words);
    report
}

const DETAILS: [&[&str]; 2] = [&["--detail", "contended"], &["--detail", "full"]];

#[test]
fn locks_of_another_process() {
    for how in ["mutex", "rwlock"] {
        for options in DETAILS {
            let report = report(options, how);
            says(
                &report,
                &["All waiting is on one ", "`serve_update` waits for it, held by another process"],
            );
            assert!(!report.contains("no thread held the lock"), "{report}");
        }
    }
}

#[test]
fn locks_that_are_taken_by_calls_that_are_not_recorded() {
    let report = report(&["--detail", "full"], "unrecorded");
    says(&report, &["`serve_update` waits for it, held by code whose calls are not recorded"]);
    assert!(!report.contains("no thread held the lock"), "{report}");
}

#[test]
fn locks_that_no_thread_can_release() {
    for options in DETAILS {
        let words = ["`console_write` for the mutex `device_lock`, held by a thread of the parent process"];
        of_one_that_stays(options, "parent", &words);
        let words = ["3 in `console_write` for the mutex `device_lock`, held by", "has ended"];
        let ended = of_one_that_stays(options, "ended", &words);
        if options == DETAILS[1] {
            says(&ended, &["has ended: it took the lock in `read_frame`"]);
        }
        let own = of_one_that_stays(options, "itself", &["Deadlock: ", "which it has taken itself"]);
        for words in ["Another thread held", "each other"] {
            assert!(!own.contains(words) && !ended.contains(words), "{own}\n{ended}");
        }
    }
}

#[test]
fn threads_that_try_again_and_again() {
    for how in ["poll", "spin"] {
        for options in DETAILS {
            let report = report(options, how);
            let words = "All waiting is on one mutex, `device_lock`, held by `import_corpus` while `deliver_frame` waits";
            says(&report, &[words]);
        }
    }
    let report = report(&[], "yields");
    says(&report, &["Threads spent ", "in loops of `sched_yield`, most in `blas_server`"]);
    assert!(!report.contains("not what makes this program slow"), "{report}");
}

#[test]
fn threads_that_are_stuck_at_semaphores() {
    let words = [
        "slept nearly all the time: all wait, and none is left in this process to wake another. 2 threads were still waiting",
        "in `await_slot` for the semaphore `slots`",
    ];
    of_one_that_stays(&[], "stuck", &words);
}

#[test]
fn a_program_whose_first_thread_ends() {
    let report = report(&[], "leaver");
    says(&report, &["`device_lock`, held by `post_entry` while other threads wait in it"]);
    assert!(!report.contains("ended by a signal"), "{report}");
}
