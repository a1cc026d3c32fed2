//! `spinpark bench pthread`.

use std::fs;

use serde_json::Value;

use crate::fixtures::{said, spinpark};

#[test]
fn one_shape() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut command = spinpark([
        "bench",
        "pthread",
        "--rounds",
        "6",
        "--millis",
        "5",
        "--shape",
        "pair-threaded",
        "readers",
    ]);
    let result = said(command.arg("--json").arg(file.path()));
    result.succeeds(&["2 cells × 6 rounds", "pair-threaded", "readers", "ratio", "glibc 2."]);
    let document: Value = serde_json::from_str(&fs::read_to_string(file.path()).unwrap()).unwrap();
    assert_eq!(document["format"], "spinpark bench pthread");
    assert_eq!(document["results"].as_array().unwrap().len(), 2);
    assert_eq!(document["runs"][0]["shape"], "pair-threaded");
    assert_eq!(document["runs"][0]["runs"].as_array().unwrap().len(), 18);
    assert!(document["runs"][0]["runs"][0]["printed"].as_f64().unwrap() > 0.0);
    assert!(document["results"][0]["time"]["change"]["median"].as_f64().unwrap() > 0.0);
}

#[test]
fn fairness_and_markdown() {
    let bench = ["bench", "pthread", "--rounds", "6", "--millis", "30", "--shape", "saturated"];
    said(&mut spinpark(bench)).succeeds(&["Jain index", "longest gap", "256"]);
    said(spinpark(bench).arg("--markdown"))
        .succeeds(&["| saturated | 2 |", "`spinpark bench pthread --rounds 6"]);
}

#[test]
fn unknown_shape() {
    said(&mut spinpark(["bench", "pthread", "--shape", "round"]))
        .fails(2, &["no shape `round`", "pair-single"]);
}

/// The worker, as the benchmark starts it.
#[test]
fn worker_prints_one_report() {
    let result = said(&mut spinpark(["__bench-worker", "mixed-10", "--threads", "3", "--millis", "500"]));
    result.succeeds(&[]);
    let report: Value = serde_json::from_str(result.stdout.trim()).unwrap();
    assert!(report["ns_per_operation"].as_f64().unwrap() > 0.0);
    assert!(report["operations"].as_u64().unwrap() > 0);
}
