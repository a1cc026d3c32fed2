//! Programs that fork: the recordings of their children, and messages about those that were left out.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use spinpark_fixtures::profiled::{read_all, recordings};
use spinpark_fixtures::{compile_c, profiler};

use super::recording;
use spinpark_fixtures::command::{Said, flat, said};

fn program() -> PathBuf {
    compile_c("forks.c", &[])
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
    assert!(result.stderr.contains(says), "{}", result.stderr);
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

/// What measures the recorder's own cost is quick: it waits a few times (for a thread), and not some ten
/// thousand times.
#[test]
fn the_estimate_is_quick() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = recording(directory.path(), ["__profile-cost"]);
    command.env("LD_PRELOAD", profiler());
    command.env("SPINPARK_PROFILE_DIR", directory.path()).env("SPINPARK_PROFILE_DETAIL", "full");
    let result = said(&mut command);
    let times: Vec<f64> = result.stdout.split_whitespace().map(|it| it.parse().unwrap()).collect();
    assert!(result.code == Some(0) && times.len() == 1 && times[0] > 0.0, "{result:#?}");
    let waits: u64 =
        read_all(directory.path()).iter().flat_map(|one| one.uses.values()).map(|it| it.contended).sum();
    assert!(waits < 100, "{waits}");
}

/// A process that cannot cut its file off leaves that to the command, or to a later report.
#[test]
fn recordings_are_as_long_as_they_are_used() {
    let directory = tempfile::tempdir().unwrap();
    let kept = directory.path().join("kept");
    let script = "\"$0\" crowd > /dev/null; kill -9 $$";
    let mut command = recording(directory.path(), ["profile", "--output", "kept", "--", "sh", "-c", script]);
    said(command.arg(program()));
    let files = recordings(&kept);
    assert!(files.len() > 64, "{}", files.len());
    let bytes: u64 = files.iter().map(|file| fs::metadata(file).unwrap().len()).sum();
    let disk: u64 = files.iter().map(|file| fs::metadata(file).unwrap().blocks() * 512).sum();
    assert!(bytes <= disk + disk / 4, "{bytes} bytes, of which {disk} are on the disk");
}

/// Processes of several PID namespaces have one number.
#[test]
fn one_of_several_processes_with_a_number() {
    let directory = tempfile::tempdir().unwrap();
    let script = "for i in 1 2 3; do unshare -r --pid --fork --mount-proc \"$0\" queue || exit 77; done";
    let mut command = recording(directory.path(), ["profile", "--output", "kept", "--", "sh", "-c", script]);
    let result = said(command.arg(spinpark_fixtures::command::waits()));
    if result.code == Some(77) {
        eprintln!("skipped: no PID namespace can be made here");
        return;
    }
    let report =
        |process: &str| said(&mut recording(directory.path(), ["report", "--process", process, "kept"]));
    let several = report("1");
    assert_eq!(several.code, Some(2), "{several:#?}");
    let text = flat(&several.stderr);
    assert!(text.contains("3 recordings are of processes with the number 1"), "{text}");
    let name =
        text.split_once(": 1-").map(|(_, rest)| format!("1-{}", rest.split(' ').next().unwrap())).unwrap();
    report(&name).succeeds(&["(process 1)"]);
    report(&format!("{name}.spinprof")).succeeds(&["(process 1)"]);
}

/// In another place, without the program: names are in the directory.
#[test]
fn a_recording_needs_no_program() {
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("program");
    fs::copy(spinpark_fixtures::command::waits(), &copy).unwrap();
    let mut command = recording(directory.path(), ["profile", "--output", "kept", "--", "./program", "all"]);
    assert_eq!(said(&mut command).code, Some(0));
    let names = |directory: &str| said(&mut recording(&directory_of(&copy), ["report", directory])).stdout;
    let before = names("kept");
    assert!(before.contains("cache_lock"), "{before}");
    fs::rename(directory.path().join("kept"), directory.path().join("elsewhere")).unwrap();
    fs::remove_file(&copy).unwrap();
    assert_eq!(names("elsewhere"), before);
}

fn directory_of(file: &Path) -> PathBuf {
    file.parent().unwrap().to_owned()
}
