//! Programs that wait for nothing that is recorded, or are not recorded: no report concludes anything from
//! that.
//!
//! The table of `crates/profile/src/silence.rs` says which process has which message; these tests check it on
//! programs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use spinpark_fixtures::{compile_c, scratch_dir};

use super::recording;
use spinpark_fixtures::command::{flat, said};

/// The verdict that needs threads which were seen doing something else.
const VERDICT: &str = "not what makes this program slow";

fn silent() -> PathBuf {
    compile_c("silent.c", &[])
}

/// The report of a run in one line, and the same by `spinpark report`.
fn report(directory: &Path, program: &[&str]) -> String {
    let result = said(recording(directory, ["profile", "--output", "kept", "--"]).args(program));
    let first = flat(&result.stderr);
    assert!(first.contains("Kept in"), "{result:#?}");
    let again = flat(&said(&mut recording(directory, ["report", "kept"])).stdout);
    let sentence = headline(&again);
    assert!(first.contains(sentence), "`{sentence}` was not in the first report: {first}");
    again
}

/// What follows the line that says what ran.
fn headline(report: &str) -> &str {
    let (_, rest) =
        report.split_once("detail contended. ").unwrap_or_else(|| panic!("no first line: {report}"));
    rest
}

#[track_caller]
fn says(report: &str, words: &[&str]) {
    let headline = headline(report);
    for words in words {
        assert!(headline.contains(words), "no `{words}` in {headline}");
    }
    let first = words[0];
    assert!(headline.starts_with(first), "`{first}` does not come first in {headline}");
}

#[track_caller]
fn has_no_verdict(report: &str) {
    assert!(!report.contains(VERDICT), "{report}");
}

#[test]
fn semaphores_and_futexes() {
    let program = silent();
    let program = program.to_str().expect("a path");
    for what in [[program, "semaphore"], [program, "handoff"]] {
        let directory = tempfile::tempdir().expect("a directory");
        let report = report(directory.path(), &what);
        has_no_verdict(&report);
        says(
            &report,
            &[
                "Threads waited",
                "for locks or for work",
                "at the semaphore `semaphore`, woken in `wait_semaphore`",
            ],
        );
        assert!(report.contains("Threads' time: running") && report.contains("(locks or work "), "{report}");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let report = report(directory.path(), &[program, "raw"]);
    has_no_verdict(&report);
    says(
        &report,
        &["Its threads waited about", "% of the time for something that is not recorded", "libgomp, Go"],
    );
}

#[test]
fn locks_of_std() {
    let rust = scratch_dir().join("std_mutex");
    let source = spinpark_fixtures::source("std_mutex.rs");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let built = Command::new(rustc).args(["--edition", "2024", "-O", "-o"]).arg(&rust).arg(source).status();
    assert!(built.expect("a compiler").success());
    let directory = tempfile::tempdir().expect("a directory");
    let report = report(directory.path(), &[rust.to_str().expect("a path")]);
    // Its threads may also meet for a moment at a lock of glibc, where the machine is busy.
    assert!(report.contains(" is on one std Mutex, `std_mutex::TABLE`, "), "{report}");
    assert!(!report.contains("start_thread"), "{report}");
}

#[test]
fn threads_that_run_or_wait_for_io() {
    let program = silent();
    for (how, did) in [("run", "ran"), ("io", "waited for I/O")] {
        let directory = tempfile::tempdir().expect("a directory");
        let report = report(directory.path(), &[program.to_str().expect("a path"), how]);
        says(
            &report,
            &["No thread waited for a pthread lock: these are not what makes this program slow. Its threads"],
        );
        // On a busy machine that may be nearly all that they did.
        let headline = headline(&report);
        assert!(headline.contains(did) || headline.contains("waited for a CPU"), "no `{did}` in {headline}");
        let json = said(&mut recording(directory.path(), ["report", "kept", "--json"]));
        let json: Value = serde_json::from_str(&json.stdout).expect("JSON");
        let observed = &json[0]["observed"];
        assert!(observed["threads"]["samples"].as_u64() > Some(10), "{observed}");
        // The bound is 1 % of a CPU and 3 ms; a look that has begun is not cut short.
        let of = |field: &str| observed[field].as_f64().unwrap_or_default();
        assert!(of("cost") < 0.02 * of("duration") + 1e7, "{observed}");
        said(&mut recording(directory.path(), ["report", "kept", "--html", "page.html"])).succeeds(&[]);
        let page = fs::read_to_string(directory.path().join("page.html")).expect("a page");
        assert!(
            page.contains("<dt>Threads' time</dt>") || page.contains("Threads&#x27; time"),
            "a fact of the page"
        );
    }
}

#[test]
fn idle_and_short_programs() {
    let program = silent();
    let program = program.to_str().expect("a path");
    let directory = tempfile::tempdir().expect("a directory");
    let idle = report(directory.path(), &[program, "idle"]);
    assert!(idle.contains("all 4 threads slept nearly all the time"), "{idle}");
    has_no_verdict(&idle);
    let directory = tempfile::tempdir().expect("a directory");
    let short = report(directory.path(), &[program, "briefly"]);
    says(&short, &["No thread waited for a pthread lock. The program ran too briefly to tell"]);
    has_no_verdict(&short);
}

/// `LD_PRELOAD` lost on the way, in every way that needs no privilege.
#[test]
fn programs_that_lose_the_recorder() {
    let program = silent();
    let program = program.to_str().expect("a path");
    let directory = tempfile::tempdir().expect("a directory");
    let script = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permissions");
        path.to_str().expect("a path").to_owned()
    };
    let unsets = script("unsets", &format!("unset LD_PRELOAD\n{program} semaphore"));
    let two = script("two", &format!("{program} run &\nenv -u LD_PRELOAD {program} semaphore\nwait"));
    let name = Path::new(program).file_name().expect("a name").to_string_lossy();
    let became =
        format!("The program became `{name}` (exec), which was not recorded: it started without LD_PRELOAD");
    let lost = "the threads' time of this run, was not recorded: it started without LD_PRELOAD";
    for (what, first, words) in [
        (&["env", "-i", program, "semaphore"][..], became.as_str(), "`spinpark profile --` right before"),
        (
            &[program, "become", "/usr/bin/env", "-i", program, "semaphore"],
            became.as_str(),
            "waited in other futexes",
        ),
        (&[unsets.as_str()], "Process ", lost),
        (&[two.as_str()], "Process ", lost),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let report = report(directory.path(), what);
        has_no_verdict(&report);
        says(&report, &[first, words]);
    }
}

#[test]
fn a_static_program_behind_a_shell() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = directory.path().join("static");
    let source = spinpark_fixtures::source("silent.c");
    let built = Command::new("cc")
        .args(["-O1", "-static", "-pthread", "-D_GNU_SOURCE", "-o"])
        .arg(&program)
        .arg(source)
        .output();
    if !built.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped a_static_program_behind_a_shell: no static C library");
        return;
    }
    let report = report(directory.path(), &["sh", "-c", "./static semaphore; exit $?"]);
    has_no_verdict(&report);
    says(&report, &["Process ", "(`static`)", "was not recorded: it is statically linked"]);
}

/// A program that the kernel does not trust with its environment: another group, which only the superuser can
/// give away.
#[test]
fn a_privileged_program_behind_a_shell() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = directory.path().join("setgid");
    fs::copy(silent(), &program).expect("a copy");
    let is_ours = rustix::process::geteuid().is_root();
    let given = is_ours && std::os::unix::fs::chown(&program, None, Some(12345)).is_ok();
    if !given || fs::set_permissions(&program, fs::Permissions::from_mode(0o2755)).is_err() {
        eprintln!("skipped a_privileged_program_behind_a_shell: only the superuser can make one");
        return;
    }
    let report = report(directory.path(), &["sh", "-c", "./setgid semaphore; exit $?"]);
    has_no_verdict(&report);
    says(&report, &["Process ", "(`setgid`)", "setuid, setgid, file capabilities"]);
}

/// A daemon of the old school goes on when the command has ended: it has no descriptors, another session and
/// another parent.
#[test]
fn a_daemon_that_closes_everything() {
    let program = silent();
    let directory = tempfile::tempdir().expect("a directory");
    let mut command = recording(directory.path(), ["profile", "--output", "kept", "--"]);
    let result = said(command.arg(&program).arg("daemon"));
    assert_eq!(result.code, Some(0), "{result:#?}");
    let text = flat(&result.stderr);
    has_no_verdict(&text);
    let is_said =
        text.contains("running, which the recorder goes on recording") || text.contains("still running");
    assert!(is_said, "{text}");
    let json = said(&mut recording(directory.path(), ["report", "kept", "--json"]));
    let json: Vec<Value> = serde_json::from_str(&json.stdout).expect("JSON");
    let others = json.iter().flat_map(|one| one["observed"]["others"].as_array().into_iter().flatten());
    let left: Vec<u64> =
        others.filter(|it| it["is_left"] == true).filter_map(|it| it["pid"].as_u64()).collect();
    let own =
        json.iter().filter(|one| one["observed"]["is_left"] == true).filter_map(|one| one["pid"].as_u64());
    let seen = || json.iter().map(|one| &one["observed"]).collect::<Vec<_>>();
    let daemon = left.iter().copied().chain(own).next();
    let daemon = daemon.unwrap_or_else(|| panic!("no process was left: {text}\n{:#?}", seen()));
    // On a busy machine it may have ended by itself.
    let _ = std::process::Command::new("kill").args(["-s", "KILL", "--", &daemon.to_string()]).status();
}
