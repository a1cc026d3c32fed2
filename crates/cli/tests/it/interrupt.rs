//! Ctrl-C: no process is left, and what was measured is not lost.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use spinpark_fixtures::command::{Said, program};

use crate::fixtures::spinpark;

/// Waits until `log` has `lines` lines, or fails after a minute.
fn wait_for_lines(log: &Path, lines: usize) {
    for _ in 0..6000 {
        if fs::read_to_string(log).unwrap().lines().count() >= lines {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("the program did not run {lines} times");
}

fn signal(name: &str, pid: u32) {
    assert!(Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap().success());
}

/// Lets `hang-in-run` hang in run number `run`, sends `name`, and returns what was said and which processes
/// ran.
fn interrupted(run: usize, name: &str, json: &Path) -> (Said, Vec<String>) {
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut command = spinpark(["compare", "--rounds", "50", "--json"]);
    command.arg(json).arg("--").arg(program()).arg("hang-in-run").arg(log.path()).arg(run.to_string());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The hanging run writes one line, and its child in another session one more.
    wait_for_lines(log.path(), run + 1);
    signal(name, child.id());
    let said = child.wait_with_output().unwrap().into();
    (said, fs::read_to_string(log.path()).unwrap().lines().map(str::to_owned).collect())
}

#[track_caller]
fn assert_all_gone(pids: &[String]) {
    let ours = program();
    for pid in pids {
        let executable = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        assert_ne!(executable, ours, "process {pid} is still there");
    }
}

#[test]
fn prints_what_was_measured_so_far() {
    let directory = tempfile::tempdir().unwrap();
    let json = directory.path().join("result.json");
    // Three runs of preparation and eight rounds, then the 28th hangs.
    let (said, pids) = interrupted(28, "INT", &json);
    assert_eq!(said.code, Some(130), "{said:?}");
    assert!(said.stdout.contains("Interrupted after 8 of 50 rounds"), "{}", said.stdout);
    assert!(
        said.stdout.contains("wall time") && said.stdout.contains("["),
        "with intervals: {}",
        said.stdout
    );
    assert_all_gone(&pids);
    let document: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!(document["end"], "interrupted");
    assert_eq!(document["runs"].as_array().unwrap().len(), 24);
}

#[test]
fn too_early_for_intervals() {
    let directory = tempfile::tempdir().unwrap();
    let (said, pids) = interrupted(8, "TERM", &directory.path().join("result.json"));
    assert_eq!(said.code, Some(130), "{said:?}");
    assert!(
        said.stdout.contains("wall time") && said.stdout.contains("too few for an interval"),
        "{}",
        said.stdout
    );
    assert_all_gone(&pids);
}

#[test]
fn before_anything_was_measured() {
    let directory = tempfile::tempdir().unwrap();
    let json = directory.path().join("result.json");
    let (said, pids) = interrupted(1, "INT", &json);
    assert_eq!(said.code, Some(130), "{said:?}");
    assert!(said.stderr.contains("interrupted"));
    assert_all_gone(&pids);
    assert!(!json.exists(), "there is nothing to write");
}

/// Even if the command itself cannot react any more.
#[test]
fn a_killed_command_leaves_no_program_behind() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut command = spinpark(["compare", "--"]);
    command.arg(program()).arg("hang-in-run").arg(log.path()).arg("1");
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for_lines(log.path(), 2);
    child.kill().unwrap();
    child.wait().unwrap();
    let pids: Vec<String> = fs::read_to_string(log.path()).unwrap().lines().map(str::to_owned).collect();
    let is_there =
        |pid: &String| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|path| path == program());
    // Its death is asynchronous. A grandchild in a session of its own cannot be reached from here; end it.
    while is_there(&pids[0]) {
        thread::sleep(Duration::from_millis(1));
    }
    if is_there(&pids[1]) {
        signal("KILL", pids[1].parse().unwrap());
    }
}
