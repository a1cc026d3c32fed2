//! Earlier results from their files; the destinations of data and tables.

use std::fs::File;
use std::process::Stdio;

use serde_json::Value;

use spinpark_fixtures::command::{program, said};

use crate::fixtures::spinpark;

/// The tables, from the first one on, without those that differ in how they are said.
fn from_table(text: &str) -> Vec<&str> {
    text.lines().skip_while(|line| !line.starts_with('─')).take_while(|line| !line.is_empty()).collect()
}

#[test]
fn a_comparison() {
    let json = tempfile::NamedTempFile::new().unwrap();
    let mut command = spinpark(["compare", "--rounds", "6", "--json"]);
    let live = said(command.arg(json.path()).arg("--").arg(program()));
    live.succeeds(&["wall time"]);
    let again = said(spinpark(["report"]).arg(json.path()));
    again.succeeds(&["wall time"]);
    let (live, again) = (from_table(&live.stdout), from_table(&again.stdout));
    // Warnings are on another stream here.
    assert_eq!(live[..again.len() - 1], again[..again.len() - 1]);
    said(spinpark(["report", "--html", "x"]).arg(json.path()))
        .fails(2, &["--html is for recordings", "leave it out"]);
}

/// `--json` alone is standard output, in every command.
#[test]
fn json_without_a_file() {
    let parsed = |stdout: &str| serde_json::from_str::<Value>(stdout).unwrap();
    let mut command = spinpark(["compare", "--rounds", "6", "--json", "--"]);
    let compared = said(command.arg(program()));
    assert_eq!(parsed(&compared.stdout)["format"], "spinpark compare");
    assert!(compared.stderr.contains("wall time"), "{}", compared.stderr);
    said(spinpark(["compare", "--json"]).arg(program())).fails(2, &["it is a program", "--json -- PROGRAM"]);
}

/// Output that cannot be printed is an error.
#[test]
fn a_full_disk() {
    let full = || Stdio::from(File::options().write(true).open("/dev/full").unwrap());
    let mut command = spinpark(["compare", "--rounds", "6", "--"]);
    let output = command.arg(program()).stdout(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write to standard output"));
}
