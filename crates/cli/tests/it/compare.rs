//! `spinpark compare` when all is well.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use spinpark_fixtures::command::{compiled, drop_in, lines_fit, program, said};

use crate::fixtures::spinpark;

#[test]
fn prints_every_metric_and_where_it_was_measured() {
    let result = said(spinpark(["compare", "--rounds", "6"]).arg(program()));
    let metrics = ["wall time", "CPU time", "context switches", "peak memory"];
    result.succeeds(&metrics);
    result.succeeds(&["6 rounds of 3 runs", "95 % interval", "noise", "verdict", "glibc 2.", "Linux "]);
    assert!(!result.stdout.contains("score"), "the program's output is not shown");
    lines_fit(&result.stdout, 100);
    assert!(!result.stdout.has_escapes() && !result.stderr.has_escapes(), "no colours into a pipe");
}

#[test]
fn compares_the_number_that_the_program_prints() {
    let mut command = spinpark(["compare", "--rounds", "6", "--metric-from-output", "score: ([0-9.]+)"]);
    let result = said(command.args(["--higher-is-better", "--unit", "points", "--"]).arg(program()));
    // The last match: the first one would be 1.
    result.succeeds(&["points", "3,0", "equivalent"]);
}

#[test]
fn json_on_standard_output_is_nothing_but_json() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = spinpark(["compare", "--rounds", "6", "--json", "-", "--"]);
    let result = said(command.current_dir(directory.path()).arg(program()));
    result.succeeds(&[]);
    let document: Value = serde_json::from_str(&result.stdout).unwrap();
    assert_eq!(document["end"], "complete");
    assert!(result.stderr.contains("wall time"), "{}", result.stderr);
    assert!(!directory.path().join("-").exists());
}

#[test]
fn json_has_all_data() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("result.json");
    let mut command =
        spinpark(["compare", "--rounds", "7", "--seed", "11", "--metric-from-output", "score: ([0-9.]+)"]);
    said(command.arg("--json").arg(&path).arg("--").arg(program()).arg("work")).succeeds(&[]);
    let document: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();

    assert_eq!(document["format"], "spinpark compare");
    assert_eq!(document["format_version"], 2);
    assert_eq!(document["end"], "complete");
    assert_eq!(document["command"][1], "work");
    assert_eq!(document["settings"]["rounds"], 7);
    assert_eq!(document["settings"]["seed"], 11);
    assert_eq!(document["settings"]["baseline"], "glibc");
    assert_eq!(document["usage"], serde_json::json!({ "loaded": 1, "off": 0, "used": 1 }));
    for field in ["spinpark", "kernel", "glibc", "cpu", "date"] {
        assert!(document["environment"][field].as_str().is_some_and(|text| !text.is_empty()), "{field}");
    }
    assert!(document["environment"]["cpus"].as_u64().unwrap() >= 1);
    // Each run begins as a copy of the command, which has read no symbols before the last one.
    assert!(
        document["settings"]["memory_floor_bytes"].as_u64().unwrap() < 40 << 20,
        "{}",
        document["settings"]
    );
    assert!(document["noise"]["steal"].is_number() && document["warnings"].is_array());
    check_runs(document["runs"].as_array().unwrap());
    check_summaries(document["comparison"]["metrics"].as_array().unwrap());
}

fn check_runs(runs: &[Value]) {
    assert_eq!(runs.len(), 21);
    for (index, run) in runs.iter().enumerate() {
        assert_eq!(run["block"], index / 3);
        assert_eq!(run["order"], index % 3);
        for field in
            ["wall_s", "cpu_s", "voluntary_switches", "involuntary_switches", "peak_bytes", "padding"]
        {
            assert!(run[field].is_number(), "{field}");
        }
        assert_eq!(run["printed"], 3000.5);
        assert!(run["wall_s"].as_f64().unwrap() > 0.0 && run["peak_bytes"].as_u64().unwrap() > 0);
    }
    for block in runs.chunks(3) {
        let configurations: HashSet<_> =
            block.iter().map(|run| run["configuration"].as_str().unwrap()).collect();
        assert_eq!(configurations, HashSet::from(["glibc", "glibc again", "spinpark"]));
    }
}

fn check_summaries(metrics: &[Value]) {
    let names: Vec<_> = metrics.iter().map(|summary| summary["metric"].as_str().unwrap()).collect();
    assert_eq!(names, ["printed", "wall", "cpu", "switches", "memory"]);
    for summary in metrics {
        let [low, median, high] =
            ["low", "median", "high"].map(|end| summary["change"][end].as_f64().unwrap());
        assert!(low <= median && median <= high, "{summary}");
        assert!(
            ["lower", "higher", "equivalent", "undecided"].contains(&summary["verdict"].as_str().unwrap())
        );
    }
    assert_eq!(metrics[0]["verdict"], "equivalent");
}

#[test]
fn the_seed_decides_the_order() {
    let order = |seed: &str| {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut command = spinpark(["compare", "--rounds", "6", "--seed", seed, "--json"]);
        said(command.arg(file.path()).arg(program())).succeeds(&[&format!("seed {seed}")]);
        let document: Value = serde_json::from_str(&fs::read_to_string(file.path()).unwrap()).unwrap();
        let runs = document["runs"].as_array().unwrap().clone();
        runs.iter().map(|run| (run["configuration"].clone(), run["padding"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(order("5"), order("5"));
    assert_ne!(order("5"), order("6"));
}

/// Each configuration in its own environment, seen by the program itself.
#[test]
fn environments() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let script = format!(
        "echo \"${{LD_PRELOAD##*/}},$SPINPARK_DISABLE,$SPINPARK_VERBOSE\" >> {}; {}",
        log.path().display(),
        program().display()
    );
    let lines = |baseline: &str| {
        fs::write(log.path(), "").unwrap();
        let mut command =
            spinpark(["compare", "--rounds", "6", "--baseline", baseline, "--", "sh", "-c", &script]);
        said(command.env("SPINPARK_VERBOSE", "1")).succeeds(&[]);
        fs::read_to_string(log.path()).unwrap()
    };
    let count = |text: &str, line: &str| text.lines().filter(|each| *each == line).count();
    let plain = lines("glibc");
    assert_eq!((count(&plain, ",,"), count(&plain, "libspinpark_preload.so,,")), (13, 7), "{plain}");
    let disabled = lines("disabled");
    let pass_through = count(&disabled, "libspinpark_preload.so,1,");
    // And once with the recorder before it.
    assert_eq!((pass_through, count(&disabled, "libspinpark_preload.so,,")), (14, 7), "{disabled}");
}

#[test]
fn exit_status_can_be_ignored() {
    let compare = ["compare", "--rounds", "6", "--ignore-failure", "--"];
    said(spinpark(compare).arg(program()).args(["exit", "3"])).succeeds(&["wall time"]);
    said(spinpark(compare).arg(program()).arg("crash-on-spinpark")).fails(1, &["SIGSEGV"]);
}

#[test]
fn input_is_nothing_or_a_file() {
    let input = tempfile::NamedTempFile::new().unwrap();
    fs::write(input.path(), "x").unwrap();
    let find = |expression: &str, file: Option<&str>| {
        let mut command = spinpark(["compare", "--rounds", "6", "--metric-from-output", expression]);
        if let Some(file) = file {
            command.args(["--input", file]);
        }
        said(command.arg("--").arg(program()).arg("show-input"))
    };
    find("input: (none)", None).fails(1, &["captured `none`"]);
    find("input: (x)", input.path().to_str()).fails(1, &["captured `x`"]);
}

/// Processes that a program leaves behind are ended.
#[test]
fn leftovers_end_with_the_run() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let script = format!("setsid sleep 1000 & echo $! >> {}; {}", log.path().display(), program().display());
    said(&mut spinpark(["compare", "--rounds", "6", "sh", "-c", &script])).succeeds(&[]);
    let pids = fs::read_to_string(log.path()).unwrap();
    assert_eq!(pids.lines().count(), 21);
    for pid in pids.lines() {
        let command = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        assert!(!command.contains("sleep"), "{pid} is still there");
    }
}

#[test]
fn help_has_examples() {
    for args in [&["--help"][..], &["run", "--help"], &["compare", "--help"], &["profile", "--help"]] {
        let result = said(spinpark([]).args(args));
        result.succeeds(&["Examples:", "spinpark "]);
        lines_fit(&result.stdout, 100);
    }
    said(&mut spinpark(["--version"])).succeeds(&[env!("CARGO_PKG_VERSION")]);
}

/// A program that brings spinpark's locks itself, in whatever way, is not compared with itself.
#[test]
fn a_program_on_our_locks_by_itself() {
    let directory = tempfile::tempdir().unwrap();
    let drop_in = drop_in();
    let folder = drop_in.parent().unwrap().display().to_string();
    let linked = compiled(
        "program.c",
        "linked",
        &["-Wl,--no-as-needed", "-L", &folder, "-lspinpark_preload", &format!("-Wl,-rpath,{folder}")],
    );
    let script = |name: &str, before: &str| {
        let path = directory.path().join(name);
        let text = format!(
            "#!/bin/sh\n{before}\nexport LD_PRELOAD={}\nexec {} \"$@\"\n",
            drop_in.display(),
            program().display()
        );
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    };
    for with_ours in [linked, script("preloads", "")] {
        let json = directory.path().join("result.json");
        let mut command = spinpark(["compare", "--rounds", "6", "--json"]);
        let result = said(command.arg(&json).arg("--").arg(&with_ours));
        result.succeeds(&["The program runs on spinpark's locks by itself", "wall time"]);
        let document: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
        assert_eq!(document["settings"]["baseline"], "disabled");
    }
    let stubborn = script("stubborn", "unset SPINPARK_DISABLE");
    said(spinpark(["compare", "--"]).arg(stubborn)).fails(2, &["There is no baseline on glibc's locks"]);
    let off = script("off", "export SPINPARK_DISABLE=1");
    said(spinpark(["compare", "--"]).arg(off)).fails(2, &["something sets SPINPARK_DISABLE=1"]);
    // Not by itself.
    let result = said(spinpark(["compare", "--rounds", "6", "--"]).arg(program()));
    assert!(!result.stdout.contains("by itself"), "{}", result.stdout);
}

#[test]
fn commands_around_the_runs() {
    let directory = tempfile::tempdir().unwrap();
    let log = || fs::read_to_string(directory.path().join("log")).unwrap_or_default();
    let compare = |options: &[&str]| {
        let _ = fs::remove_file(directory.path().join("log"));
        let mut command = spinpark(["compare", "--rounds", "6", "--cleanup", "echo c >>log"]);
        command.args(options).arg("--").arg("sh").args(["-c", "echo r >>log; exec \"$0\""]).arg(program());
        said(command.current_dir(directory.path()))
    };
    compare(&["--setup", "echo \"s$LD_PRELOAD\" >>log", "--prepare", "echo p >>log"])
        .succeeds(&["wall time"]);
    assert_eq!(log(), format!("s\n{}c\n", "p\nr\n".repeat(3 + 18)));
    let words =
        ["the command of --setup, `echo why; exit 3`, exited with status 3", "| why", "run it by hand"];
    compare(&["--setup", "echo why; exit 3"]).fails(1, &words);
    assert_eq!(log(), "c\n", "nothing ran, and it is cleaned up");
    compare(&["--prepare", "false"]).fails(1, &["the command of --prepare, `false`, exited with status 1"]);
    let result = compare(&["--cleanup", "exit 4"]);
    assert_eq!(result.code, Some(2), "given twice: {result:#?}");
}

/// Two builds of a program: the second one waits for longer, and says so in each metric.
#[test]
fn two_programs() {
    let directory = tempfile::tempdir().unwrap();
    let json = directory.path().join("result.json");
    let log = directory.path().join("log");
    let script = |name: &str, milliseconds: u32| {
        let path = directory.path().join(name);
        let text = format!(
            "#!/bin/sh\necho \"$0 $*,${{LD_PRELOAD##*/}},$SPINPARK_DISABLE\" >> {}\nsleep 0.{milliseconds:03}\n",
            log.display()
        );
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    };
    let (old, new) = (script("old", 300), script("new build", 1));
    let against = format!("'{}' \"two words\" it\\'s", old.display());
    let mut command = spinpark(["compare", "--rounds", "6", "--against", &against, "--json"]);
    // Programs without any pthread lock can be compared, too.
    let result = said(command.arg(&json).arg("--").arg(&new).arg("x"));
    result.succeeds(&[
        "Comparing two commands, both on their own locks, without the drop-in",
        "median of runs before after change",
        "`after` is faster than `before`: wall time -",
    ]);
    let runs = fs::read_to_string(&log).unwrap();
    let count = |line: String| runs.lines().filter(|each| **each == line).count();
    let expected = (13, 7);
    let of_old = count(format!("{} two words it's,,", old.display()));
    assert_eq!((of_old, count(format!("{} x,,", new.display()))), expected, "{runs}");

    let document: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(document["against"]["command"][1], "two words");
    assert_eq!(document["against"]["on_drop_in"], false);
    assert_eq!(document["command"][1], "x");
    for absent in ["drop_in", "usage"] {
        assert!(document.get(absent).is_none(), "{absent}");
    }
    let wall = &document["comparison"]["metrics"][0];
    assert!(wall["before"].as_f64().unwrap() > wall["after"].as_f64().unwrap(), "{wall}");
    assert_eq!(wall["verdict"], "lower");
    let configurations: HashSet<_> = document["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["configuration"].as_str().unwrap())
        .collect();
    assert_eq!(configurations, HashSet::from(["before", "before again", "after"]));
    said(spinpark(["report"]).arg(&json)).succeeds(&[
        "`before`:",
        "`after`:",
        "`after` is faster than `before`",
    ]);
}

#[test]
fn two_programs_on_the_drop_in() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let line = format!("echo \"${{LD_PRELOAD##*/}},$SPINPARK_DISABLE\" >> {}; ", log.path().display());
    let with = |rest: &str| format!("{line}{rest}");
    let (program, path) = (program(), program().display().to_string());
    let against = format!("sh -c '{}'", with(&path));
    let compare = |after: &str| {
        let mut command =
            spinpark(["compare", "--rounds", "6", "--locks", "spinpark", "--against", &against]);
        said(command.args(["--", "sh", "-c", after]))
    };
    compare(&with(&path)).succeeds(&["both on spinpark's locks:", "wall time"]);
    let lines = fs::read_to_string(log.path()).unwrap();
    assert_eq!(lines.lines().count(), 20, "{lines}");
    assert!(lines.lines().all(|line| line == "libspinpark_preload.so,"), "{lines}");
    // A mended program may have no lock left.
    compare(&format!("{path} no-locks")).succeeds(&["`after` used no pthread lock", "wall time"]);
    let result = compare(&format!("export SPINPARK_DISABLE=1; exec {path}"));
    result.fails(2, &["`after` cannot run on spinpark's locks", "something sets SPINPARK_DISABLE=1"]);
    let mut command = spinpark(["compare", "--rounds", "6", "--locks", "spinpark", "--against"]);
    let result = said(command.arg(format!("{path} no-locks")).arg("--").arg(&program).arg("no-locks"));
    result.fails(2, &["uses no pthread locks"]);
}

/// `before` fails, or both cannot be compared: the error names the command, and says what to do.
#[test]
fn two_programs_that_cannot_be_compared() {
    let compare = |options: &[&str]| said(spinpark(["compare", "--rounds", "6"]).args(options));
    let path = program().display().to_string();
    let against = |command: &str| compare(&["--against", command, "--", &path]);
    against("no-such-program x").fails(2, &["--against: there is no program `no-such-program` in PATH"]);
    against("./old 'x").fails(2, &["--against `./old 'x` ends within quotes", "--against \"./old"]);
    against("").fails(2, &["--against is empty"]);
    against(&format!("{path} exit 3")).fails(
        1,
        &[
            "exited with status 3 as configuration `before` (--against)",
            "| no such database",
            "--ignore-failure",
        ],
    );
    compare(&["--against", &path, "--", &path, "exit", "3"]).fails(1, &["as configuration `after`"]);
    compare(&["--against", &path]).fails(2, &["--against needs a program", "-- ./new"]);
    compare(&["--against", &path, "--baseline", "glibc", "--", &path]).fails(2, &["cannot be used with"]);
    compare(&["--locks", "spinpark", "--", &path]).fails(2, &["--against <COMMAND>"]);
}
