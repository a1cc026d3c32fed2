//! `spinpark why` and `profile --pid` of JavaScript, if Node is installed.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use spinpark_fixtures::command::{Said, said};

use crate::fixtures::spinpark;
use crate::profile::recording;
use crate::why::Hanging;

const PROGRAM: &str = "const { Worker, isMainThread, workerData } = require('worker_threads');
function wantsLock(words) { Atomics.wait(words, 1, 0); return 1; }
function transfer(words) {
  Atomics.add(words, 0, 1);
  return wantsLock(words) + 1;
}
function counts(words) {
  Atomics.add(words, 0, 1);
  for (;;) words[2]++;
}
if (isMainThread) {
  const shared = new SharedArrayBuffer(16), words = new Int32Array(shared);
  for (const workerData of [{ shared, works: true }, { shared }]) new Worker(__filename, { workerData });
  const ready = () => words[0] === 2 ? console.error('ready') : setTimeout(ready, 10);
  ready();
} else {
  const words = new Int32Array(workerData.shared);
  if (workerData.works) transfer(words); else counts(words);
}
";

/// A program, and the names of its code; they are removed with it.
struct Named(Hanging);

impl Drop for Named {
    fn drop(&mut self) {
        let _ = fs::remove_file(PathBuf::from(format!("/tmp/perf-{}.map", self.0.0.id())));
    }
}

/// The functions of the threads that have one of these.
fn stacks(why: &Said, function: &str) -> Vec<Vec<String>> {
    assert_eq!(why.code, Some(0), "{why:#?}");
    let json: Value = serde_json::from_str(&why.stdout).expect("JSON");
    let threads = json["threads"].as_array().expect("threads").iter();
    let names = threads.map(|thread| {
        let frames = thread["frames"].as_array().expect("frames").iter();
        frames.map(|frame| frame["function"].as_str().unwrap_or("").to_owned()).collect::<Vec<String>>()
    });
    names.filter(|names| names.iter().any(|name| name == function)).collect()
}

#[test]
fn stacks_go_through_code_that_was_made_at_run_time() {
    if !Command::new("node").arg("--version").output().is_ok_and(|output| output.status.success()) {
        println!("skipped: no node is installed");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("app.js"), PROGRAM).expect("a file");
    let mut command = Command::new("node");
    command.args(["--perf-basic-prof", "--interpreted-frames-native-stack", "app.js"]);
    command.current_dir(&directory).env_remove("NODE_OPTIONS");
    let hanging = Named(Hanging::start(command));
    let pid = hanging.0.0.id().to_string();
    let why = |options: &[&str]| said(spinpark(["why"]).arg(&pid).args(options).arg("--json"));
    for options in [&[][..], &["--stop"]] {
        // It says so before it waits.
        let mut found = Vec::new();
        for _ in 0..20 {
            found = stacks(&why(options), "JS:wantsLock");
            if !found.is_empty() {
                break;
            }
        }
        let names = found.first().expect("a thread that waits");
        let at = |name: &str| names.iter().position(|known| known == name);
        assert!(at("JS:wantsLock") < at("JS:transfer"), "{names:?}");
        // Below them are V8's and Node's own functions, again by tables.
        assert!(names.last().is_some_and(|last| !last.starts_with("JS:")), "{names:?}");
    }
    // The thread has no such frame while V8 replaces the code that runs.
    let mut running = Vec::new();
    for _ in 0..20 {
        running = stacks(&why(&["--stop"]), "JS:counts");
        if running.len() == 1 {
            break;
        }
    }
    assert_eq!(running.len(), 1, "{running:?}");
    let mut command = recording(directory.path(), ["profile", "--for", "600ms", "--output", "x", "--pid"]);
    let result = said(command.arg(&pid));
    assert_eq!(result.code, Some(0), "{result:#?}");
    let json = said(&mut recording(directory.path(), ["report", "x", "--json"]));
    assert!(json.stdout.contains("JS:wantsLock"), "{json:#?}");
}
