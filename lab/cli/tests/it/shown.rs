//! Earlier results from their files; the destinations of data and tables.

use std::fs::File;
use std::process::Stdio;

use serde_json::Value;
use spinpark_fixtures::command::{lines_fit, said};

use crate::fixtures::spinpark;

#[test]
fn a_report_of_documents() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = spinpark(["documents", "run", "--only", "003", "--quick", "--rounds", "1", "--output"]);
    said(command.arg(directory.path())).succeeds(&["documents.json"]);
    let again = said(spinpark(["bench", "show"]).arg(directory.path().join("documents.json")));
    again.succeeds(&["# The four documents"]);
    let live = std::fs::read_to_string(directory.path().join("documents.md")).unwrap();
    assert_eq!(again.stdout.trim_end(), live.trim_end());
}

#[test]
fn what_is_no_result() {
    said(&mut spinpark(["bench", "show", "/no/such/file"]))
        .fails(2, &["cannot read /no/such/file: No such file", "Name a file that `bench`"]);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), r#"{"format":"else","schema":1}"#).unwrap();
    said(spinpark(["bench", "show"]).arg(file.path())).fails(2, &["`else`", "does not know"]);
    std::fs::write(file.path(), "text").unwrap();
    said(spinpark(["bench", "show"]).arg(file.path())).fails(2, &["not a record", "Name a file that"]);
}

/// `--json` alone is standard output, in every command.
#[test]
fn json_without_a_file() {
    let parsed = |stdout: &str| serde_json::from_str::<Value>(stdout).unwrap();
    let locks = [
        "bench",
        "locks",
        "--workload",
        "pair-single",
        "--locks",
        "glibc,std",
        "--duration",
        "5ms",
        "--json",
    ];
    let measured = said(&mut spinpark(locks));
    assert_eq!(parsed(&measured.stdout)["format"], "spinpark bench");
    let mmap = ["documents", "mmap", "--threads", "1", "--rounds", "1", "--duration", "5ms", "--json"];
    assert_eq!(parsed(&said(&mut spinpark(mmap)).stdout)["format"], "spinpark bench workload");
}

/// `--format` chooses what standard output gets; `--json FILE` and `--csv FILE` write besides.
#[test]
fn formats() {
    let sim = ["sim", "sweep", "--machine", "plain-2", "--threads", "2", "--locks", "spinpark"];
    let sim = || {
        let mut command = spinpark(sim);
        command.args(["--duration", "50us", "--seeds", "1"]);
        command
    };
    let json = said(sim().args(["--format", "json"]));
    assert_eq!(serde_json::from_str::<Value>(&json.stdout).unwrap()["format"], "spinpark sim sweep");
    let csv = said(sim().args(["--format", "csv"]));
    assert_eq!((csv.code, csv.stdout.lines().count()), (Some(0), 2), "{csv:#?}");
    said(sim().args(["--format", "table"])).succeeds(&["operations/s by threads"]);
    said(sim().args(["--format", "markdown"])).fails(2, &["table, json, csv"]);
    said(sim().args(["--format", "json", "--json", "x.json"])).fails(2, &["leave one of them out"]);
}

/// Output that cannot be printed is an error.
#[test]
fn a_full_disk() {
    let full = || Stdio::from(File::options().write(true).open("/dev/full").unwrap());
    let list = spinpark(["bench", "list"]).stdout(full()).output().unwrap();
    assert_eq!(list.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&list.stderr).contains("cannot write to standard output"));
}

#[test]
fn what_is_not_as_asked_is_said() {
    let locks =
        ["bench", "locks", "--locks", "glibc,std", "--duration", "5ms", "--threads", "2", "--workload"];
    let fixed = said(spinpark(locks).arg("pair-single"));
    fixed.succeeds(&["--threads 2 does not apply to pair-single, which runs with 1"]);
    said(spinpark(locks).arg("pair-single,pair-threaded"))
        .succeeds(&["--threads 2 does not apply to pair-single, pair-threaded, which run with 1"]);
    lines_fit(&fixed.stdout, 100);
    let twice = ["bench", "locks", "--workload", "pair-single", "--locks", "std,std"];
    said(&mut spinpark(twice)).fails(2, &["--locks names `std` twice"]);
}
