//! `spinpark-lab documents mail`.

use std::fs;
use std::net::TcpListener;
use std::process::Command;

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;
use spinpark_testkit::programs::{EXIM, installed};

use spinpark_fixtures::command::said;

use crate::fixtures::spinpark;
use crate::traces::{assert_none, signalled, wait_for_the_end};

#[test]
fn everything_is_delivered_and_nothing_is_left() {
    let directory = tempfile::tempdir().unwrap();
    let mut command =
        spinpark(["documents", "mail", "--clients", "1,3", "--rounds", "2", "--duration", "300ms"]);
    let result = said(command.arg("--dir").arg(directory.path()).arg("--json"));
    result.succeeds(&[]);
    assert!(result.stderr.contains("messages/s"), "{}", result.stderr);
    let document: Value = serde_json::from_str(&result.stdout).unwrap();
    assert_eq!((&document["workload"], &document["end"]), (&"mail".into(), &"complete".into()));
    let cells = document["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2);
    let runs = cells.iter().flat_map(|cell| cell["runs"].as_array().unwrap());
    // Each run compared mailboxes with what the server had accepted.
    let messages: u64 = runs.map(|run| run["operations"].as_u64().unwrap()).sum();
    assert!(messages > 0);
    assert!(cells[1]["runs"][0]["spread"]["jain"].as_f64().unwrap() > 0.0);
    assert_none(directory.path());
}

#[test]
fn interrupted() {
    let directory = tempfile::tempdir().unwrap();
    let mut command =
        spinpark(["documents", "mail", "--clients", "2", "--rounds", "1000", "--duration", "100s"]);
    let result = signalled(command.arg("--dir").arg(directory.path()), "INT", directory.path());
    assert_eq!(result.code, Some(130), "{result:?}");
    assert_none(directory.path());
}

/// Even if the command itself cannot react any more, no process outlives it.
#[test]
fn killed() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = spinpark(["documents", "mail", "--clients", "2", "--duration", "100s"]);
    let result = signalled(command.arg("--dir").arg(directory.path()), "KILL", directory.path());
    assert_eq!(result.code, Some(128 + 9), "{result:?}");
    wait_for_the_end(directory.path());
}

#[test]
fn bad_requests() {
    // A port without a listener: it was free, and connections to it are not what makes it busy.
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    for (args, code, words) in [
        (&["--server", "localhost"][..], 2, &["HOST:PORT"][..]),
        (
            &["--server", &format!("127.0.0.1:{port}")],
            2,
            &["--server 127.0.0.1", "there is no answer", "refused"],
        ),
        (&["--clients", "0"], 2, &["--clients", "must be from 1 to 4096"]),
        (&["--dir", "/no/such/directory"], 2, &["--dir /no/such/directory"]),
    ] {
        said(spinpark(["documents", "mail", "--rounds", "1"]).args(args)).fails(code, words);
    }
}

/// The recipe for the original's server.
#[test]
fn exim() {
    if !installed(&[EXIM]) {
        return;
    }
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/mail-on-exim.sh");
    let mut command = Command::new(script);
    command.env("SPINPARK_LAB", cargo_bin!("spinpark-lab")).env("PORT", port.to_string());
    let result = said(command.args(["--clients", "2", "--rounds", "1", "--duration", "500ms"]));
    result.succeeds(&["messages/s", "yours", "exim accepted"]);
    let left = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let left: Vec<_> = left.filter(|entry| entry.file_name().to_string_lossy().contains("exim")).collect();
    assert!(left.is_empty(), "{left:?}");
}
