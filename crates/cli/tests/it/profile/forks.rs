//! Programs that fork: what is kept of their children, and what is said of those that were left out.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use spinpark_testkit::profiled::{read_all, recordings};
use spinpark_testkit::{compile_c, profiler};

use super::{flat, recording};
use crate::fixtures::{Said, said};

fn program() -> PathBuf {
    compile_c("profile/forks.c", &[])
}

fn forks(directory: &Path, options: &[&str], scene: &str) -> Said {
    said(recording(directory, ["profile"]).args(options).arg("--").arg(program()).arg(scene))
}

#[test]
fn children_that_never_wait_leave_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let result = forks(directory.path(), &["--output", "kept"], "idle");
    assert_eq!(result.code, Some(0), "{result:#?}");
    let files = recordings(&directory.path().join("kept"));
    assert_eq!(files.len(), 1, "{files:?}");
    let text = flat(&result.stderr);
    assert!(!text.contains("was not recorded") && !text.contains("were not recorded"), "{text}");
}

#[test]
fn a_bound() {
    let directory = tempfile::tempdir().unwrap();
    let kept = directory.path().join("kept");
    let result = forks(directory.path(), &["--output", "kept", "--max-size", "1MiB"], "crowd");
    assert_eq!(result.code, Some(0), "{result:#?}");
    let says = "processes were not recorded: the recording would have exceeded 1 MiB (`--max-size`).";
    assert!(flat(&result.stderr).contains(says), "{}", result.stderr);
    let entries = fs::read_dir(&kept).unwrap();
    let bytes: u64 = entries.map(|entry| entry.unwrap().metadata().unwrap().blocks() * 512).sum();
    assert!(bytes <= 1 << 20, "{bytes}");
    // A report says it again, once.
    let report = said(&mut recording(directory.path(), ["report", "kept"]));
    report.succeeds(&[]);
    assert_eq!(flat(&report.stdout).matches("were not recorded").count(), 1, "{}", report.stdout);
    let json = said(&mut recording(directory.path(), ["report", "--json", "-", "kept"]));
    let all: Vec<Value> = serde_json::from_str(&json.stdout).unwrap();
    assert!(all.len() >= 4);
    for one in all {
        assert_eq!(one["losses"].to_string().matches("were not recorded").count(), 1, "{}", one["losses"]);
    }
}

#[test]
fn bounds_that_are_none() {
    let directory = tempfile::tempdir().unwrap();
    let with = |size| forks(directory.path(), &["--max-size", size], "idle");
    with("1KiB").fails(2, &["one process needs at least 1MiB"]);
    with("10 sacks").fails(2, &["`sacks` is not a unit of size", "64MiB"]);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

/// What the estimate of the recorder's own cost measures is quick: it waits a few times, and not some ten thousand times.
#[test]
fn the_estimate_is_quick() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = recording(directory.path(), ["__profile-cost"]);
    command.env("LD_PRELOAD", profiler());
    command.env("SPINPARK_PROFILE_DIR", directory.path()).env("SPINPARK_PROFILE_DETAIL", "full");
    let result = said(&mut command);
    let times: Vec<f64> = result.stdout.split_whitespace().map(|it| it.parse().unwrap()).collect();
    assert!(
        result.code == Some(0) && times.len() == 2 && times.iter().all(|time| *time > 0.0),
        "{result:#?}"
    );
    let read = read_all(directory.path());
    let waits: u64 = read.iter().flat_map(|one| one.uses.values()).map(|it| it.contended).sum();
    assert!((1..100).contains(&waits), "{waits}");
}
