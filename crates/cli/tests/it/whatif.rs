//! `spinpark whatif`: what is delayed, how often, and what is said. Programs sleep for their work, so that a busy
//! machine changes numbers, and not which of them there are; what a longer section costs is asserted only as what it
//! cannot be below.
//!
//! The tests that are ignored measure for minutes whether known costs are found.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use spinpark_fixtures::command::{Said, flat, lines_fit, said, waits};
use spinpark_fixtures::compile_c;

use crate::profile::recording;

fn program() -> PathBuf {
    compile_c("whatif.c", &[])
}

/// Asks about the program, doing `what` so often, with these options.
fn whatif(directory: &Path, options: &[&str], what: &str, rounds: usize) -> Said {
    let mut command = recording(directory, ["whatif"]);
    said(command.args(options).arg("--").arg(program()).arg(what).arg(rounds.to_string()))
}

/// The same, with its data: those of the only lock.
fn data(directory: &Path, options: &[&str], what: &str, rounds: usize) -> (Said, Value) {
    let path = directory.join(format!("{what}.json"));
    let options = [options, &["--json", path.to_str().unwrap()]].concat();
    let result = whatif(directory, &options, what, rounds);
    assert_eq!(result.code, Some(0), "{result:#?}");
    let document: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!((&document["format"], &document["version"]), (&"spinpark whatif".into(), &1.into()));
    assert_eq!(document["locks"].as_array().unwrap().len(), 1, "{document:#}");
    (result, document["locks"][0].clone())
}

/// The runs of an arm.
fn runs<'a>(lock: &'a Value, arm: &'a str) -> impl Iterator<Item = &'a Value> {
    lock["runs"].as_array().unwrap().iter().filter(move |run| run["arm"] == arm)
}

#[test]
fn every_section_is_delayed_and_no_other() {
    const TIMES: u64 = 12;
    let directory = tempfile::tempdir().unwrap();
    let (result, lock) =
        data(directory.path(), &["--lock", "cache_lock", "--rounds", "6"], "serial", TIMES as usize / 4);
    assert_eq!(
        (&lock["name"], &lock["uses"], &lock["other_lock"]),
        (&"cache_lock".into(), &TIMES.into(), &"calm_lock".into())
    );
    let delay = lock["delay_ns"].as_u64().unwrap();
    assert!(delay >= 1_000_000, "a section sleeps for a millisecond: {delay}");
    for (arm, factor) in
        [("none", 0.0), ("none_again", 0.0), ("quarter", 0.25), ("half", 0.5), ("whole", 1.0)]
    {
        assert_eq!(runs(&lock, arm).count(), 6);
        for run in runs(&lock, arm) {
            let delayed = if factor > 0.0 { TIMES } else { 0 };
            assert_eq!((&run["reached"], &run["delayed"]), (&TIMES.into(), &delayed.into()), "{arm}: {run}");
            // One after the other, whatever else the machine does.
            let least = TIMES as f64 * (1e-3 + factor * delay as f64 / 1e9) * 0.99;
            assert!(run["wall_s"].as_f64().unwrap() >= least, "{arm}: {run}");
        }
    }
    for run in runs(&lock, "outside").chain(runs(&lock, "other_lock")) {
        assert_eq!((&run["reached"], &run["delayed"]), (&TIMES.into(), &TIMES.into()), "{run}");
    }
    assert_eq!(lock["effect"]["rounds"], 6);
    for words in ["1, outside locks", "1, other lock", "Sections of `cache_lock` longer by 10 %", "was held"]
    {
        let is_there = result.stdout.contains(words) || result.stdout.contains(words.replace('S', "s"));
        assert!(is_there, "{words}: {result:#?}");
    }
    lines_fit(&result.stdout, 100);
}

/// Its address is another one in each run, and so are those of its peers.
#[test]
fn a_lock_on_the_heap_is_found_again() {
    let directory = tempfile::tempdir().unwrap();
    for (what, name) in [("heap", "mutex of make"), ("first", "mutex in update")] {
        let result = whatif(directory.path(), &["--lock", "nothing"], what, 3);
        let listed = result.stderr.split('`').find(|word| word.starts_with(name)).map(str::to_owned);
        let full = listed.unwrap_or_else(|| panic!("{result:#?}")).replace('\n', " ");
        let (_, lock) = data(directory.path(), &["--lock", &full, "--rounds", "6"], what, 3);
        for run in runs(&lock, "whole").chain(runs(&lock, "none")) {
            assert_eq!(run["reached"], 12, "{what}: {run}");
        }
    }
}

#[test]
fn other_places() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let wake = ["--where", "wake", "--lock", "queue_filled", "--delay", "100us", "--rounds", "6"];
    let (result, lock) = data(path, &wake, "signals", 15);
    assert!(runs(&lock, "whole").all(|run| run["reached"] == 15 && run["delayed"] == 15), "{lock:#}");
    assert!(
        result.stdout.contains("100 µs before each wake-up of `queue_filled` cost")
            || result.stdout.contains("Undecided")
    );
    let retry = ["--where", "retry", "--lock", "cache_lock", "--rounds", "6"];
    let (_, lock) = data(path, &retry, "polled", 10);
    assert!(runs(&lock, "half").all(|run| run["reached"].as_u64().unwrap() >= 10), "{lock:#}");
    for place in ["before", "after"] {
        let options = ["--where", place, "--lock", "cache_lock", "--rounds", "6"];
        let (_, lock) = data(path, &options, "alone", 3);
        assert!(runs(&lock, "quarter").all(|run| run["delayed"] == 3), "{place}: {lock:#}");
        assert_eq!(runs(&lock, "outside").count(), if place == "after" { 0 } else { 6 });
    }
}

/// The lock that threads wait for most is asked about, on spinpark's locks as well, and a number that the program
/// prints is judged.
#[test]
fn the_lock_that_is_waited_for_and_the_programs_number() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = recording(directory.path(), ["whatif"]);
    let result = said(command.args(["--rounds", "6", "--locks", "spinpark", "--"]).arg(waits()).arg("store"));
    assert_eq!(result.code, Some(0), "{result:#?}");
    assert!(result.stdout.contains("`cache_lock` (mutex): 6 rounds of"), "{result:#?}");
    let metric = ["--metric-from-output", "rate: ([0-9.]+)", "--higher-is-better", "--unit", "throughput"];
    let options = [&["--lock", "cache_lock", "--rounds", "6"][..], &metric].concat();
    let (result, lock) = data(directory.path(), &options, "alone", 3);
    assert_eq!(lock["effect"]["is_rate"], true);
    assert!(
        result.stdout.contains("throughput (median)") && result.stdout.contains("of throughput"),
        "{result:#?}"
    );
    let document = said(
        recording(directory.path(), ["whatif"])
            .args(["--lock", "cache_lock", "--rounds", "6", "--format", "json", "--"])
            .arg(program())
            .args(["alone", "2"]),
    );
    serde_json::from_str::<Value>(&document.stdout).unwrap();
    assert!(document.stderr.contains("Recording a run"), "{document:#?}");
}

/// Several locks, one after the other; and what was measured of them in the list of a report.
#[test]
fn two_locks_and_a_report_that_has_both() {
    const ROUNDS: &str = "4";
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let options = ["--top", "2", "--rounds", "6", "--json", "whatif.json"];
    let result = whatif(path, &options, "both", 4);
    assert_eq!(result.code, Some(0), "{result:#?}");
    let document: Value =
        serde_json::from_str(&fs::read_to_string(path.join("whatif.json")).unwrap()).unwrap();
    let locks = document["locks"].as_array().unwrap();
    let mut names: Vec<&str> = locks.iter().map(|lock| lock["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["cache_lock", "log_lock"]);
    for lock in locks {
        let name = lock["name"].as_str().unwrap();
        assert_eq!(runs(lock, "whole").filter(|run| run["delayed"] == 16).count(), 6, "{name}: {lock:#}");
        let said_of = format!("`{name}` (mutex): 6 rounds of");
        assert!(result.stdout.contains(&said_of), "{result:#?}");
    }

    let mut profiled = recording(path, ["profile", "--output", "kept", "--"]);
    assert_eq!(said(profiled.arg(program()).args(["both", ROUNDS])).code, Some(0));
    let report = |options: &[&str]| said(recording(path, ["report"]).args(options));
    let shown = report(&["kept", "--whatif", "whatif.json", "--html", "page.html", "--view", "steps"]);
    assert_eq!(shown.code, Some(0), "{shown:#?}");
    assert_eq!(flat(&shown.stdout).matches("Measured: ").count(), 2, "{shown:#?}");
    lines_fit(&shown.stdout, 100);
    assert!(fs::read_to_string(path.join("page.html")).unwrap().contains("Measured: "));
    assert_eq!(report(&["kept", "--view", "steps"]).stdout.matches("Measured").count(), 0);

    // Another program's, or another command's.
    said(recording(path, ["profile", "--output", "other", "--"]).arg(waits()).arg("store"));
    let renamed = document.to_string().replace("cache_lock", "no_lock").replace("log_lock", "no_other");
    fs::write(path.join("renamed.json"), renamed).unwrap();
    report(&["other", "--whatif", "renamed.json"]).fails(2, &["none of the locks of renamed.json: `"]);
    fs::write(path.join("else.json"), "{}").unwrap();
    report(&["kept", "--whatif", "else.json"])
        .fails(2, &["else.json is no result of `spinpark whatif --json`"]);
    report(&["kept", "--whatif", "none.json"]).fails(2, &["cannot read none.json"]);
    report(&["kept", "--whatif", "whatif.json", "--from", "1ms"]).fails(2, &["--whatif is of the whole run"]);
}

/// A round without the lock does not count, and that is said.
#[test]
fn a_round_that_does_not_meet_the_lock() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("sometimes");
    // Three runs come before the rounds.
    let text = format!(
        "#!/bin/sh\ncount=$(cat runs 2>/dev/null || echo 0)\necho $((count + 1)) >runs\n\
         if [ $count = 9 ]; then exec '{program}' idle 2; fi\nexec '{program}' serial 2\n",
        program = program().display()
    );
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = recording(directory.path(), ["whatif"]);
    let result = said(command.args(["--lock", "cache_lock", "--rounds", "7", "--"]).arg(&script));
    assert_eq!(result.code, Some(0), "{result:#?}");
    assert!(result.stdout.contains("Note: 1 of 7 rounds failed: the lock was not met"), "{result:#?}");
}

#[test]
fn what_cannot_be_asked_says_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let fails = |options: &[&str], what: &str, words: &[&str]| {
        whatif(path, options, what, 5).fails(2, words);
    };
    fails(
        &["--lock", "cache_lokc"],
        "serial",
        &["has no lock `cache_lokc`; did you mean `cache_lock`?", "--lock: `cache_lock`"],
    );
    fails(&["--lock", "cache_lock", "--where", "wake"], "serial", &["which is not seen", "--where after"]);
    fails(
        &["--lock", "cache_lock", "--where", "retry"],
        "alone",
        &["no try for `cache_lock` (mutex) failed"],
    );
    fails(&["--lock", "queue_filled"], "queue", &["only waits and wake-ups are seen", "--where wake"]);
    fails(
        &["--lock", "queue_filled", "--where", "wake"],
        "queue",
        &["no sections that say how long", "--delay 20us"],
    );
    fails(&[], "alone", &["no thread waited for a lock", "Name one with --lock: `cache_lock`"]);
    fails(&["--rounds", "5"], "alone", &["--rounds 5 is too few"]);
    fails(&["--delay", "1h"], "alone", &["from 50ns to 10s"]);
    said(recording(path, ["whatif"]).args(["--", "true"])).fails(2, &["used no lock that is seen"]);
    said(&mut recording(path, ["whatif"])).fails(2, &["PROG"]);
    // A lock that is gone in the second run.
    let mut command = recording(path, ["whatif"]);
    command.args(["--lock", "cache_lock", "--"]).arg(program()).arg("missing").arg(path.join("flag"));
    said(&mut command).fails(2, &["`cache_lock` (mutex) was not met in a second run"]);
    // A program that fails.
    let mut command = recording(path, ["whatif"]);
    said(command.arg("--").arg(program()).arg("nothing")).fails(1, &["recorded run", "exited with status 2"]);
}

/// The slope that is known, and whether the interval has it.
#[track_caller]
fn finds(what: &str, lock: &str, known: impl Fn(&Value) -> f64) {
    let directory = tempfile::tempdir().unwrap();
    let (result, found) = data(directory.path(), &["--lock", lock, "--rounds", "100"], what, 10);
    let slope = &found["effect"]["slope"];
    let (low, high) = (slope["low"].as_f64().unwrap(), slope["high"].as_f64().unwrap());
    let known = known(&found);
    // What the program sleeps too long is not the same in each run.
    const NEAR: f64 = 0.02;
    assert!(low - NEAR <= known && known <= high + NEAR, "{what}, {lock}: {known}\n{result:#?}");
    let verdict = &found["effect"]["verdict"];
    assert!(known > 0.1 || verdict == "undecided" || verdict == "little", "{what}, {lock}: {result:#?}");
    assert!(verdict != "saves", "{what}, {lock}: {result:#?}");
}

/// Sections one after the other, as a part of the run.
fn of_the_path(lock: &Value) -> f64 {
    let rows = lock["effect"]["rows"].as_array().unwrap();
    let none = rows.iter().find(|row| row["arm"] == "none").unwrap();
    lock["uses"].as_f64().unwrap() * lock["delay_ns"].as_f64().unwrap()
        / 1e9
        / none["median"].as_f64().unwrap()
}

#[test]
#[ignore = "truth: two minutes on an idle machine"]
fn truth_sections_on_the_critical_path() {
    finds("serial", "cache_lock", of_the_path);
}

#[test]
#[ignore = "truth: two minutes on an idle machine"]
fn truth_waiting_that_costs_nothing() {
    finds("idle", "log_lock", |_| 0.0);
}

#[test]
#[ignore = "truth: two minutes on an idle machine"]
fn truth_a_producer_that_is_not_the_limit() {
    // But for the first item.
    finds("queue", "produce_lock", |lock| of_the_path(lock) / lock["uses"].as_f64().unwrap());
}

#[test]
#[ignore = "truth: three minutes on an idle machine"]
fn truth_two_locks_in_a_row() {
    finds("two", "first_lock", |lock| of_the_path(lock) / lock["uses"].as_f64().unwrap());
    finds("two", "second_lock", of_the_path);
}
