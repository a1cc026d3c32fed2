//! `spinpark-lab sim replay`: a recording as a workload.

use std::fs;

use serde_json::Value;
use spinpark_recorder::format::{Kind, Role};
use spinpark_testkit::recordings::store as recorded;

use spinpark_fixtures::command::{lines_fit, said};

use crate::fixtures::spinpark;

/// The recorder's number of the detail `contended`.
const CONTENDED: u32 = 1;

#[test]
fn a_recorded_program_on_another_machine() {
    let at = tempfile::tempdir().unwrap();
    recorded().write(at.path()).unwrap();
    let replay = |args: &[&str]| {
        let mut command = spinpark(["sim", "replay"]);
        command.arg(at.path()).args(["--machine", "plain-4", "--duration", "20ms", "--seeds", "2"]);
        said(command.args(args))
    };
    let said = replay(&["--threads", "8"]);
    said.succeeds(&[
        "/opt/store/store with 8 threads on plain-4. Recorded: ",
        "Simulated as it was recorded",
        "glibc's (classic-mutex-2003)",
        "ours (spinpark)",
        "This is an estimate, not a measurement",
        "no order of acquisitions",
        "no causes of signals",
        "are samples (detail `sampled`)",
    ]);
    lines_fit(&said.stdout, 100);
    assert_eq!(said.stdout, replay(&["--threads", "8"]).stdout, "one seed is one run");
    let document: Value = serde_json::from_str(&replay(&["--locks", "spinpark", "--json"]).stdout).unwrap();
    assert_eq!((&document["format"], &document["end"]), (&"spinpark sim replay".into(), &"complete".into()));
    let prediction = &document["predictions"][0];
    let (rate, low, high) = (&prediction["rate"], &prediction["interval"][0], &prediction["interval"][1]);
    let number = |value: &Value| value.as_f64().unwrap();
    assert!(number(low) < number(rate) && number(rate) < number(high), "{prediction}");
    assert_eq!(document["proof"]["holds"], true, "{}", document["proof"]);
}

/// A million sections of 10 ms, in a recording of a few seconds.
#[test]
fn a_recording_that_is_not_reproduced() {
    let at = tempfile::tempdir().unwrap();
    let mut file = recorded();
    let lock = file.lock(Kind::Mutex, 0x77_0000, 0, true);
    let thread = file.thread(4999, "nests", 0, 0, 0);
    file.uses(thread, lock, Role::Write, |stats| {
        stats.acquisitions = 1_000_000.into();
        (stats.held.count, stats.held.total) = (1_000_000.into(), 10_000_000_000_000.into());
        stats.held.longest = 10_000_000.into();
    });
    file.write(at.path()).unwrap();
    let replay = || {
        let mut command = spinpark(["sim", "replay"]);
        command.arg(at.path()).args(["--duration", "20ms", "--seeds", "1"]);
        command
    };
    said(&mut replay()).fails(1, &[]);
    let said = said(replay().args(["--json"]));
    let document: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(
        (&document["proof"]["holds"], &document["predictions"]),
        (&false.into(), &Value::Array(vec![]))
    );
}

#[test]
fn what_cannot_be_replayed() {
    let at = tempfile::tempdir().unwrap();
    let path = at.path().to_str().unwrap();
    let fails =
        |args: &[&str], words: &[&str]| said(spinpark(["sim", "replay", path]).args(args)).fails(2, words);
    fails(&[], &[path]);
    let mut file = recorded();
    file.header().detail = CONTENDED.into();
    file.write(at.path()).unwrap();
    fails(
        &[],
        &["the detail `contended`", "Record it again: spinpark profile --detail full -- /opt/store/store"],
    );
    for entry in fs::read_dir(at.path()).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    recorded().write(at.path()).unwrap();
    fails(&["--process", "7"], &["no process 7 was recorded", "Recorded are 4242"]);
    fails(&["--machine", "none"], &["no machine `none`"]);
    fails(&["--locks", "glibc"], &["no lock `glibc`", "classic-mutex-2003"]);
    fails(&["--locks", "classic-condvar-orig"], &["is no mutex"]);
}
