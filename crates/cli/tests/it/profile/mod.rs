//! `spinpark profile`: which lock a program waits for, and which thread holds it.

mod ends;
mod failures;
mod forks;
mod glibc;
mod shares;
mod sight;
mod silence;
mod slow;
mod wrappers;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use spinpark_fixtures::{dropin, profiler};

use spinpark_fixtures::command::{Said, Text, flat, said, waits};

use crate::fixtures::spinpark;

/// The command with the recorder, in `directory`.
pub(crate) fn recording<const N: usize>(directory: &Path, args: [&str; N]) -> Command {
    let mut command = spinpark(args);
    command.env("SPINPARK_PROFILER", profiler()).env("SPINPARK_PRELOAD", dropin()).current_dir(directory);
    for variable in
        ["SPINPARK_PROFILE_DIR", "SPINPARK_PROFILE_DETAIL", "SPINPARK_PROFILE_MAX_SIZE", "COLUMNS"]
    {
        command.env_remove(variable);
    }
    command
}

/// Profiles the program that waits, with `options`, doing `what`.
fn profile(directory: &Path, options: &[&str], what: &[&str]) -> Said {
    said(recording(directory, ["profile"]).args(options).arg("--").arg(waits()).args(what))
}

/// What there is in a directory.
fn entries(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn names_the_lock_and_who_holds_it() {
    let directory = tempfile::tempdir().unwrap();
    for locks in ["glibc", "spinpark"] {
        let result =
            profile(directory.path(), &["--locks", locks, "--detail", "full", "--output", locks], &["store"]);
        assert_eq!(result.code, Some(0), "{result:#?}");
        assert_eq!(result.stdout, "stored\n", "the program's own output, and nothing else");
        let one_line = flat(&result.stderr);
        assert!(one_line.contains("`cache_lock`, held by `store_update`"), "{one_line}");
        assert!(one_line.contains("`flush` waits"), "{one_line}");
        assert!(one_line.contains(&format!("{locks}'s locks")), "{one_line}");
        // What recording cost, or that it is not known.
        assert!(one_line.contains("`--overhead` measures"), "{one_line}");
        assert!(result.stderr.contains("spinpark report"), "{}", result.stderr);
    }
}

#[test]
fn the_exit_status_is_the_programs() {
    let directory = tempfile::tempdir().unwrap();
    let result = profile(directory.path(), &[], &["store", "3"]);
    assert_eq!(result.code, Some(3), "{result:#?}");
    assert!(result.stderr.contains("exited with status 3; this is what was recorded"), "{}", result.stderr);
    let result = profile(directory.path(), &[], &["die", "6"]);
    assert_eq!(result.code, Some(128 + 6), "{result:#?}");
    assert!(result.stderr.contains("SIGABRT"), "{}", result.stderr);
    // SIGKILL, which no handler sees: the recording is there.
    let result = profile(directory.path(), &[], &["die", "9"]);
    assert_eq!(result.code, Some(128 + 9), "{result:#?}");
    for words in ["SIGKILL", "cache_lock", "store_update"] {
        assert!(result.stderr.contains(words), "{}", result.stderr);
    }
}

#[test]
fn directories() {
    let directory = tempfile::tempdir().unwrap();
    for _ in 0..3 {
        assert_eq!(profile(directory.path(), &[], &["briefly"]).code, Some(0));
    }
    assert_eq!(entries(directory.path()), ["spinpark-profile", "spinpark-profile-2", "spinpark-profile-3"]);
    assert!(entries(&directory.path().join("spinpark-profile-2")).contains(&"profile.json".to_owned()));
    // A directory that is not empty is refused: nothing runs.
    let result = profile(directory.path(), &["--output", "spinpark-profile"], &["briefly"]);
    result.fails(2, &["is not empty", "--output"]);
    assert_eq!(result.stdout, "");
    // An empty one, or one that has to be made, is fine.
    fs::create_dir(directory.path().join("empty")).unwrap();
    for name in ["empty", "new/one"] {
        assert_eq!(profile(directory.path(), &["--output", name], &["briefly"]).code, Some(0));
    }
    profile(directory.path(), &["--output", "/proc/here"], &["briefly"])
        .fails(2, &["cannot create the directory /proc/here", "Give --output a directory"]);
}

#[test]
fn for_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let mut result = Said { code: None, stdout: Text::default(), stderr: Text::default() };
    // On a busy machine the program needs more than the usual 50 ms until it is ready.
    for (time, words) in
        [("700ms", "ended after 700 ms, as asked"), ("7s", ", as asked"), ("40s", ", as asked")]
    {
        result = profile(directory.path(), &["--duration", time], &["forever"]);
        assert_eq!(result.code, Some(128 + 15), "{result:#?}");
        assert!(!result.stderr.contains("SIGTERM"), "that was the request: {}", result.stderr);
        assert!(result.stderr.contains(words), "{}", result.stderr);
        if result.stdout == "ready\n" {
            break;
        }
    }
    assert_eq!(result.stdout, "ready\n", "{result:#?}");
    assert!(result.stderr.contains("`cache_lock`"), "{}", result.stderr);
    profile(directory.path(), &["--duration", "soon"], &["forever"])
        .fails(2, &["`soon` is not a unit of time", "20ms"]);
}

/// The command with a program that goes on until it is ended, in a process group of their own, once the
/// program is ready.
fn started(mut command: Command) -> (Child, BufReader<impl Read>) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    (child, output)
}

fn kill(name: &str, whom: &str) {
    assert!(Command::new("kill").args(["-s", name, "--", whom]).status().unwrap().success());
}

#[test]
fn interrupted() {
    let directory = tempfile::tempdir().unwrap();
    // To both, as a terminal does; to the command alone, as `kill` does.
    for (signal, group, code) in [("INT", "-", 130), ("TERM", "", 143)] {
        let mut command = recording(directory.path(), ["profile", "--"]);
        command.arg(waits()).arg("forever");
        let (child, _output) = started(command);
        kill(signal, &format!("{group}{}", child.id()));
        let result: Said = child.wait_with_output().unwrap().into();
        assert_eq!(result.code, Some(code), "{result:#?}");
        assert!(result.stderr.contains("`cache_lock`"), "{}", result.stderr);
        let words = flat(&result.stderr);
        assert!(words.contains(&format!("was ended by SIG{signal}")), "{}", result.stderr);
    }
}

#[test]
fn data_on_standard_output() {
    let directory = tempfile::tempdir().unwrap();
    // The program is silent but for one line.
    let result = profile(directory.path(), &["--json"], &["quiet"]);
    assert_eq!(result.code, Some(0), "{result:#?}");
    let result = profile(
        directory.path(),
        &["--output", "one", "--json", "x.json", "--folded", "x.folded"],
        &["briefly"],
    );
    assert_eq!(result.stdout, "stored\n", "{result:#?}");
    let report = |args: [&str; 1]| said(recording(directory.path(), ["report", "one"]).args(args));
    let json = report(["--json"]);
    assert_eq!(json.code, Some(0), "{json:#?}");
    let value: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&value[0]["format"], &value[0]["version"]), (&"spinpark-profile".into(), &3.into()));
    let file: Value =
        serde_json::from_str(&fs::read_to_string(directory.path().join("x.json")).unwrap()).unwrap();
    assert_eq!(file, value, "the same again");
    let folded = report(["--folded"]);
    assert!(
        folded.stdout.lines().any(|line| line.contains("flusher;flush;[lock: cache_lock] ")),
        "{folded:#?}"
    );
    assert_eq!(folded.stdout.0, fs::read_to_string(directory.path().join("x.folded")).unwrap());
    said(&mut recording(directory.path(), ["report", "one", "--json", "--folded"]))
        .fails(2, &["cannot both go to standard output"]);
    said(&mut recording(directory.path(), ["report", "one", "--html", "-", "--pprof", "-"]))
        .fails(2, &["--pprof and --html cannot both go to standard output"]);
    said(&mut recording(directory.path(), ["report", "one", "--html", "-"])).succeeds(&["<!DOCTYPE html>"]);
    let pprof = recording(directory.path(), ["report", "one", "--pprof", "-"]).output().unwrap();
    assert_eq!((pprof.status.code(), &pprof.stdout[..2]), (Some(0), &[0x1f, 0x8b][..]));
    assert!(!directory.path().join("-").exists());
    // A file for another tool is all that was wanted.
    let written = said(&mut recording(directory.path(), ["report", "one", "--pprof", "one.pb.gz"]));
    assert_eq!((written.code, written.stdout.as_str()), (Some(0), ""), "{written:#?}");
    assert!(written.stderr.contains("Wrote one.pb.gz"), "{written:#?}");
    // It has no reader.
    for option in ["--json", "--folded", "--html=-", "--pprof=-"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = recording(directory.path(), ["report", "one", option]);
        let output = command.stdout(writer).output().unwrap();
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]), "{option}");
    }
}

#[test]
fn files_for_others() {
    let directory = tempfile::tempdir().unwrap();
    let result = profile(directory.path(), &["--html", "x.html", "--pprof", "x.pb.gz"], &["briefly"]);
    assert_eq!(result.code, Some(0), "{result:#?}");
    assert!(
        result.stderr.contains("Wrote x.html") && result.stderr.contains("Wrote x.pb.gz"),
        "{}",
        result.stderr
    );
    let page = fs::read_to_string(directory.path().join("x.html")).unwrap();
    assert!(page.to_ascii_lowercase().starts_with("<!doctype html>") && page.contains("cache_lock"));
    assert_eq!(fs::read(directory.path().join("x.pb.gz")).unwrap()[..2], [0x1f, 0x8b]);
    // A name that cannot be written is known before anything runs, and leaves nothing.
    let result = profile(directory.path(), &["--output", "not", "--html", "/no/such/x.html"], &["briefly"]);
    result.fails(2, &["cannot write /no/such/x.html", "a directory that exists"]);
    assert!(result.stdout.is_empty() && !directory.path().join("not").exists());
}

#[test]
fn report_shows_it_again() {
    let directory = tempfile::tempdir().unwrap();
    let result = profile(directory.path(), &["--output", "all", "--detail", "full"], &["all"]);
    assert_eq!(result.code, Some(0), "{result:#?}");
    let report = |args: &[&str]| said(recording(directory.path(), ["report", "all"]).args(args));
    let again = report(&[]);
    again.succeeds(&["`cache_lock`", "Waiters and holders", "--overhead"]);
    for line in again.stdout.lines() {
        assert!(result.stderr.contains(line), "`{line}` was not in the first report: {}", result.stderr);
    }
    for (view, words) in [
        ("summary", "Waiters and holders"),
        ("locks", "cache_lock"),
        ("classes", "cache_lock"),
        ("blocking", "store_update"),
        ("sites", "flush"),
        ("freebsd", "wait_total"),
        ("condvars", "queue_filled"),
        ("outcomes", "parked"),
    ] {
        report(&["--view", view]).succeeds(&[words]);
    }
    report(&["--view", "lokcs"]).fails(2, &["lokcs", "locks"]);
    // Tables are as wide as they may be.
    for columns in ["80", "100"] {
        let mut command = recording(directory.path(), ["report", "all"]);
        let result = said(command.env("COLUMNS", columns));
        for line in result.stdout.lines() {
            assert!(line.chars().count() <= columns.parse().unwrap(), "{columns} columns: {line}");
        }
        assert!(!result.stdout.has_escapes(), "{}", result.stdout);
    }
    let colourless = said(recording(directory.path(), ["report", "all"]).env("NO_COLOR", "1"));
    assert!(!colourless.stdout.has_escapes(), "{}", colourless.stdout);
}

#[test]
fn processes() {
    let directory = tempfile::tempdir().unwrap();
    let result = profile(directory.path(), &["--output", "family"], &["family"]);
    assert_eq!(result.code, Some(0), "{result:#?}");
    assert!(result.stderr.contains("Other processes waited less"), "{}", result.stderr);
    assert!(result.stderr.contains("Locks of all 2 processes that waited"), "{}", result.stderr);
    let json = said(&mut recording(directory.path(), ["report", "family", "--json"]));
    let value: Value = serde_json::from_str(&json.stdout).unwrap();
    let profiles = value.as_array().unwrap();
    assert_eq!(profiles.len(), 2);
    let child =
        profiles.iter().find(|one| profiles.iter().any(|other| other["pid"] == one["parent"])).unwrap();
    let pid = child["pid"].to_string();
    let shown = said(&mut recording(directory.path(), ["report", "family", "--process", &pid]));
    shown.succeeds(&[&format!("process {pid}"), "cache_lock"]);
    said(&mut recording(directory.path(), ["report", "family", "--process", "1"]))
        .fails(2, &["no process 1 is in the recording; recorded are ", &format!("{pid} (waits)")]);
    // A mistaken option does not lose a run that is over.
    let result = profile(directory.path(), &["--output", "again", "--process", "1"], &["family"]);
    assert_eq!(result.code, Some(0), "{result:#?}");
    for words in ["no process 1 is in the recording", "this is process ", "`cache_lock`", "Kept in"] {
        assert!(result.stderr.contains(words), "no `{words}` in {}", result.stderr);
    }
}

#[test]
fn diff() {
    let directory = tempfile::tempdir().unwrap();
    for (name, what) in [("before", "store"), ("after", "briefly")] {
        assert_eq!(profile(directory.path(), &["--output", name], &[what]).code, Some(0));
    }
    let diff = |args: &[&str]| said(recording(directory.path(), ["diff", "before", "after"]).args(args));
    diff(&[]).succeeds(&["Threads waited", "instead of", "cache_lock", "Held: total time held"]);
    assert_eq!(profile(directory.path(), &["--output", "off", "--detail", "off"], &["store"]).code, Some(0));
    said(&mut recording(directory.path(), ["diff", "before", "off"]))
        .fails(2, &["off was recorded with `--detail off`", "Record it again"]);
    let json: Value = serde_json::from_str(&diff(&["--json"]).stdout).unwrap();
    assert_eq!((json["format"].as_str(), json["version"].as_u64()), (Some("spinpark-diff"), Some(2)));
    said(&mut recording(directory.path(), ["diff", "before", "nowhere"]))
        .fails(2, &["nowhere does not exist", "spinpark profile --output nowhere"]);
}

#[test]
fn what_it_costs_the_program_itself() {
    let directory = tempfile::tempdir().unwrap();
    let result = profile(directory.path(), &["--overhead"], &["store"]);
    assert_eq!((result.code, result.stdout.as_str()), (Some(0), "stored\n"), "{result:#?}");
    for words in [
        "What recording costs this program",
        "none, again",
        "off",
        "sampled",
        "full",
        "measured on this program",
    ] {
        assert!(result.stderr.contains(words), "no `{words}` in {}", result.stderr);
    }
    profile(directory.path(), &["--overhead", "--rounds", "2"], &["store"])
        .fails(2, &["--rounds 2 is too few"]);
    // A program that fails is not measured, and leaves nothing.
    let result = profile(directory.path(), &["--output", "none", "--overhead"], &["store", "3"]);
    assert!(result.stderr.contains("exited with status 3"), "{result:#?}");
    assert!(!directory.path().join("none").exists(), "nothing was recorded");
}

/// Ctrl-C while it is measured: what is known so far is printed.
#[test]
fn what_it_costs_so_far() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = recording(directory.path(), ["profile", "--overhead", "--rounds", "1000", "--"]);
    command.args(["sh", "-c", "echo run >>runs"]).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let runs = || fs::read_to_string(directory.path().join("runs")).unwrap_or_default().lines().count();
    // Two rounds of six.
    while runs() < 13 {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    kill("INT", &child.id().to_string());
    let result: Said = child.wait_with_output().unwrap().into();
    assert_eq!(result.code, Some(130), "{result:#?}");
    assert!(result.stderr.contains("of 1000 rounds"), "{}", result.stderr);
    assert!(result.stderr.contains("÷ without a recorder"), "{}", result.stderr);
}

#[test]
fn programs_without_waiting() {
    let directory = tempfile::tempdir().unwrap();
    let result = profile(directory.path(), &[], &["quiet"]);
    assert_eq!((result.code, result.stdout.as_str()), (Some(0), "hello\n"), "{result:#?}");
    assert!(result.stderr.contains("No thread waited for a pthread lock"), "{}", result.stderr);
    assert!(result.stderr.contains("Go's are not"), "{}", result.stderr);
    assert!(result.stderr.contains(", no thread waited;"), "{}", result.stderr);
    for (view, words) in [
        ("condvars", "No thread waited for a condition variable."),
        ("outcomes", "No thread waited for a lock."),
    ] {
        said(&mut recording(directory.path(), ["report", "spinpark-profile", "--view", view]))
            .succeeds(&[words]);
    }
}
