//! `spinpark report` of several recordings, which are added up.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use spinpark_fixtures::command::{Said, said, waits};

use crate::profile::recording;

/// Recordings of processes that did the same: each is a directory with a profile, as `change` makes it of one that was
/// recorded. `change`: gets the number of the process.
fn fleet(directory: &Path, number: u64, change: impl Fn(u64, &mut Value)) -> Vec<PathBuf> {
    let one = recorded(directory);
    let base = fs::read_to_string(directory.join("one/profile.json")).unwrap();
    assert!(base.contains("cache_lock"), "{one:?}");
    let paths = (0..number).map(|at| {
        let mut profile: Value = serde_json::from_str(&base).unwrap();
        let process = &mut profile[0];
        process["pid"] = json!(1000 + at);
        process["started"] = json!(process["started"].as_u64().unwrap() + at);
        process["host"] = json!(format!("web-{}", at % 3));
        change(at, process);
        let path = directory.join(format!("fleet/web-{}/{at}", at % 3));
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("profile.json"), profile.to_string()).unwrap();
        path
    });
    paths.collect()
}

fn recorded(directory: &Path) -> Said {
    let mut command = recording(directory, ["profile", "--detail", "full", "--output", "one", "--"]);
    let result = said(command.arg(waits()).arg("store"));
    assert_eq!(result.code, Some(0), "{result:#?}");
    result
}

fn report(directory: &Path, arguments: &[&str]) -> Said {
    said(recording(directory, ["report"]).args(arguments))
}

/// The sums in JSON.
fn sums(directory: &Path, arguments: &[&str]) -> Value {
    let said = report(directory, &[arguments, &["--json"]].concat());
    assert_eq!(said.code, Some(0), "{said:#?}");
    serde_json::from_str(&said.stdout).unwrap()
}

fn cache_lock(profile: &Value) -> &Value {
    let locks = profile["locks"].as_array().unwrap();
    locks.iter().find(|lock| lock["label"] == "cache_lock").expect("the lock")
}

/// Of the lock's writers.
fn of_writers<'a>(profile: &'a Value, path: &str) -> &'a Value {
    let roles = cache_lock(profile)["roles"].as_array().unwrap();
    roles.iter().find(|stats| stats["role"] == "write").expect("writers").pointer(path).expect("a figure")
}

#[test]
fn sums_are_sums_and_the_longest_is_the_longest() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let paths = fleet(directory, 7, |at, process| {
        let locks = process["locks"].as_array_mut().unwrap();
        let lock = locks.iter_mut().find(|lock| lock["label"] == "cache_lock").unwrap();
        let stats = lock["roles"].as_array_mut().unwrap();
        let writers = stats.iter_mut().find(|stats| stats["role"] == "write").unwrap();
        let longest = writers["wait"]["longest"].as_u64().unwrap();
        writers["wait"]["longest"] = json!(longest + at);
    });
    let each: Vec<Value> = paths
        .iter()
        .map(|path| serde_json::from_str(&fs::read_to_string(path.join("profile.json")).unwrap()).unwrap())
        .collect();
    let added = sums(directory, &["fleet"]);
    assert_eq!(added.as_array().unwrap().len(), 1);
    let added = &added[0];
    assert_eq!(added["merged"]["processes"], 7);
    let sum = |path: &str| each.iter().map(|one| of_writers(&one[0], path).as_u64().unwrap()).sum::<u64>();
    for path in ["/wait/total", "/wait/count", "/acquisitions", "/contended", "/hold/total", "/split/held"] {
        assert_eq!(of_writers(added, path).as_u64().unwrap(), sum(path), "{path}");
    }
    let bins: u64 = of_writers(added, "/wait/histogram")
        .as_array()
        .unwrap()
        .iter()
        .map(|bin| bin.as_u64().unwrap())
        .sum();
    assert_eq!(bins, sum("/wait/count"));
    let longest = each.iter().map(|one| of_writers(&one[0], "/wait/longest").as_u64().unwrap()).max();
    assert_eq!(of_writers(added, "/wait/longest").as_u64(), longest);
    let id = &cache_lock(added)["id"];
    let spread = added["merged"]["spread"].as_array().unwrap();
    let spread = spread.iter().find(|spread| spread["lock"] == *id).unwrap();
    assert_eq!(spread["processes"], 7);
    assert_eq!(
        (spread["longest"].as_u64(), &spread["longest_in"]),
        (longest, &json!("process 1006 of web-0"))
    );
    let places: Vec<&Value> =
        added["merged"]["places"].as_array().unwrap().iter().map(|place| &place["name"]).collect();
    assert_eq!(places.len(), 3, "{places:?}");

    // By name, each of them, and read again.
    let words: Vec<&str> = paths.iter().map(|path| path.to_str().unwrap()).collect();
    let text = report(directory, &words);
    text.succeeds(&[
        "7 processes",
        "in 3 places",
        "All waiting is on one mutex, `cache_lock`",
        "Threads waited for it in 7 of 7 processes",
        "Locks, over processes",
        "Where they ran",
    ]);
    fs::write(directory.join("sum.json"), serde_json::to_vec(&json!([added])).unwrap()).unwrap();
    report(directory, &["sum.json"]).succeeds(&["7 processes", "`cache_lock`"]);
    let twice = sums(directory, &["sum.json", "one"]);
    assert_eq!(twice[0]["merged"]["processes"], 8);
    assert_eq!(of_writers(&twice[0], "/wait/count").as_u64().unwrap(), sum("/wait/count") / 7 * 8);
    for (option, file) in [("--html", "x.html"), ("--pprof", "x.pb.gz"), ("--folded", "x.folded")] {
        report(directory, &["fleet", option, file]).succeeds(&[]);
        assert!(fs::metadata(directory.join(file)).unwrap().len() > 0);
    }
}

#[test]
fn what_differs_is_not_added_up() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    fleet(directory, 4, |at, process| {
        if at == 3 {
            let modules = process["modules"].as_array_mut().unwrap();
            let program =
                modules.iter_mut().find(|module| module["path"].as_str().unwrap().ends_with("/waits"));
            program.expect("the program")["build_id"] = json!("feedfacefeedface");
        }
    });
    let said = report(directory, &["fleet"]);
    said.succeeds(&["3 processes", "Programs and builds", "feedface"]);
    assert!(said.stderr.contains("are of different builds, and are in 2 sums"), "{said:#?}");
    let both = sums(directory, &["fleet"]);
    let numbers: Vec<&Value> =
        both.as_array().unwrap().iter().map(|sum| &sum["merged"]["processes"]).collect();
    assert_eq!(numbers, [&json!(3), &json!(1)]);
    report(directory, &["fleet", "--process", "waits-feedface"]).succeeds(&["1 process of build feedface"]);
    // A process counts once.
    let twice = report(directory, &["fleet", "fleet/web-0/0"]);
    twice.succeeds(&["3 processes"]);
    assert!(twice.stderr.contains("1 recording was given more than once, and counted once."), "{twice:#?}");
}

/// The same lock has another name where another thread came first to it.
#[test]
fn a_lock_that_is_called_otherwise() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    fleet(directory, 2, |at, process| {
        let locks = process["locks"].as_array_mut().unwrap();
        let lock = locks.iter_mut().find(|lock| lock["label"] == "cache_lock").unwrap();
        // Without the name of its variable: by the functions that take it.
        lock["name"] = Value::Null;
        lock["is_created"] = json!(false);
        lock["label"] = json!(if at == 0 { "mutex in store_update" } else { "mutex in flush" });
    });
    let added = sums(directory, &["fleet"]);
    let mutexes = added[0]["locks"].as_array().unwrap().iter();
    let mutexes: Vec<&Value> =
        mutexes.filter(|lock| lock["label"].as_str().unwrap().starts_with("mutex in ")).collect();
    assert_eq!(mutexes.len(), 1, "{mutexes:#?}");
}

#[test]
fn files_that_cannot_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    fleet(directory, 3, |_, _| {});
    fs::write(directory.join("fleet/empty.json"), "").unwrap();
    fs::write(directory.join("fleet/cut.json"), "[{\"format\": \"spinpark-profile\", \"ver").unwrap();
    fs::write(directory.join("fleet/old.json"), "[{\"format\": \"spinpark-profile\", \"version\": 1}]")
        .unwrap();
    fs::write(directory.join("fleet/other.json"), "{\"format\": \"else\"}").unwrap();
    fs::write(directory.join("short.spinprof"), "x").unwrap();
    let said = report(directory, &["fleet", "short.spinprof", "nothing"]);
    let named = [
        "Left out: fleet/empty.json is not a profile in JSON",
        "Left out: fleet/cut.json is not a profile in JSON",
        "Left out: fleet/old.json has version 1 of the JSON format",
        "Left out: fleet/other.json is not a profile in JSON: its first field must be",
        "Left out: short.spinprof is ",
        "Left out: nothing does not exist",
    ];
    said.fails(1, &named);
    assert!(said.stdout.contains("3 processes") && said.stdout.contains("`cache_lock`"), "{said:#?}");
    // Nothing is left.
    report(directory, &["short.spinprof", "nothing"]).fails(2, &["nothing can be added up of 2 recordings"]);
    fs::create_dir(directory.join("without")).unwrap();
    report(directory, &["without"]).fails(2, &["there is no recording in without"]);
    report(directory, &["one", "fleet", "--from", "1s"]).fails(2, &["--from is for one recording"]);
}

/// The processes of one recording.
#[test]
fn one_recording() {
    let directory = tempfile::tempdir().unwrap();
    recorded(directory.path());
    let said = report(directory.path(), &["one"]);
    said.succeeds(&["(process "]);
    report(directory.path(), &["one", "--merge"]).succeeds(&["1 process", "`cache_lock`"]);
}
