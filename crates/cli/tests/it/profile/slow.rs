//! Waits one by one, parts of a run, and a user's table of waits.

use std::fs;

use serde_json::Value;
use spinpark_fixtures::compile_c;

use super::recording;
use spinpark_fixtures::command::said;

/// Three threads wait for a semaphore that one of them has for 10 ms at a time, for 0.8 s.
#[test]
fn slow_waits_parts_and_tables() {
    let program = compile_c("silent.c", &[]);
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    let report = |options: &[&str]| said(recording(path, ["report", "kept"]).args(options));
    let run = ["profile", "--output", "kept", "--slower-than", "5ms", "--"];
    let result = said(recording(path, run).arg(&program).arg("semaphore"));
    assert!(result.stderr.contains("`--view slow`"), "{}", result.stderr);
    report(&["--view", "slow"]).succeeds(&["The longest waits"]);
    report(&["--view", "all"]).succeeds(&["The longest waits", "Waits for work, events"]);

    let json: Value = serde_json::from_str(&report(&["--json"]).stdout).expect("JSON");
    let of = |lock: &Value| lock["kind"] == "semaphore";
    let semaphore = json[0]["locks"].as_array().expect("locks").iter().find(|lock| of(lock)).expect("it");
    let waits = semaphore["roles"][0]["contended"].as_u64().expect("a number");
    let lines = report(&["--slow"]).stdout;
    let kept: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let kept: Vec<&Value> = kept.iter().filter(|wait| wait["kind"] == "semaphore").collect();
    // Nearly each wait is for one that has it for 10 ms.
    assert!(kept.len() as u64 <= waits && kept.len() as u64 * 10 >= waits * 8, "{} of {waits}", kept.len());
    for wait in &kept {
        assert!(wait["waited_in"][0].as_str().expect("a name").starts_with("wait_semaphore"), "{wait}");
        assert!(wait["waited_ns"].as_u64().is_some() && wait["wall_clock"].as_str().is_some(), "{wait}");
    }
    let woken = kept.iter().filter(|wait| wait["released_in"][0].is_string()).count();
    assert!(woken * 10 >= kept.len() * 8, "{woken} of {}", kept.len());

    report(&["--perfetto", "trace.json", "--speedscope", "speedscope.json"]).succeeds(&[]);
    let read = |name: &str| -> Value {
        serde_json::from_str(&fs::read_to_string(path.join(name)).expect("a file")).expect("JSON")
    };
    assert!(read("trace.json")["traceEvents"].as_array().is_some_and(|events| events.len() > kept.len()));
    assert!(read("speedscope.json")["profiles"].as_array().is_some_and(|threads| threads.len() >= 3));

    // A semaphore is unfair: one wait may outlast a short part, and counts where it ends.
    report(&["--from", "50ms", "--to", "5s"]).succeeds(&["Waiting from 0.", "semaphore", "may be"]);
    report(&["--from", "60s"]).succeeds(&["The run had ended by then"]);
    report(&["--from", "3s", "--to", "1s"]).fails(2, &["--from must be before --to"]);
    report(&["--waits", "none.toml"]).fails(2, &["none.toml", "No such file"]);
    fs::write(path.join("waits.toml"), "[[wait]]\nis = \"lock\"\n").expect("a file");
    report(&["--waits", "waits.toml"])
        .fails(2, &["waits.toml is no table of waits", "unknown variant `lock`"]);
    let table = "[[wait]]\nis = \"mutex\"\nname = \"Gate\"\nfunctions = [\"wait_semaphore\"]\n";
    fs::write(path.join("waits.toml"), table).expect("a file");
    let named = report(&["--waits", "waits.toml"]);
    named.succeeds(&["All waiting is on one Gate, `semaphore`"]);
    assert!(!named.stderr.contains("of these entries"), "{}", named.stderr);
    let table = format!("{table}{}", table.replace("wait_", "want_").replace("Gate", "Door"));
    fs::write(path.join("waits.toml"), table).expect("a file");
    let named = report(&["--waits", "waits.toml"]);
    named.succeeds(&["one Gate"]);
    let unmet = "of these entries of the table of waits on its stack: Door.";
    assert!(named.stderr.contains(unmet), "{}", named.stderr);
}
