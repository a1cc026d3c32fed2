//! `spinpark-lab documents run`: the smallest report, and impossible requests.

use std::fs;

use serde_json::Value;

use spinpark_fixtures::command::said;

use crate::fixtures::spinpark;

#[test]
fn a_report_of_one_document() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("report");
    let mut command = spinpark(["documents", "run", "--only", "003", "--quick", "--rounds", "1", "--output"]);
    said(command.arg(&out)).succeeds(&["1 document, 1 part, 7 runs", "Ctrl-C", "documents.html"]);
    let read = |name: &str| fs::read_to_string(out.join(name)).unwrap();
    let text = read("documents.md");
    for part in
        ["## Document 003", "Three ways to signal", "0.655", "spinpark-lab documents condvar", "complete"]
    {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
    assert!(!text.contains("## Document 001"));
    assert!(read("documents.html").contains("id=\"condvar_signal\""));
    let document: Value = serde_json::from_str(&read("documents.json")).unwrap();
    assert_eq!((&document["format"], &document["schema"]), (&"spinpark bench documents".into(), &1.into()));
    let run = &document["documents"][0]["runs"][0];
    assert_eq!(run["result"]["workload"], "condvar");
    assert_eq!(run["result"]["cells"][0]["runs"].as_array().unwrap().len(), 7);
}

#[test]
fn markdown_without_a_file_and_what_is_not_here() {
    // The drop-in's stand-in is not found under another name, so there is one part that cannot run.
    let mut command = spinpark(["documents", "run", "--only", "003", "--quick", "--rounds", "1"]);
    let result = said(command.env("SPINPARK_PRELOAD", "/no/such/library.so"));
    result.succeeds(&["Not here: condvar", "# The four documents", "/no/such/library.so", "0.655"]);
}

#[test]
fn what_cannot_be_done() {
    let refused = |args: [&str; 2]| said(spinpark(["documents", "run"]).args(args));
    refused(["--only", "005"]).fails(2, &["no document 005", "001, 002, 003, 004"]);
    refused(["--rounds", "0"]).fails(2, &["0"]);
    refused(["--html", "/no/such/directory/report.html"]).fails(2, &["cannot write", "exists"]);
}
