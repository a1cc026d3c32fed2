//! `spinpark-lab documents WORKLOAD`: each runs, checks its result, says what it found, and leaves nothing
//! behind.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use spinpark_fixtures::command::{Said, Text, said};

use crate::fixtures::spinpark;

/// Runs a workload for an instant, with files in a directory that must be empty afterwards. Returns the JSON.
#[track_caller]
fn run(args: &[&str], words: &[&str]) -> Value {
    let place = tempfile::tempdir().unwrap();
    let json = tempfile::NamedTempFile::new().unwrap();
    let mut command = spinpark(["documents"]);
    command.args(args).args(["--rounds", "2", "--details", "--json"]).arg(json.path());
    if args[0] != "mmap" {
        command.arg("--dir").arg(place.path());
    }
    let result = said(&mut command);
    result.succeeds(words);
    let too_wide: Vec<&str> = result.stdout.lines().filter(|line| line.chars().count() > 100).collect();
    assert!(too_wide.is_empty(), "{too_wide:#?}");
    assert_empty(place.path());
    let document: Value = serde_json::from_str(&fs::read_to_string(json.path()).unwrap()).unwrap();
    assert_eq!((&document["format"], &document["schema"]), (&"spinpark bench workload".into(), &2.into()));
    assert_eq!((&document["workload"], &document["end"]), (&args[0].into(), &"complete".into()));
    assert!(document["cells"][0]["runs"][0]["elapsed_s"].as_f64().unwrap() > 0.0);
    document
}

#[track_caller]
fn assert_empty(directory: &Path) {
    let left: Vec<_> = fs::read_dir(directory).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "{left:?} are still there");
}

#[test]
fn creat() {
    let args = ["creat", "--threads", "1,2", "--duration", "50ms", "--unlink", "--locks", "none,std"];
    let document = run(&args, &["2 cells × 2 rounds", "processes", "threads std", "ops/s", "Jain"]);
    assert_eq!(document["cells"].as_array().unwrap().len(), 2);
    assert_eq!(document["cells"][0]["runs"].as_array().unwrap().len(), 2 * 4);
    assert_eq!(document["results"][1]["configurations"][2]["configuration"], "threads std");
}

#[test]
fn creat_keeps_its_files_until_the_end() {
    let args = ["creat", "--threads", "3", "--duration", "50ms", "--as", "processes"];
    run(&args, &["files kept", "processes"]);
}

#[test]
fn mmap() {
    let args = ["mmap", "--threads", "2", "--duration", "50ms", "--serialize", "none,iteration,calls"];
    let document = run(&args, &["untouched", "touched", "mutex glibc", "calls spinpark", "change"]);
    let configurations = document["results"][0]["configurations"].as_array().unwrap();
    assert_eq!(configurations.len(), 5);
    assert!(configurations[1]["of_means"].as_f64().unwrap() > 0.0 && configurations[0]["of_means"].is_null());
}

#[test]
fn faults() {
    let kinds = "private,shared,file-private,file-shared";
    let args = ["faults", "--threads", "2", "--duration", "50ms", "--size", "1", "--kind", kinds];
    run(&args, &["file-private", "file-shared", "faults/s", "threads"]);
}

#[test]
fn scan() {
    let args = [
        "scan",
        "--threads",
        "2",
        "--duration",
        "50ms",
        "--locks",
        "spinpark",
        "--baseline",
        "calls spinpark",
    ];
    let document = run(&args, &["calls spinpark", "files/s", "bytes/s"]);
    assert_eq!(document["results"][0]["configurations"][0]["configuration"], "calls spinpark");
}

#[test]
fn scan_reads_a_tree_and_leaves_it_as_it_is() {
    let tree = tempfile::tempdir().unwrap();
    fs::write(tree.path().join("file"), "text").unwrap();
    let path = tree.path().to_str().unwrap();
    run(&["scan", "--threads", "2", "--duration", "50ms", "--tree", path, "--serialize", "none"], &["plain"]);
    assert_eq!(fs::read_to_string(tree.path().join("file")).unwrap(), "text");
}

/// A result again, from its file.
#[test]
fn shown_again() {
    let json = tempfile::NamedTempFile::new().unwrap();
    let mut command =
        spinpark(["documents", "mmap", "--threads", "1", "--duration", "10ms", "--rounds", "1", "--json"]);
    said(command.arg(json.path())).succeeds(&["mutex spinpark"]);
    for group in ["bench", "documents"] {
        said(spinpark([group, "show"]).arg(json.path())).succeeds(&["mmap, touched:", "mutex spinpark"]);
    }
    said(spinpark(["bench", "show", "--format", "markdown"]).arg(json.path())).fails(2, &["leave them out"]);
}

/// Every operation of every mix that needs no special file system.
#[test]
fn jobs() {
    let args = ["jobs", "--mix", "alltests", "--users", "2", "--jobs", "1", "--file-size", "0"];
    let document =
        run(&args, &["alltests", "jobs/min", "jobs/user", "share of time", "tcp_test", "fork_test"]);
    let first = &document["cells"][0]["runs"][0];
    // Each of the 62 operations once, for two users.
    assert_eq!(first["operations"], 2 * 62);
    assert_eq!(first["breakdown"].as_object().unwrap().len(), 62);
}

/// A workload that would run for long, once its first run has begun.
struct Started {
    child: Child,
    stdout: BufReader<ChildStdout>,
    place: tempfile::TempDir,
    json: tempfile::NamedTempFile,
}

fn start(args: &[&str]) -> Started {
    let (place, json) = (tempfile::tempdir().unwrap(), tempfile::NamedTempFile::new().unwrap());
    let mut command = spinpark(["documents"]);
    command.args(args).args(["--rounds", "1000", "--dir"]).arg(place.path()).arg("--json").arg(json.path());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    assert_ne!(stdout.read_line(&mut line).unwrap(), 0);
    let is_writing = || {
        fs::read_dir(place.path())
            .unwrap()
            .flatten()
            .any(|entry| fs::read_dir(entry.path()).is_ok_and(|mut files| files.next().is_some()))
    };
    wait_until("something is written", is_writing);
    Started { child, stdout, place, json }
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if is_so() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("a minute later: not {what}");
}

fn signal(name: &str, pid: u32) {
    assert!(Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap().success());
}

impl Started {
    /// Its output, once it has ended.
    fn end(&mut self) -> Said {
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.stdout.read_to_string(&mut stdout).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        Said { code: self.child.wait().unwrap().code(), stdout: Text(stdout), stderr: Text(stderr) }
    }

    /// Its worker.
    fn worker(&self) -> Option<u32> {
        let id = self.child.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
        children.split_whitespace().next()?.parse().ok()
    }
}

/// Ctrl-C: the result so far, and nothing is left.
#[test]
fn interrupted() {
    for args in [
        &["creat", "--threads", "4", "--duration", "200ms"][..],
        &["faults", "--threads", "2", "--kind", "file-shared", "--duration", "200ms"],
        &["scan", "--threads", "2", "--duration", "200ms"],
        &["jobs", "--mix", "fserver", "--users", "2"],
    ] {
        let mut started = start(args);
        signal("INT", started.child.id());
        let said = started.end();
        said.fails(130, &["Interrupted after"]);
        assert_empty(started.place.path());
        let document: Value = serde_json::from_str(&fs::read_to_string(&started.json).unwrap()).unwrap();
        assert_eq!(document["end"], "interrupted", "{args:?}");
    }
}

/// A worker that dies takes its files along, and is no result.
#[test]
fn a_killed_worker_leaves_nothing() {
    let mut started = start(&["creat", "--threads", "4", "--as", "processes", "--duration", "100s"]);
    wait_until("a worker runs", || started.worker().is_some());
    signal("KILL", started.worker().unwrap());
    started.end().fails(1, &["creat files kept × 4, configuration `processes`", "was killed by SIGKILL"]);
    assert_empty(started.place.path());
}

#[test]
fn the_list_names_all_workloads_with_their_documents() {
    said(&mut spinpark(["documents", "list"])).succeeds(&[
        "creat",
        "test-mutex",
        "mmap",
        "--touch none|all",
        "faults",
        "scan",
        "one per CPU",
        "jobs",
        "AIM7 fserver",
    ]);
}

#[test]
fn bad_requests() {
    for (args, words) in [
        (&["mmap", "--touch", "some"][..], &["unknown variant `some`", "`none` or `all`"][..]),
        (
            &["mmap", "--locks", "no-such-lock"],
            &["no implementation `no-such-lock`", "spinpark-lab bench list"],
        ),
        (&["mmap", "--locks", "none", "--serialize", "iteration"], &["--locks"]),
        (&["mmap", "--threads", "0"], &["--threads", "from 1 to 4096"]),
        (&["mmap", "--threads", "2,2"], &["`untouched × 2` twice"]),
        (&["mmap", "--locks", "glibc,glibc"], &["--locks names `glibc` twice", "the baseline runs twice"]),
        (&["creat", "--threads", "processes"], &["use --as processes"]),
        (&["condvar", "--cpus", "all", "--waiter-first"], &["--cpus one"]),
        (&["mmap", "--baseline", "x"], &["no configuration `x`", "plain"]),
        (&["creat", "--as", "processes", "--locks", "std"], &["processes do not share a mutex"]),
        (&["creat", "--dir", "/no/such/directory"], &["--dir /no/such/directory", "Name a directory"]),
        (&["creat", "--dir", "/proc"], &["cannot write to --dir /proc"]),
        (&["faults", "--size", "65536", "--threads", "4096"], &["of memory", "fewer tasks"]),
        (&["scan", "--tree", "/no/such/tree"], &["--tree /no/such/tree"]),
        (&["jobs", "--mix", "nothing"], &["no mix `nothing`", "fserver"]),
        (&["jobs", "--file-size", "100000000"], &["available", "smaller files"]),
    ] {
        said(spinpark(["documents"]).args(args)).fails(2, words);
    }
    let empty = tempfile::tempdir().unwrap();
    let mut command = spinpark(["documents", "scan", "--rounds", "1", "--tree"]);
    said(command.arg(empty.path())).fails(2, &["--tree: there is no file to scan"]);
}

/// The worker, as the workload starts it.
#[test]
fn worker_prints_one_report() {
    let request = r#"{"workload":"mmap","parameters":{"touch":"none","sections":"calls"},"tasks":2,"millis":50,
                      "adapter":"spinpark"}"#;
    let result = said(&mut spinpark(["__workload-worker", request]));
    result.succeeds(&[]);
    let report: Value = serde_json::from_str(result.stdout.trim()).unwrap();
    assert!(report["operations"].as_u64().unwrap() > 0);
}
