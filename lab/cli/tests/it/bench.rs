//! `spinpark-lab bench`.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use spinpark_testkit::{dropin, profiler};

use spinpark_fixtures::command::{drop_in, interrupted_after, said};

use crate::fixtures::spinpark;

#[test]
fn two_targets() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut command = spinpark([
        "bench",
        "locks",
        "--preset",
        "pthread",
        "--rounds",
        "6",
        "--duration",
        "5ms",
        "--workload",
        "pair-threaded",
        "readers",
    ]);
    let result = said(command.arg("--json").arg(file.path()));
    result.succeeds(&[
        "2 cells × 6 rounds",
        "pair-threaded",
        "readers",
        "drop-in",
        "ratio",
        "p99.9",
        "glibc 2.",
    ]);
    let document: Value = serde_json::from_str(&fs::read_to_string(file.path()).unwrap()).unwrap();
    assert_eq!((&document["format"], &document["schema"]), (&"spinpark bench".into(), &3.into()));
    assert_eq!(document["results"].as_array().unwrap().len(), 2);
    assert_eq!(document["cells"][0]["workload"], "pair-threaded");
    assert_eq!(document["cells"][0]["runs"].as_array().unwrap().len(), 18);
    assert!(document["cells"][0]["runs"][0]["operations"].as_u64().unwrap() > 0);
    assert!(document["results"][0]["implementations"][1]["ratio"]["median"].as_f64().unwrap() > 0.0);

    said(spinpark(["bench", "show"]).arg(file.path())).succeeds(&["pair-threaded", "drop-in ÷ glibc"]);
    said(spinpark(["bench", "show", "--format", "markdown"]).arg(file.path())).succeeds(&[
        "| pair-threaded | 1 |",
        "`spinpark-lab bench locks --preset pthread --rounds 6 --duration 5ms --workload pair-threaded readers",
    ]);
}

#[test]
fn many_targets_with_plots_and_a_record() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = spinpark(["bench", "locks", "--rounds", "6", "--duration", "5ms", "--threads", "2,3"]);
    command.args(["--workload", "saturated", "--locks", "glibc,std,spinpark,drop-in+SOME=thing"]);
    let result =
        said(command.current_dir(directory.path()).args(["--plots", "plots", "--record", "--details"]));
    result.succeeds(&["2 cells × 6 rounds", "Jain index", "futex", "drop-in+SOME=thing", "longest gap"]);
    let plot = fs::read_to_string(directory.path().join("plots/saturated.svg")).unwrap();
    assert!(plot.starts_with("<svg") && plot.contains("spinpark"));
    let records: Vec<_> = fs::read_dir(directory.path().join("records")).unwrap().flatten().collect();
    assert_eq!(records.len(), 1);
    assert!(records[0].file_name().to_str().unwrap().starts_with("20"));
    said(spinpark(["bench", "show"]).arg(records[0].path())).succeeds(&["saturated"]);
}

#[test]
fn json_on_standard_output_is_nothing_but_json() {
    let mut command = spinpark(["bench", "locks", "--rounds", "6", "--duration", "2ms", "--json", "-"]);
    let result = said(command.args(["--workload", "pair-single", "--locks", "std", "usync"]));
    result.succeeds(&[]);
    let document: Value = serde_json::from_str(&result.stdout).unwrap();
    assert_eq!(document["end"], "complete");
    assert!(result.stderr.contains("pair-single"), "{}", result.stderr);
}

/// Ctrl-C: what was measured so far is printed and written.
#[test]
fn interrupted() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut command =
        spinpark(["bench", "locks", "--rounds", "100000", "--duration", "2ms", "--workload", "pair-single"]);
    command.args(["--locks", "std", "usync", "--json"]).arg(file.path());
    let (_, warnings) = interrupted_after("", &mut command);
    assert!(warnings.contains("Interrupted after"), "{warnings}");
    let document: Value = serde_json::from_str(&fs::read_to_string(file.path()).unwrap()).unwrap();
    assert_eq!(document["end"], "interrupted");
}

/// One bound, from a file: what it needs is measured, and `--check` decides about the exit status.
#[test]
fn bounds_and_check() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let bound = |limit: f64| {
        let text = format!(
            "[[bound]]\nwhat = \"a pair\"\nfigure = \"time\"\nworkload = \"pair-threaded\"\nours = [\"spinpark\"]\n\
             against = \"std\"\nat_most = {limit:?}\n"
        );
        fs::write(file.path(), text).unwrap();
        let mut command = spinpark(["bench", "locks", "--bounds", "--rounds", "6", "--duration", "2ms"]);
        command.arg("--definition").arg(file.path());
        command
    };
    said(&mut bound(1e9)).succeeds(&["1 cell × 6 rounds", "a pair", "holds", "1 bound: 1 hold"]);
    assert_eq!(said(bound(1e9).arg("--check")).code, Some(0));
    said(&mut bound(1e-9)).succeeds(&["missed", "1 missed"]);
    assert_eq!(said(bound(1e-9).arg("--check")).code, Some(1));
}

/// Variants of one lock: a row each, with a word about its effect; the same again from the file.
#[test]
fn mtx_says_what_each_ingredient_does() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut command = spinpark([
        "bench",
        "locks",
        "--preset",
        "mtx",
        "--rounds",
        "6",
        "--duration",
        "5ms",
        "--threads",
        "1,2",
    ]);
    command.args(["--locks", "classic-mtx,classic-mtx-counter,classic-mtx-backoff", "--json"]);
    said(command.arg(file.path())).succeeds(&[
        "2 cells × 6 rounds",
        "hot-lock",
        "counter",
        "backoff",
        "noise",
    ]);
    let again = said(spinpark(["bench", "show", "--format", "markdown"]).arg(file.path()));
    again.succeeds(&["| counter | 2 |", "| variant | threads |"]);
    // No word if nothing happened in a run: the machine may be busy.
    let words = ["effect", "none", "undecided", "–"];
    assert!(
        again
            .stdout
            .lines()
            .filter(|line| line.starts_with("| counter"))
            .all(|line| { words.iter().any(|word| line.ends_with(&format!("| {word} |"))) })
    );
}

/// The command with the real libraries, and an empty directory for its temporary files.
fn profiler_bench<const N: usize>(directory: &Path, options: [&str; N]) -> Command {
    let mut command =
        spinpark(["bench", "locks", "--preset", "profiler", "--rounds", "6", "--duration", "5ms"]);
    command.args(options).env("TMPDIR", directory);
    command.env("SPINPARK_PRELOAD", dropin()).env("SPINPARK_PROFILER", profiler());
    command
}

/// What recording costs: a row for each detail, and nothing stays of what was recorded.
#[test]
fn profiler_says_what_each_detail_costs() {
    let directory = tempfile::tempdir().unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut command = profiler_bench(directory.path(), ["--workload", "pair-threaded,saturated", "--json"]);
    said(command.arg(file.path())).succeeds(&[
        "3 cells × 6 rounds: 108 runs of 5 ms",
        "recorded-off",
        "recorded-contended",
        "recorded-sampled",
        "recorded-full",
        "noise",
    ]);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    let document: Value = serde_json::from_str(&fs::read_to_string(file.path()).unwrap()).unwrap();
    let profiles: Vec<&Value> = document["implementations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|implementation| &implementation["profile"])
        .collect();
    assert_eq!(
        profiles,
        [&Value::Null, &"off".into(), &"contended".into(), &"sampled".into(), &"full".into()]
    );
    said(spinpark(["bench", "show", "--format", "markdown"]).arg(file.path()))
        .succeeds(&["| recorded-full | 1 |", "| recorded-contended | 16"]);
}

/// The recorder in front of the drop-in, in front of libc.
#[test]
fn profiler_over_the_drop_in() {
    let directory = tempfile::tempdir().unwrap();
    let options = ["--baseline", "drop-in", "--locks", "drop-in,drop-in-recorded-contended"];
    let mut command = profiler_bench(directory.path(), options);
    said(command.args(["--workload", "read-pair"]))
        .succeeds(&["1 cell × 6 rounds: 18 runs", "recorded-contended"]);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

/// A recorder that is not there, or is none, ends it: recording would seem to cost nothing.
#[test]
fn profiler_without_a_recorder() {
    let directory = tempfile::tempdir().unwrap();
    let with = |library: &Path| {
        let mut command = profiler_bench(directory.path(), ["--workload", "pair-threaded"]);
        said(command.env("SPINPARK_PROFILER", library))
    };
    with(Path::new("/no/such/library.so"))
        .fails(2, &["SPINPARK_PROFILER is /no/such/library.so", "profiler"]);
    with(&drop_in()).fails(1, &["glibc-recorded-off", "the recorder recorded nothing", "SPINPARK_PROFILER"]);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    let mut command = profiler_bench(Path::new("/no/such/directory"), ["--workload", "pair-threaded"]);
    // Another place does as well.
    said(&mut command).succeeds(&["recorded-full"]);
}

/// The goals of recording are judged by this command, those of the locks by the other, and no other preset
/// has any.
#[test]
fn profiler_has_bounds_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let options = ["--bounds", "--workload", "pair-threaded", "--locks", "glibc,glibc-recorded-off"];
    let result = said(&mut profiler_bench(directory.path(), options));
    result.succeeds(&["1 cell × 6 rounds", "glibc-recorded-off: mutex", "≤ 1.03", "≤ 3.00", "not measured"]);
    assert!(!result.stdout.contains("spinpark:"), "{}", result.stdout);
    said(&mut spinpark(["bench", "locks", "--preset", "mtx", "--bounds"]))
        .fails(2, &["the preset `mtx` has no bounds; there are some for: locks, profiler"]);
    said(&mut spinpark(["documents", "mmap", "--locks", "glibc-recorded-off"])).fails(2, &["--overhead"]);
}

#[test]
fn the_list_names_everything() {
    said(&mut spinpark(["bench", "list"])).succeeds(&[
        "mutex-bursts",
        "saturated",
        "broadcast-64",
        "parking_lot",
        "0.13",
        "drop-in-disabled",
        "drop-in-recorded-sampled",
        "classic-rwsem-full",
        "abseil",
        "6 by `spinpark-lab bench locks --preset profiler --bounds`",
    ]);
}

#[test]
fn bad_requests() {
    for (args, words) in [
        (&["--workload", "round"][..], &["no workload `round`", "spinpark-lab bench list"][..]),
        (&["--locks", "no-such-lock"], &["no implementation `no-such-lock`", "spinpark-lab bench list"]),
        (&["--locks", "glibc+X"], &["`X` in the implementation"]),
        (
            &["--workload", "saturated", "--threads", "0"],
            &["'--threads <N>...': the number must be from 1 to 4096"],
        ),
        (&["--rounds", "5"], &["--rounds 5 is too few"]),
        (&["--check"], &["--bounds"]),
        (&["--definition", "/no/such/file.toml"], &["cannot read /no/such/file.toml", "docs/bench.md"]),
        (&["--plots", "/proc/x"], &["cannot create the directory /proc/x", "Give --plots"]),
        (&["--workload", "pair-single", "--json", "/no/such/directory/x.json"], &["cannot write"]),
    ] {
        said(spinpark(["bench", "locks"]).args(args)).fails(2, words);
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "[[workload]]\nname = \"x\"\nthread = [1]\n").unwrap();
    said(spinpark(["bench", "locks", "--definition"]).arg(file.path()))
        .fails(2, &["line 3", "unknown field `thread`"]);
    fs::write(file.path(), "{}").unwrap();
    said(spinpark(["bench", "show"]).arg(file.path())).fails(2, &["not a record"]);
}

/// The worker, as the benchmark starts it.
#[test]
fn worker_prints_one_report() {
    let request = r#"{"adapter":"pthread","load":{"shared":{"percent_writes":10}},"threads":3,"millis":500}"#;
    let result = said(&mut spinpark(["__bench-worker", request]));
    result.succeeds(&[]);
    let report: Value = serde_json::from_str(result.stdout.trim()).unwrap();
    assert!(report["operations"].as_u64().unwrap() > 0);
    assert!(report["waits"]["longest_ns"].as_u64().unwrap() > 0);
}
