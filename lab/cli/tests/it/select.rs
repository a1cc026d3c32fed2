//! `spinpark-lab documents select`.

use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;
use spinpark_testkit::programs::{MARIADB_INSTALL_DB, MARIADBD, installed};
use tempfile::TempDir;

use spinpark_fixtures::command::said;

use crate::fixtures::spinpark;
use crate::traces::{assert_none, signalled, wait_for_the_end};

/// One database at a time; none if there is no program for it.
fn turn() -> Option<MutexGuard<'static, ()>> {
    static TURN: Mutex<()> = Mutex::new(());
    installed(&[MARIADBD, MARIADB_INSTALL_DB]).then(|| TURN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A small benchmark, with its files in a directory that is short enough for a socket.
fn select(directory: &TempDir, args: &[&str]) -> Command {
    let mut command = spinpark(["documents", "select", "--table-rows", "2500"]);
    command.args(args).arg("--dir").arg(directory.path());
    command
}

#[test]
fn two_selects_on_glibc_and_on_the_drop_in() {
    let Some(_turn) = turn() else { return };
    let directory = tempfile::tempdir().unwrap();
    let args = ["--clients", "3", "--per-client", "50", "--rounds", "1", "--json"];
    let result = said(&mut select(&directory, &args));
    result.succeeds(&[]);
    for word in ["queries/s", "glibc", "drop-in", "longest", "ratio"] {
        assert!(result.stderr.contains(word), "no `{word}` in {}", result.stderr);
    }
    let document: Value = serde_json::from_str(&result.stdout).unwrap();
    assert_eq!((&document["workload"], &document["end"]), (&"select".into(), &"complete".into()));
    let runs = document["cells"][0]["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 3, "glibc twice, and the drop-in");
    for run in runs {
        assert_eq!(run["operations"], 3 * 50 * 2);
        let time = |name: &str| run["columns"][name].as_f64().unwrap();
        assert!(0.0 < time("shortest_s") && time("shortest_s") <= time("longest_s"));
    }
    assert_none(directory.path());
}

#[test]
fn updates_with_an_option_of_the_server() {
    let Some(_turn) = turn() else { return };
    let directory = tempfile::tempdir().unwrap();
    let args = ["--update", "--clients", "2", "--per-client", "20", "--rounds", "1", "--locks", "glibc"];
    let option = "--server-option=--default-storage-engine=Aria";
    said(select(&directory, &args).arg(option)).succeeds(&["a select and an update", "queries/s"]);
    assert_none(directory.path());
}

#[test]
fn a_server_that_does_not_start_says_why() {
    let Some(_turn) = turn() else { return };
    let directory = tempfile::tempdir().unwrap();
    let result = said(&mut select(&directory, &["--server-option=--no-such-option", "--rounds", "1"]));
    result.fails(1, &["the database exited with status", "no-such-option"]);
    assert_none(directory.path());
}

#[test]
fn interrupted() {
    let Some(_turn) = turn() else { return };
    let directory = tempfile::tempdir().unwrap();
    let mut command = select(&directory, &["--clients", "2", "--per-client", "10000000"]);
    let result = signalled(&mut command, "INT", directory.path());
    assert_eq!(result.code, Some(130), "{result:?}");
    assert_none(directory.path());
}

/// Even if the command itself cannot react any more, no process outlives it.
#[test]
fn killed() {
    let Some(_turn) = turn() else { return };
    let directory = tempfile::tempdir().unwrap();
    let mut command = select(&directory, &["--clients", "2", "--per-client", "10000000"]);
    let result = signalled(&mut command, "KILL", directory.path());
    assert_eq!(result.code, Some(128 + 9), "{result:?}");
    wait_for_the_end(directory.path());
}

/// These errors come before anything is made or started.
#[test]
fn bad_requests() {
    if !installed(&[MARIADBD, MARIADB_INSTALL_DB]) {
        let words = ["mariadbd is not installed", "apt install --no-install-recommends mariadb-server"];
        return said(&mut spinpark(["documents", "select"])).fails(2, &words);
    }
    let long = tempfile::Builder::new().prefix(&"x".repeat(100)).tempdir().unwrap();
    for (args, words) in [
        (&["--locks", "parking_lot"][..], &["pthread locks only", "drop-in-disabled"][..]),
        (&["--locks", "no-such-lock"], &["no-such-lock", "spinpark-lab bench list"]),
        (&["--clients", "100000"], &["--clients", "must be from 1 to 4096"]),
        (&["--clients", "0"], &["--clients", "must be from 1 to 4096"]),
        (&["--table-rows", "0"], &["--table-rows"]),
        (&["--dir", "/no/such/directory"], &["--dir /no/such/directory"]),
        (&["--dir", long.path().to_str().unwrap()], &["is too long", "--dir"]),
    ] {
        said(spinpark(["documents", "select", "--rounds", "1"]).args(args)).fails(2, words);
    }
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 100; exec \"$@\"", "sh"]).arg(cargo_bin!("spinpark-lab"));
    command.args(["documents", "select", "--clients", "20", "--locks", "glibc"]);
    said(&mut command).fails(2, &["this needs", "file descriptors", "ulimit -n"]);
}
